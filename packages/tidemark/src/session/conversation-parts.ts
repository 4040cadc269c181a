/**
 * The blocks that identify a conversation, read from a client's message list or from the log, so that the two can be
 * compared. `isSamePart` tells whether two blocks are the same.
 */
import {
  type Block,
  isBlankTextBlock,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  PROVIDER_ITEM_TYPE,
  readBlockOrigin,
  type ToolResultBlock,
  toBlocks,
  withoutCacheMarker,
} from '@tidemark/core/log/block'
import { isObject, type JsonObject } from '@tidemark/core/log/json'
import { isKnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import type { SessionLog } from '@tidemark/core/log/session-log'
import type { ClientMessage } from '@tidemark/wire/providers/client-request'
import type { MessageInput } from './messages.ts'

/** One block of a conversation, without thinking and blank text, which callers often remove. */
export interface ConversationPart {
  readonly role: ClientMessage['role']
  readonly block: Block
  /** Id of the response; null for other messages, and for a response that was given without its id. */
  readonly id: string | null
  /** Number of the message, from 0. Consecutive user messages count as one, because callers join tool results. */
  readonly message: number
  /** Signatures of the thinking in the response right before this block. */
  readonly thinking: readonly string[]
  /** Fields of a user message besides role and content. */
  readonly fields: JsonObject
  /** Where the block comes from: the index of its message or record in the list, and its index in that message. */
  readonly from: { readonly index: number; readonly block: number }
}

/** The type of the block that stands for a whole system message within the conversation. */
const SYSTEM_MESSAGE = 'system_message'

/**
 * True if two blocks of the same role have the same identity: calls by id and name, results by their call, texts by
 * their text, others by value. Their contents may still differ.
 */
export function isSamePart(one: ConversationPart | undefined, other: ConversationPart | undefined): boolean {
  if (one === undefined || other === undefined || one.role !== other.role) return false
  const [a, b] = [one.block, other.block]
  // Some clients remove white space at the end of an answer.
  if (isTextBlock(a) && isTextBlock(b)) return a.text === b.text || a.text.trim() === b.text.trim()
  if (isToolUse(a) && isToolUse(b)) return a.id === b.id && a.name === b.name
  if (isToolResult(a) && isToolResult(b)) return a.tool_use_id === b.tool_use_id
  return a.type === b.type && formatWithoutMarker(a) === formatWithoutMarker(b)
}

/** True if two results of the same call have the same text and error flag. */
export function isSameResult(one: ToolResultBlock, other: ToolResultBlock): boolean {
  if ((one.is_error === true) !== (other.is_error === true)) return false
  return one.content === other.content || toToolResultText(one) === toToolResultText(other)
}

/**
 * Returns the text of a result. Only a result that is more than one text becomes JSON, because every request compares all
 * results.
 */
export function toToolResultText({ content = '' }: ToolResultBlock): string {
  if (typeof content === 'string') return content
  const blocks = (content as readonly Block[]).filter((block) => !isTextBlock(block) || block.text !== '')
  const [only] = blocks
  if (only === undefined) return ''
  return blocks.length === 1 && isTextBlock(only) ? only.text : JSON.stringify(blocks)
}

/**
 * Returns for each known block its index in the given list, or null. Calls and results are matched by id, then equal
 * texts between those matches, then changed versions between those.
 */
export function alignParts(
  known: readonly ConversationPart[],
  given: readonly ConversationPart[],
): readonly (number | null)[] {
  const ids = new Map(given.map((part, index) => [toCallKey(part), index]))
  const byId = known.map((part) => ids.get(toCallKey(part) ?? '') ?? null)
  const equal = fillGaps(byId, given.length, ({ from, to }) => {
    const places = new Map<string | null, number[]>()
    for (let at = from; at < to; at += 1) {
      const key = toValueKey(given[at] as ConversationPart)
      const own = places.get(key)
      if (own === undefined) places.set(key, [at])
      else own.push(at)
    }
    return (old, next) => {
      const key = toValueKey(known[old] as ConversationPart)
      const own = key === null ? [] : (places.get(key) ?? [])
      while (own[0] !== undefined && own[0] < next) own.shift()
      return own[0] ?? null
    }
  })
  return fillGaps(equal, given.length, ({ start, end, from, to }) => (old, next) => {
    const one = known[old] as ConversationPart
    if (toCallKey(one) !== null) return null
    const isSameLength = to - from === end - start
    for (let at = next; at < Math.min(to, next + MOST_LOOKED_AT); at += 1) {
      const other = given[at] as ConversationPart
      if (one.role !== other.role || one.block.type !== other.block.type) continue
      if (isSameLength || isVersion(one.block, other.block)) return at
    }
    return null
  })
}

/** Maximum blocks that are searched for a changed version of a text, because a conversation may have thousands. */
const MOST_LOOKED_AT = 200

/** Known blocks from `start` to before `end` whose place in the given list, if any, is from `from` to before `to`. */
interface Gap {
  readonly start: number
  readonly end: number
  readonly from: number
  readonly to: number
}

/** Fills each gap between two matched blocks by a search in the same gap of the given list. Keeps the order. */
function fillGaps(
  places: readonly (number | null)[],
  length: number,
  createSearch: (gap: Gap) => (known: number, next: number) => number | null,
): readonly (number | null)[] {
  const filled = [...places]
  let next = 0
  for (let start = 0; start < places.length; start += 1) {
    const place = places[start] ?? null
    if (place !== null) {
      next = Math.max(next, place + 1)
      continue
    }
    let end = start
    while (end < places.length && (places[end] ?? null) === null) end += 1
    const search = createSearch({ start, end, from: next, to: places[end] ?? length })
    for (let known = start; known < end; known += 1) {
      const found = search(known, next)
      if (found === null) continue
      filled[known] = found
      next = found + 1
    }
    start = end - 1
  }
  return filled
}

function toCallKey({ block }: ConversationPart): string | null {
  if (isToolUse(block)) return `call ${block.id}`
  return isToolResult(block) ? `result ${block.tool_use_id}` : null
}

/** Returns what two blocks share if `isSamePart` says that they are the same; null for calls and results, which have ids. */
function toValueKey(part: ConversationPart): string | null {
  return toCallKey(part) === null ? toPartKey(part) : null
}

/** Returns a text that is equal for two blocks if `isSamePart` is true for them. Not for calls and results, which have ids. */
export function toPartKey({ role, block }: ConversationPart): string {
  return isTextBlock(block)
    ? `${role} text ${block.text.trim()}`
    : `${role} ${block.type} ${formatWithoutMarker(block)}`
}

/** True if two texts share, at start and end together, at least half of the shorter one. */
function isVersion(one: Block, other: Block): boolean {
  if (!isTextBlock(one) || !isTextBlock(other)) return false
  const shorter = Math.min(one.text.length, other.text.length)
  const { start, end } = findCommonEnds(one.text, other.text)
  return start + end >= shorter / 2
}

/** Returns how many characters two texts share at the start, and at the end without those. */
export function findCommonEnds(one: string, other: string): { readonly start: number; readonly end: number } {
  const most = Math.min(one.length, other.length)
  let start = 0
  while (start < most && one[start] === other[start]) start += 1
  let end = 0
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end += 1
  return { start, end }
}

function formatWithoutMarker(block: Block): string {
  return block.type === PROVIDER_ITEM_TYPE ? formatItem(block) : JSON.stringify(withoutCacheMarker(block))
}

/**
 * Formats an item of the provider so that equal items give equal texts: in a fixed order of keys, and without status
 * and empty fields, which some clients leave out.
 */
function formatItem(block: Block): string {
  const { vendor, item = {}, refersTo } = readBlockOrigin(block) ?? {}
  const isGiven = ([name, value]: [string, unknown]): boolean =>
    name !== 'status' && value !== null && !(Array.isArray(value) && value.length === 0)
  const fields = Object.entries(item)
    .filter(isGiven)
    .sort(([one], [other]) => (one < other ? -1 : 1))
  return JSON.stringify([vendor, refersTo, fields])
}

/** Compares two JSON values, ignoring the order of keys. Called for whole conversations, so it copies nothing. */
export function isSameJsonValue(one: unknown, other: unknown): boolean {
  if (Array.isArray(one))
    return (
      Array.isArray(other) &&
      one.length === other.length &&
      one.every((item, index) => isSameJsonValue(item, other[index]))
    )
  if (!isObject(one) || !isObject(other)) return one === other
  const names = Object.keys(one)
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => isSameJsonValue(one[name], other[name]))
  )
}

