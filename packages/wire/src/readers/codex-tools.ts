/** Codex's tool calls and their outputs as blocks. */
import {
  type Block,
  isBlock,
  isObject,
  isTooDeep,
  type Json,
  objectText,
  type RawBlock,
  readJson,
  survives,
} from '@tidemark/core'
import type { Fields } from './codex-line.ts'

interface CallBlock {
  readonly block: Block
  /** The exact text of the block, where parsing the arguments would change them. */
  readonly raw: readonly RawBlock[]
}

/** Null where it is no call: without name or id there is nothing to answer. */
export function callBlock(item: Fields, id: string): CallBlock | null {
  const name = callName(item)
  if (name === null) return null
  const given = item.arguments
  const parsed = typeof given === 'string' ? argumentsOf(given) : undefined
  const block = { type: 'tool_use', id, name, input: inputOf(item, parsed) }
  const isExact = typeof given !== 'string' || !isObject(parsed) || survives(given)
  return { block, raw: isExact ? [] : [{ index: 0, text: rawText({ id, name }, given) }] }
}

/** Undefined where they do not parse, or to something that nobody could walk through. */
function argumentsOf(text: string): Json | undefined {
  const value = readJson(text)
  return isTooDeep(value) ? undefined : value
}

/** The id that the output of the call will name; older local shell calls have none but their own. */
export function callIdOf(item: Fields): string | null {
  if (typeof item.call_id === 'string' && item.call_id !== '') return item.call_id
  return item.type === 'local_shell_call' && typeof item.id === 'string' ? item.id : null
}

/** Null where the output is neither text nor content. */
export function resultBlock(item: Fields, id: string): Block | null {
  if (item.type === 'tool_search_output') return resultOf(id, textOf(item.tools))
  const { output } = item
  if (!isObject(output)) return resultOf(id, contentOf(output))
  const block = resultOf(id, contentOf(output.content))
  return block !== null && output.success === false ? { ...block, is_error: true } : block
}

function resultOf(id: string, content: string | readonly Block[] | null): Block | null {
  return content === null ? null : { type: 'tool_result', tool_use_id: id, content }
}

const NAMES: ReadonlyMap<unknown, string> = new Map([
  ['local_shell_call', 'local_shell'],
  ['tool_search_call', 'tool_search'],
])

function callName({ type, name, namespace }: Fields): string | null {
  const own = NAMES.get(type) ?? name
  if (typeof own !== 'string' || own === '') return null
  if (typeof namespace !== 'string' || namespace === '') return own
  return namespace.endsWith('__') ? `${namespace}${own}` : `${namespace}__${own}`
}

/** The input of a call is an object: free text and what does not parse go into one under their own name. */
function inputOf(item: Fields, parsed: Json | undefined): unknown {
  if (isObject(parsed)) return parsed
  if (isObject(item.arguments)) return item.arguments
  if (item.arguments !== undefined) return { arguments: item.arguments }
  return item.action === undefined ? { input: item.input ?? '' } : { action: item.action }
}

function rawText({ id, name }: { readonly id: string; readonly name: string }, given: string): string {
  const texts = { type: '"tool_use"', id: JSON.stringify(id), name: JSON.stringify(name), input: given }
  return objectText(Object.entries(texts).map(([key, text]) => ({ key, text })))
}

/** A text stays a text: that is how the model saw it. */
function contentOf(content: unknown): string | readonly Block[] | null {
  return typeof content === 'string' ? content : contentBlocks(content)
}

function textOf(tools: unknown): string | null {
  return Array.isArray(tools) ? JSON.stringify(tools) : null
}

// The content of a Codex message or tool output as blocks. What has no counterpart is kept as it is.

/** Null where it is no content. */
export function contentBlocks(content: unknown): readonly Block[] | null {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content) || !content.every(isBlock)) return null
  return content.map(blockOf)
}

/** The readable text of a content, blocks joined by newlines; empty where there is none. */
export function contentText(content: unknown): string {
  const blocks = contentBlocks(content) ?? []
  const texts = blocks.flatMap((block) => (typeof block.text === 'string' ? [block.text] : []))
  return texts.join('\n')
}

const TEXT_TYPES = new Set(['input_text', 'output_text', 'summary_text', 'reasoning_text', 'text'])

function blockOf(item: Block): Block {
  if (TEXT_TYPES.has(item.type) && typeof item.text === 'string') return { type: 'text', text: item.text }
  return item.type === 'input_image' ? imageOf(item) : item
}

const DATA_URL = /^data:([^;,]+);base64,/

function imageOf(item: Block): Block {
  const { image_url: url } = item
  if (typeof url !== 'string') return item
  const mediaType = DATA_URL.exec(url)?.[1]
  if (mediaType === undefined) return { type: 'image', source: { type: 'url', url } }
  const data = url.slice(url.indexOf(',') + 1)
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data } }
}

/**
 * Ids of tool calls, each once in a session. OpenAI's are unique; other providers behind Codex count from 0
 * in every response, and a later call would pass for an earlier one.
 */
export interface CallIds {
  /** The id under which a new call goes. */
  opened(callId: string): string
  /** The id of the newest call so named. */
  answered(callId: string): string
}

export function createCallIds(): CallIds {
  const times = new Map<string, number>()
  return {
    opened(callId) {
      const time = (times.get(callId) ?? 0) + 1
      times.set(callId, time)
      return named(callId, time)
    },
    answered: (callId) => named(callId, times.get(callId) ?? 1),
  }
}

function named(callId: string, time: number): string {
  return time === 1 ? callId : `${callId}#${time}`
}
