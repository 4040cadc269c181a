/** The blocks of a message as Markdown: what was said as it is, what tools did folded. */
import {
  type Block,
  blocksOf,
  isMedia,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
} from '../../conversation/block.ts'
import { isObject } from '../../conversation/json.ts'
import { blockText } from '../record-text.ts'
import { coded, fenced, figure, folded, inline } from './writing.ts'

export type Redact = (text: string) => string

export interface BlockWords {
  readonly redact: Redact
  /** By call: the tool's name. */
  readonly tools: ReadonlyMap<string, string>
}

export function blockMarkdown(block: Block, words: BlockWords): string {
  if (isText(block)) return words.redact(block.text)
  if (isToolUse(block)) return callMarkdown(block, words)
  if (isToolResult(block)) return resultMarkdown(block, words)
  if (isMedia(block)) return `*${blockText(block)}*`
  const text = words.redact(isThinking(block) ? thinkingText(block) : JSON.stringify(block, null, 2))
  const line = isThinking(block) ? 'Thinking' : inline(block.type)
  return text === '' ? `*${line}, hidden*` : folded(line, fenced(text))
}

function thinkingText({ thinking }: Block): string {
  return typeof thinking === 'string' ? thinking : ''
}

function callMarkdown(block: Block & { readonly id: string }, { redact }: BlockWords): string {
  const { id, name, input } = block
  const line = `Call: ${inline(`${String(name)}${redact(subject(input))}`)} · ${coded(id)}`
  return folded(line, fenced(redact(JSON.stringify(input, null, 2) ?? ''), 'json'))
}

/** What a call is about, in few words: the path, command or query it names. */
function subject(input: unknown): string {
  if (!isObject(input)) return ''
  const { file_path, path, command, pattern, query, url, description } = input
  const found = [file_path, path, command, pattern, query, url, description].find(
    (value) => typeof value === 'string',
  )
  return found === undefined ? '' : ` — ${found}`
}

function resultMarkdown(block: Block & { readonly tool_use_id: string }, words: BlockWords): string {
  const { tool_use_id: id, content, is_error } = block
  const parts = typeof content === 'string' || Array.isArray(content) ? blocksOf(content) : []
  const tool = words.tools.get(id)
  const failed = is_error === true ? ', which failed' : ''
  const length = parts.reduce((sum, part) => sum + (isText(part) ? part.text.length : 0), 0)
  const line = `Result of ${tool === undefined ? 'a call' : inline(tool)}${failed} · ${coded(id)} · ${figure(length)} characters`
  const bodies = parts.map((part) =>
    isText(part) ? fenced(words.redact(part.text)) : blockMarkdown(part, words),
  )
  return folded(line, bodies.length === 0 ? '*nothing*' : bodies.join('\n\n'))
}