/** Lists the blocks of messages that a client sends or a caller appends, without attachments. */
export function listInputParts(
  inputs: readonly (MessageInput | ClientMessage)[],
): readonly ConversationPart[] {
  const parts: ConversationPart[] = []
  for (const [index, input] of inputs.entries()) {
    if (input.role === 'attachment') continue
    const { role } = input as ClientMessage
    const id = role === 'assistant' && typeof input.id === 'string' ? input.id : null
    const shared = {
      role,
      id,
      fields: role === 'user' ? readFields(input as ClientMessage) : NO_FIELDS,
      index,
    }
    addParts(parts, shared, readBlocks(input as ClientMessage), { isNew: role === 'assistant', thinking: [] })
  }
  return parts
}

const NO_FIELDS: JsonObject = {}

function readFields(message: ClientMessage): JsonObject {
  // Fast path: few of thousands of messages have other fields than role and content.
  if (Object.keys(message).length === 2) return NO_FIELDS
  const { role: _, content: __, ...fields } = message
  return fields as JsonObject
}

/** Lists the blocks of the conversation in these records, without those that the engine added. */
export function listLoggedParts(records: Iterable<SessionRecord>): readonly ConversationPart[] {
  const parts: ConversationPart[] = []
  let index = -1
  // Records of one response are consecutive, and its thinking usually has a record of its own.
  let last: { readonly id: string | null; readonly thinking: readonly string[] } = { id: null, thinking: [] }
  for (const record of records) {
    index += 1
    if (!isKnownRecord(record) || (record.type !== 'user' && record.type !== 'assistant')) continue
    if (record.isMeta === true || record.isCompactSummary === true) continue
    const { message } = record
    const id = record.type === 'assistant' ? record.message.id : null
    const fields = record.type === 'user' ? (record.messageFields ?? NO_FIELDS) : NO_FIELDS
    const thinking = id !== null && last.id === id ? last.thinking : []
    const isNew = parts.at(-1)?.id !== id
    const rest = addParts(
      parts,
      { role: message.role, id, fields, index },
      readBlocks(message as ClientMessage),
      {
        isNew,
        thinking,
      },
    )
    last = { id, thinking: rest }
  }
  return parts
}

