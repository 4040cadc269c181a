/** One item of a rollout, in our terms: who said it, in blocks. */
import { type Block, isText, type RawBlock } from '@tidemark/core'
import type { CodexLine, Fields } from './codex-line.ts'
import { type CallIds, callBlock, callIdOf, contentBlocks, contentText, resultBlock } from './codex-tools.ts'

export type Part = ModelPart | InputPart | ToolPart | OtherPart | BadPart

export interface ModelPart {
  readonly from: 'model'
  readonly blocks: readonly Block[]
  readonly raw: readonly RawBlock[]
  /** What tells the item from all others: the id of its call, or its own. */
  readonly mark: string | null
}

/** What goes into the next request: of the person, or of the program in the person's place. */
export interface InputPart {
  readonly from: 'person' | 'host'
  readonly blocks: readonly Block[]
}

export interface ToolPart {
  readonly from: 'tool'
  readonly blocks: readonly Block[]
}

/** Kept in its place and not shown to a model. */
export interface OtherPart {
  readonly from: 'other'
}

interface BadPart {
  readonly from: 'nobody'
  readonly why: string
}

/** A response that said nothing. */
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
    const part = inputPart('person', item)
    return part.from === 'person' && isContext(part.blocks) ? { ...part, from: 'host' } : part
  }
  const blocks = contentBlocks(item.content)
  if (item.role !== 'assistant') return bad('a message is of the user, the assistant or a developer')
  return blocks === null ? bad(NO_CONTENT) : { from: 'model', blocks, raw: [], mark: markOf(item) }
}

const NO_CONTENT = 'the content of a message is a list of objects with a type'

function inputPart(from: 'person' | 'host', item: Fields): InputPart | BadPart {
  const blocks = contentBlocks(item.content)
  return blocks === null ? bad(NO_CONTENT) : { from, blocks }
}

function modelPart(item: Fields, block: Block): ModelPart {
  return { from: 'model', blocks: [block], raw: [], mark: markOf(item) }
}

function markOf({ id }: Fields): string | null {
  return typeof id === 'string' && id !== '' ? id : null
}

/** What can be read of the reasoning: its text where that is open, else the summary of it. */
function thoughts({ content, summary }: Fields): string {
  return contentText(content) || contentText(summary)
}

/** A call without id is answered by the provider itself, and the log does not have its answer. */
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
  return { from: 'nobody', why: `${why}; the line is set aside` }
}

/** The same for what was said and for a copy of it. */
export function identityOf(part: ModelPart | InputPart | ToolPart): string {
  const [block] = part.blocks
  if (part.from === 'tool') return `result ${String(block?.tool_use_id)}`
  if (block?.type === 'tool_use') return `call ${String(block.id)}`
  const text = JSON.stringify(part.blocks)
  const whose = part.from === 'model' ? 'model' : 'input'
  return text.length <= LONG ? `${whose} ${text}` : `${whose} ${text.length} ${ends(text)}`
}

/** Longer than anything people write: images. Length and both ends tell them apart well enough. */
const LONG = 65_536

function ends(text: string): string {
  return text.slice(0, 1024) + text.slice(-1024)
}

export function isInput(part: Part): part is InputPart {
  return part.from === 'person' || part.from === 'host'
}

/** A communication between agents, which Codex hands to the model like a message. */
export function communicationPart(payload: Fields): Part {
  const { content } = payload
  const isSaid = typeof content === 'string' && content !== ''
  return isSaid ? { from: 'host', blocks: [{ type: 'text', text: content }] } : { from: 'other' }
}

// Messages under the user's role that Codex wrote itself: the environment, instructions, notices.

/** An element that holds the whole text. Codex's own are named in snake_case. */
const ELEMENT = /^<([a-z][\w-]*)[^>]*>/i
const NAMES_WITHOUT_UNDERSCORE = new Set(['skill', 'goal', 'plugins'])
const INSTRUCTIONS = '# AGENTS.md instructions'

/** Nothing in the message but what Codex wrote. */
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

// A record in the making: what it says and where it stood, before it is known which response it belongs to.

export interface Draft {
  readonly line: number
  readonly timestamp: string
  /** The model in use where the line stood. */
  readonly model: string
  readonly part: ModelPart | InputPart | ToolPart | OtherPart
  /** The line as it was, kept for what has no other part. */
  readonly source: CodexLine
}
