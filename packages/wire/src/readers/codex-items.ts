/** Converts one item of a Codex rollout (Codex's session log) to content blocks, and determines who wrote it. */

import { isHostNotice } from '@tidemark/core/facts/host-texts'
import { type Block, isTextBlock } from '@tidemark/core/log/block'
import type { RawBlockText } from '@tidemark/core/log/record'
import type { CodexLine, JsonFields } from './codex-line.ts'
import {
  readContentText,
  readToolCallId,
  toCodexBlocks,
  toToolResult,
  toToolUse,
  type UniqueCallIds,
} from './codex-tools.ts'

export type ParsedCodexItem =
  | CodexModelItem
  | CodexInputItem
  | CodexToolResult
  | CodexOtherLine
  | UnreadableItem

export interface CodexModelItem {
  readonly from: 'model'
  readonly blocks: readonly Block[]
  readonly raw: readonly RawBlockText[]
  /** Id that is unique in the session: the call id of a tool call, else the item's own id; null if it has neither. */
  readonly identifier: string | null
}

/** Input to the next API request, written by the user or by Codex itself. */
export interface CodexInputItem {
  readonly from: 'user' | 'host'
  readonly blocks: readonly Block[]
}

export interface CodexToolResult {
  readonly from: 'tool'
  readonly blocks: readonly Block[]
}

/** A line of the log that is not part of the conversation, such as an event. */
export interface CodexOtherLine {
  readonly from: 'other'
}

interface UnreadableItem {
  readonly from: 'unreadable'
  readonly why: string
}

/** A model response that has no content. */
export const EMPTY_RESPONSE: CodexModelItem = { from: 'model', blocks: [], raw: [], identifier: null }

/** Reads a response item. Items of an unknown type count as no part of the conversation (`other`). */
export function readCodexItem(item: JsonFields, ids: UniqueCallIds): ParsedCodexItem {
  switch (item.type) {
    case 'message':
      return readMessage(item)
    case 'agent_message':
      return readInput('host', item)
    case 'reasoning':
      return toModelItem(item, { ...item, type: 'thinking', thinking: readReasoningText(item) })
    case 'function_call':
    case 'custom_tool_call':
    case 'local_shell_call':
    case 'tool_search_call':
      return readToolCall(item, ids)
    case 'function_call_output':
    case 'custom_tool_call_output':
    case 'tool_search_output':
      return readToolOutput(item, ids)
    case 'web_search_call':
    case 'image_generation_call':
    case 'compaction':
    case 'compaction_summary':
    case 'context_compaction':
      return toModelItem(item, { ...item, type: item.type })
    default:
      return { from: 'other' }
  }
}

function readMessage(item: JsonFields): ParsedCodexItem {
  if (item.role === 'developer' || item.role === 'system') return readInput('host', item)
  if (item.role === 'user') {
    const part = readInput('user', item)
    return part.from === 'user' && isCodexContext(part.blocks) ? { ...part, from: 'host' } : part
  }
  const blocks = toCodexBlocks(item.content)
  if (item.role !== 'assistant')
    return unreadableItem('a message is of the user, the assistant or a developer')
  return blocks === null
    ? unreadableItem(BAD_CONTENT)
    : { from: 'model', blocks, raw: [], identifier: readItemId(item) }
}

const BAD_CONTENT = 'the content of a message is a list of objects with a type'

function readInput(from: CodexInputItem['from'], item: JsonFields): CodexInputItem | UnreadableItem {
  const blocks = toCodexBlocks(item.content)
  return blocks === null ? unreadableItem(BAD_CONTENT) : { from, blocks }
}

function toModelItem(item: JsonFields, block: Block): CodexModelItem {
  return { from: 'model', blocks: [block], raw: [], identifier: readItemId(item) }
}

function readItemId({ id }: JsonFields): string | null {
  return typeof id === 'string' && id !== '' ? id : null
}

/** Returns the readable text of a reasoning item: its content if present, else its summary. */
function readReasoningText({ content, summary }: JsonFields): string {
  return readContentText(content) || readContentText(summary)
}

/**
 * Reads a tool call. A tool search without a call id is kept unchanged: the provider runs it, and its result is not in
 * the log.
 */