function readBlocks(message: ClientMessage): readonly Block[] {
  const { role, content } = message
  if (role !== 'system') return toBlocks(content)
  return [
    { ...readFields(message), type: SYSTEM_MESSAGE, content: [...toBlocks(content)] } as unknown as Block,
  ]
}

/** Adds the blocks of a message or record. Returns the thinking that no block has followed yet. */
function addParts(
  parts: ConversationPart[],
  { index, ...shared }: Pick<ConversationPart, 'role' | 'id' | 'fields'> & { readonly index: number },
  blocks: readonly Block[],
  { isNew, thinking: before }: { readonly isNew: boolean; readonly thinking: readonly string[] },
): readonly string[] {
  const last = parts.at(-1)
  const number = last?.message ?? -1
  const message = isNew || last?.role !== shared.role ? number + 1 : number
  let thinking = before
  for (const [block, each] of blocks.entries()) {
    if (isThinkingBlock(each)) thinking = [...thinking, String(each.signature ?? each.data)]
    if (isThinkingBlock(each) || isBlankTextBlock(each)) continue
    parts.push({ ...shared, block: each, thinking, message, from: { index, block } })
    thinking = []
  }
  return thinking
}

/** A response from the log, in the form in which a client would send it. */
interface LoggedResponse {
  readonly message: ClientMessage & { readonly content: readonly Block[] }
  readonly findExactBlock: (block: Block) => string | undefined
}

/** Returns a response by its id, on whichever branch it is; null if the log does not have it. */
export function readLoggedResponse(
  { records, responseStarts }: SessionLog,
  id: string,
): LoggedResponse | null {
  const content: Block[] = []
  const exact = new Map<unknown, string>()
  for (let index = responseStarts.get(id) ?? records.length; index < records.length; index += 1) {
    const record = records.at(index)
    if (record === undefined || !isKnownRecord(record) || record.type !== 'assistant') continue
    if (record.message.id !== id) break
    const blocks = toBlocks(record.message.content)
    for (const { index: at, text } of record.rawBlocks ?? []) exact.set(blocks[at]?.id, text)
    content.push(...blocks)
  }
  if (content.length === 0) return null
  return { message: { role: 'assistant', content }, findExactBlock: ({ id: call }) => exact.get(call) }
}

/** Orders the results at the start of each user message by their call: clients differ in the order of parallel results. */
export function sortResults(parts: readonly ConversationPart[]): readonly ConversationPart[] {
  const toKey = ({ block }: ConversationPart): string => (isToolResult(block) ? block.tool_use_id : '')
  return parts.toSorted((one, other) => {
    if (one.message !== other.message) return one.message - other.message
    const [left, right] = [isToolResult(one.block), isToolResult(other.block)]
    if (left !== right) return left ? -1 : 1
    return left && toKey(one) !== toKey(other) ? (toKey(one) < toKey(other) ? -1 : 1) : 0
  })
}
