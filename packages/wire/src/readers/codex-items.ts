/** One item of a Codex rollout as content blocks, with its author. */
import { type Block, isText, type RawBlock } from '@tidemark/core'
import type { CodexLine, Fields } from './codex-line.ts'
import { type CallIds, callBlock, callIdOf, contentBlocks, contentText, resultBlock } from './codex-tools.ts'

export type Part = ModelPart | InputPart | ToolPart | OtherPart | BadPart

export interface ModelPart {
  readonly from: 'model'
  readonly blocks: readonly Block[]
  readonly raw: readonly RawBlock[]
  /** Unique in the session: the id of its call, else its own. */
  readonly mark: string | null
}

/** Input to the next request, from the user or from Codex itself. */
export interface InputPart {
  readonly from: 'user' | 'host'
  readonly blocks: readonly Block[]
}

export interface ToolPart {
  readonly from: 'tool'
  readonly blocks: readonly Block[]
}

/** Kept in its place in the log, but not part of the conversation. */
export interface OtherPart {
  readonly from: 'other'
}

interface BadPart {
  readonly from: 'unreadable'
  readonly why: string
}

/** A response without content. */
export const SILENCE: ModelPart = { from: 'model', blocks: [], raw: [], mark: null }

export function partOf(item: Fields, ids: CallIds): Part {
  switch (item.type) {
    case 'message':
      return messagePart(item)
    case 'agent_message':
      return inputPart('host', item)
    case 'reasoning':
      return modelPart(item, { ...item, type: 'thinking', thinking: thoughts(item) })
    case 'function_call':
    case 'custom_tool_call':
    case 'local_shell_call':
    case 'tool_search_call':
      return callPart(item, ids)
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'tool_search_output':
      return outputPart(item, ids)
    case 'web_search_call':
    case 'image_generation_call':
    case 'compaction':
    case 'compaction_summary':
    case 'context_compaction':
      return modelPart(item, { ...item, type: item.type })
    default:
      return { from: 'other' }
  }
}

function messagePart(item: Fields): Part {
  if (item.role === 'developer' || item.role === 'system') return inputPart('host', item)
  if (item.role === 'user') {
    const part = inputPart('user', item)
    return part.from === 'user' && isContext(part.blocks) ? { ...part, from: 'host' } : part
  }
  const blocks = contentBlocks(item.content)
  if (item.role !== 'assistant') return bad('a message is of the user, the assistant or a developer')
  return blocks === null ? bad(NO_CONTENT) : { from: 'model', blocks, raw: [], mark: markOf(item) }
}

const NO_CONTENT = 'the content of a message is a list of objects with a type'

function inputPart(from: InputPart['from'], item: Fields): InputPart | BadPart {
  const blocks = contentBlocks(item.content)
  return blocks === null ? bad(NO_CONTENT) : { from, blocks }
}

function modelPart(item: Fields, block: Block): ModelPart {
  return { from: 'model', blocks: [block], raw: [], mark: markOf(item) }
}

function markOf({ id }: Fields): string | null {
  return typeof id === 'string' && id !== '' ? id : null
}

/** The readable part of reasoning: its text if present, else its summary. */
function thoughts({ content, summary }: Fields): string {
  return contentText(content) || contentText(summary)
}

/** A tool search without id is run by the provider itself, and the log does not have its result. */
function callPart(item: Fields, ids: CallIds): Part {
  const callId = callIdOf(item)
  if (callId === null) {
    if (item.type === 'tool_search_call') return modelPart(item, { ...item, type: item.type })
    return bad('a call has a call_id')
  }
  const call = callBlock(item, ids.opened(callId))
  return call === null
    ? bad('a call names its tool')
    : { from: 'model', blocks: [call.block], raw: call.raw, mark: callId }
}

function outputPart(item: Fields, ids: CallIds): Part {
  const { call_id: callId } = item
  if (typeof callId !== 'string') {
    return item.type === 'tool_search_output'
      ? modelPart(item, { ...item, type: item.type })
      : bad('an output has the call_id of its call')
  }
  const block = resultBlock(item, ids.answered(callId))
  return block === null
    ? bad('an output is a text or a list of objects with a type')
    : { from: 'tool', blocks: [block] }
}

function bad(why: string): BadPart {
  return { from: 'unreadable', why: `${why}; the line is set aside` }
}

/** A key that an item and its copy in a compacted history have in common. */
export function identityOf(part: ModelPart | InputPart | ToolPart): string {
  const [block] = part.blocks
  if (part.from === 'tool') return `result ${String(block?.tool_use_id)}`
  if (block?.type === 'tool_use') return `call ${String(block.id)}`
  const text = JSON.stringify(part.blocks)
  const whose = part.from === 'model' ? 'model' : 'input'
  if (text.length <= LONG) return `${whose} ${text}`
  return `${whose} ${text.length} ${text.slice(0, 1024)}${text.slice(-1024)}`
}

/** Longer items are images: length and both ends identify them well enough. */
const LONG = 65_536

export function isInput(part: Part): part is InputPart {
  return part.from === 'user' || part.from === 'host'
}

/** A message between agents, which Codex passes to the model like a user message. */
export function communicationPart(payload: Fields): Part {
  const { content } = payload
  if (typeof content !== 'string' || content === '') return { from: 'other' }
  return { from: 'host', blocks: [{ type: 'text', text: content }] }
}

// Messages with the user's role that Codex wrote itself: environment, instructions, notices.

/** An element that encloses the whole text. Codex's own names have an underscore, except those listed. */
const ELEMENT = /^<([a-z][\w-]*)[^>]*>/i
const NAMES_WITHOUT_UNDERSCORE = new Set(['skill', 'goal', 'plugins'])
const INSTRUCTIONS = '# AGENTS.md instructions'

/** Whether the message contains only text that Codex wrote. */
function isContext(blocks: readonly Block[]): boolean {
  const texts = blocks.filter(isText)
  return texts.length > 0 && texts.length === blocks.length && texts.every(({ text }) => isContextText(text))
}

function isContextText(text: string): boolean {
  const trimmed = text.trim()
  if (trimmed.startsWith(INSTRUCTIONS)) return true
  const name = ELEMENT.exec(trimmed)?.[1]
  if (name === undefined || !trimmed.endsWith(`</${name}>`)) return false
  return name.includes('_') || NAMES_WITHOUT_UNDERSCORE.has(name)
}

/** An item on its way to a record, before it is known which response it belongs to. */
export interface Draft {
  readonly line: number
  readonly timestamp: string
  /** The model in use at that line. */
  readonly model: string
  readonly part: ModelPart | InputPart | ToolPart | OtherPart
  /** The line itself, kept for items that are not part of the conversation. */
  readonly source: CodexLine
}