function readToolCall(item: JsonFields, ids: UniqueCallIds): ParsedCodexItem {
  const callId = readToolCallId(item)
  if (callId === null) {
    if (item.type === 'tool_search_call') return toModelItem(item, { ...item, type: item.type })
    return unreadableItem('a call has a call_id')
  }
  const call = toToolUse(item, ids.assign(callId))
  return call === null
    ? unreadableItem('a call names its tool')
    : { from: 'model', blocks: [call.block], raw: call.raw, identifier: callId }
}

function readToolOutput(item: JsonFields, ids: UniqueCallIds): ParsedCodexItem {
  const { call_id: callId } = item
  if (typeof callId !== 'string') {
    return item.type === 'tool_search_output'
      ? toModelItem(item, { ...item, type: item.type })
      : unreadableItem('an output has the call_id of its call')
  }
  const block = toToolResult(item, ids.resolve(callId))
  return block === null
    ? unreadableItem('an output is a text or a list of objects with a type')
    : { from: 'tool', blocks: [block] }
}

function unreadableItem(why: string): UnreadableItem {
  return { from: 'unreadable', why: `${why}; the line is left out` }
}

/** Returns a key that identifies an item by its content. A copy of the item in a compacted history has the same key. */
export function createItemKey(part: CodexModelItem | CodexInputItem | CodexToolResult): string {
  const [block] = part.blocks
  if (part.from === 'tool') return `result ${String(block?.tool_use_id)}`
  if (block?.type === 'tool_use') return `call ${String(block.id)}`
  const text = JSON.stringify(part.blocks)
  const whose = part.from === 'model' ? 'model' : 'input'
  if (text.length <= MAX_IDENTITY_LENGTH) return `${whose} ${text}`
  return `${whose} ${text.length} ${text.slice(0, 1024)}${text.slice(-1024)}`
}

/**
 * Maximum length in characters at which the whole content is used as key. Longer items are images; their length, start
 * and end identify them.
 */
const MAX_IDENTITY_LENGTH = 65_536

export function isCodexInputItem(part: ParsedCodexItem): part is CodexInputItem {
  return part.from === 'user' || part.from === 'host'
}

/** Reads a message from another agent, which Codex sends to the model as a user message. */
export function readAgentMessage(payload: JsonFields): ParsedCodexItem {
  const { content } = payload
  if (typeof content !== 'string' || content === '') return { from: 'other' }
  return { from: 'host', blocks: [{ type: 'text', text: content }] }
}

// Detects messages with the user's role that Codex wrote itself, such as environment, instructions and notices.

/** Matches the XML element that encloses a text. */
const ENCLOSING_ELEMENT = /^<([a-z][\w-]*)[^>]*>/i
/** Names of elements that Codex writes, besides those that every reader of user input knows. */
const CODEX_ELEMENT =
  /_(?:context|instructions|notification|aborted|spec|mode|switch|info|state)$|^(?:goal|plugins)$/

/** Checks whether all text of a message was written by Codex itself. */
function isCodexContext(blocks: readonly Block[]): boolean {
  const texts = blocks.filter(isTextBlock)
  return texts.length > 0 && texts.length === blocks.length && texts.every(({ text }) => isContextText(text))
}

function isContextText(text: string): boolean {
  const trimmed = text.trim()
  if (isHostNotice(trimmed)) return true
  const name = ENCLOSING_ELEMENT.exec(trimmed)?.[1]
  return name !== undefined && CODEX_ELEMENT.test(name) && trimmed.endsWith(`</${name}>`)
}

/** Checks whether a message reports a shell command that the user ran, which does not begin a turn. */
export function isUserShellCommand({ blocks }: CodexInputItem): boolean {
  return blocks.some(
    (block) => isTextBlock(block) && block.text.trimStart().startsWith('<user_shell_command>'),
  )
}

/** The working directory and the Git branch of a line, as far as they are known. */
export interface CodexSurroundings {
  readonly cwd?: string
  readonly gitBranch?: string
}

/** A log line that is held back until the model response that it belongs to is known. It then becomes a record. */
export interface PendingCodexLine {
  readonly line: number
  readonly timestamp: string
  /** The model that was in use when the line was logged. */
  readonly model: string
  /** The working directory, and the Git branch when the session began, as far as they are known. */
  readonly surroundings: CodexSurroundings
  readonly item: CodexModelItem | CodexInputItem | CodexToolResult | CodexOtherLine
  /** The parsed log line. It becomes the record itself if it is not part of the conversation. */
  readonly source: CodexLine
}
