/**
 * Counts the blocks before each message of an API request, and finds where two requests first differ. Also counts
 * positions, the unit in which a cache marker looks back. Messages that can no longer change are processed only once,
 * so the time depends on what was added.
 */

import type { TracedMessage } from '../context/flatten-context.ts'
import type { Role } from '../context/payload.ts'
import {
  type Block,
  CACHE_MARKER_FIELD,
  isCacheDeletionBlock,
  isThinkingBlock,
  toBlocks,
} from '../log/block.ts'
import { countJsonBytesOnce, isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { isNewTurnBlock } from '../log/record.ts'

/**
 * The messages of an API request. `frozen`: messages that can no longer change. `tail`: the messages after them, which
 * may still change.
 */
export interface MessageList {
  readonly frozen: AppendList<TracedMessage>
  readonly tail: readonly TracedMessage[]
}

/** Properties of the messages as a whole that are part of the provider's cache key. */
export interface MessageTraits {
  readonly hasImages: boolean
  /** True if a document has citations enabled. */
  readonly hasCitations: boolean
  /** True if a message defines a tool (`tool_addition`). */
  readonly definesTools: boolean
}

/** Counts over all message blocks before a certain point of an API request. */
interface BlockTotals {
  readonly blocks: number
  /**
   * Number of positions, the unit in which a cache marker looks back. Usually each block is one position. With some
   * providers, consecutive tool calls or consecutive tool results together are one position.
   */
  readonly positions: number
  /** Number of thinking blocks. */
  readonly thinkingBlocks: number
  /**
   * Size of the blocks as JSON in UTF-8 bytes; null if the index does not count bytes. The tokens of a stretch of
   * messages are estimated from it.
   */
  readonly bytes: number | null
  /** Set if the last block was a tool call or tool result: its type. A next block of the same type then adds no position. */
  readonly openRun: string | null
  /** Number of blocks before the newest user prompt. */
  readonly blocksBeforePrompt: number
  readonly traits: MessageTraits
}

/** The messages of an API request, with the block counts before each message. Extended from request to request. */
export interface BlockIndex {
  readonly messages: MessageList
  readonly starts: AppendList<BlockTotals>
  readonly tailStarts: readonly BlockTotals[]
  /** Block counts after the last frozen message (a message that can no longer change). */
  readonly frozenEnd: BlockTotals
  readonly end: BlockTotals
  readonly collapsesRuns: boolean
}

const NO_TRAITS: MessageTraits = { hasImages: false, hasCitations: false, definesTools: false }
const START_TOTALS: BlockTotals = {
  blocks: 0,
  positions: 0,
  thinkingBlocks: 0,
  bytes: 0,
  openRun: null,
  blocksBeforePrompt: 0,
  traits: NO_TRAITS,
}

/**
 * Counts the blocks of the messages. `collapses`: consecutive tool calls, or consecutive tool results, count as one
 * position. `from`: index of an earlier request, whose frozen messages are not counted again. `countsBytes`: false
 * leaves out the bytes, which take the most time to count.
 */
export function indexBlocks(
  messages: MessageList,
  collapses: boolean,
  from?: BlockIndex,
  { countsBytes = true }: { readonly countsBytes?: boolean } = {},
): BlockIndex {
  const isGrown =
    from?.collapsesRuns === collapses &&
    (from.frozenEnd.bytes !== null) === countsBytes &&
    messages.frozen.extends(from.messages.frozen)
  let [starts, frozenEnd] = isGrown
    ? [from.starts, from.frozenEnd]
    : [AppendList.of<BlockTotals>(), countsBytes ? START_TOTALS : { ...START_TOTALS, bytes: null }]
  for (let index = starts.length; index < messages.frozen.length; index += 1) {
    starts = starts.push(frozenEnd)
    frozenEnd = addMessageTotals(frozenEnd, messages.frozen.at(index), collapses)
  }
  const tailStarts: BlockTotals[] = []
  let end = frozenEnd
  for (const message of messages.tail) {
    tailStarts.push(end)
    end = addMessageTotals(end, message, collapses)
  }
  return { messages, starts, tailStarts, frozenEnd, end, collapsesRuns: collapses }
}

export function countMessages({ frozen, tail }: MessageList): number {
  return frozen.length + tail.length
}

/** Returns the message at an index over frozen messages and tail; undefined past the end. */
export function findMessageAt({ frozen, tail }: MessageList, index: number): TracedMessage | undefined {
  return index < frozen.length ? frozen.at(Math.max(0, index)) : tail[index - frozen.length]
}

/** Returns the content of a message as blocks. A non-empty string becomes one text block, an empty string no block. */
export function toMessageBlocks({ message: { content } }: TracedMessage): readonly Block[] {
  return content === '' ? [] : toBlocks(content)
}

/** Returns the block counts before the message at `index`. Past the last message, returns the counts of all messages. */
export function readTotalsBeforeMessage(counted: BlockIndex, index: number): BlockTotals {
  const { starts, tailStarts, end } = counted
  return starts.at(index) ?? tailStarts[index - starts.length] ?? end
}

/** Returns the block counts from the first message up to and including one block of the message at `index`. */
export function countTotalsThroughBlock(counted: BlockIndex, index: number, block: number): BlockTotals {
  const message = findMessageAt(counted.messages, index)
  let count = readTotalsBeforeMessage(counted, index)
  if (message === undefined) return count
  const blocks = toMessageBlocks(message)
  // Nearly always the last block is asked for. Its counts are known, and no block has to be read.
  if (block >= blocks.length - 1) return readTotalsBeforeMessage(counted, index + 1)
  for (const each of blocks.slice(0, block + 1)) {
    count = addBlockTotals(count, each, message.message.role, counted.collapsesRuns)
  }
  return count
}

/** Returns the counts over the first `blocks` message blocks of the API request. */
export function readTotalsOfFirstBlocks(counted: BlockIndex, blocks: number): BlockTotals {
  const index = findMessageIndexOfBlock(counted, blocks)
  return countTotalsThroughBlock(counted, index, blocks - readTotalsBeforeMessage(counted, index).blocks - 1)
}

/**
 * Returns the index of the message that contains the message block number `block`. The first block of the API request
 * has number 1.
 */
export function findMessageIndexOfBlock(counted: BlockIndex, block: number): number {
  let [low, high] = [0, Math.max(0, countMessages(counted.messages) - 1)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (readTotalsBeforeMessage(counted, middle).blocks < block) low = middle
    else high = middle - 1
  }
  return low
}

function addMessageTotals(
  before: BlockTotals,
  message: TracedMessage | undefined,
  collapses: boolean,
): BlockTotals {
  if (message === undefined) return before
  const { role } = message.message
  return toMessageBlocks(message).reduce(
    (count, block) => addBlockTotals(count, block, role, collapses),
    before,
  )
}

const RUN_BLOCK_TYPES = new Set(['tool_use', 'tool_result'])

function addBlockTotals(count: BlockTotals, block: Block, role: Role, collapses: boolean): BlockTotals {
  const bytes = count.bytes === null ? null : count.bytes + (countJsonBytesOnce(block) ?? 0)
  // Deletions from the cache are not part of the prompt, so they take no position.
  if (isCacheDeletionBlock(block)) return { ...count, blocks: count.blocks + 1, bytes }
  const run = collapses && RUN_BLOCK_TYPES.has(block.type) ? `${role} ${block.type}` : null
  const goesOn = run !== null && run === count.openRun
  return {
    blocks: count.blocks + 1,
    positions: count.positions + (goesOn ? 0 : 1),
    thinkingBlocks: count.thinkingBlocks + (isThinkingBlock(block) ? 1 : 0),
    bytes,
    openRun: run,
    blocksBeforePrompt: role === 'user' && isNewTurnBlock(block) ? count.blocks : count.blocksBeforePrompt,
    traits: withBlockTraits(count.traits, block),
  }
}

function withBlockTraits(traits: MessageTraits, block: Block): MessageTraits {
  const inner: readonly unknown[] = Array.isArray(block.content) ? block.content : []
  const all = block.type === 'tool_result' ? [block, ...inner.filter(isObject)] : [block]
  const hasImages = traits.hasImages || all.some(({ type }) => type === 'image')
  const cites =
    traits.hasCitations || all.some(({ citations }) => isObject(citations) && citations.enabled === true)
  const { type, tool } = block
  const definesTools =
    traits.definesTools || (type === 'tool_addition' && isObject(tool) && isObject(tool.definition))
  const isSame =
    hasImages === traits.hasImages && cites === traits.hasCitations && definesTools === traits.definesTools
  return isSame ? traits : { hasImages, hasCitations: cites, definesTools }
}

// The functions below find where two API requests first differ.

/** A block of an API request: the index of its message, and the index of the block in that message. */
export interface BlockPosition {
  readonly message: number
  readonly block: number
}

/**
 * Returns the first block where `after` differs from `before`; null if `after` begins with all blocks of `before`. A
 * block added to the last message of `before` is no difference; one added to an earlier message is. Cache markers are
 * ignored.
 */
export function findFirstChangedBlock(before: MessageList, after: MessageList): BlockPosition | null {
  const [short, long] = before.frozen.length <= after.frozen.length ? [before, after] : [after, before]
  const start = long.frozen.extends(short.frozen) ? short.frozen.length : 0
  const last = countMessages(before) - 1
  for (let index = start; index <= last; index += 1) {
    const block = findDifferingBlock(
      findMessageAt(before, index),
      findMessageAt(after, index),
      index === last,
    )
    if (block !== null) return { message: index, block }
  }
  return null
}

/** Returns how many leading blocks of `one` are also the leading blocks of `other`. */
export function countSharedMessageBlocks(one: BlockIndex, other: BlockIndex): number {
  const found = findFirstChangedBlock(one.messages, other.messages)
  return found === null ? one.end.blocks : readTotalsBeforeMessage(one, found.message).blocks + found.block
}

function findDifferingBlock(
  before: TracedMessage | undefined,
  after: TracedMessage | undefined,
  mayGrow: boolean,
): number | null {
  if (before === undefined || before === after) return null
  if (after === undefined || !hasSameFields(before, after)) return 0
  const [blocks, others] = [toMessageBlocks(before), toMessageBlocks(after)]
  const index = blocks.findIndex((block, at) => {
    const other = others[at]
    if (other === undefined) return true
    const [raw, otherRaw] = [before.raw?.get(at), after.raw?.get(at)]
    if (raw === undefined && otherRaw === undefined) return !isSameValue(block, other, true)
    return (raw ?? JSON.stringify(block)) !== (otherRaw ?? JSON.stringify(other))
  })
  if (index !== -1) return index
  return mayGrow || others.length === blocks.length ? null : blocks.length
}

/** True if two messages have the same role and the same other fields besides `content`. */
function hasSameFields(one: TracedMessage, other: TracedMessage): boolean {
  const { content: _, ...fields } = one.message
  const { content: __, ...otherFields } = other.message
  return isSameValue(fields, otherFields, false)
}

/**
 * True if both values are sent as the same JSON text. The order of keys matters, because providers cache the exact
 * bytes. Undefined fields are not sent.
 */
export function isSameJson(one: unknown, other: unknown): boolean {
  return isSameValue(one, other, false)
}

/** Fields of a block that can contain further blocks, and so further cache markers. */
const NESTED_BLOCK_FIELDS = new Set(['content', 'source'])

/**
 * True if both values are sent as the same JSON. `ignoresMarkers`: ignore cache markers on the block and on blocks
 * inside it.
 */
function isSameValue(one: unknown, other: unknown, ignoresMarkers: boolean): boolean {
  if (one === other) return true
  if (Array.isArray(one) && Array.isArray(other)) {
    return (
      one.length === other.length && one.every((item, at) => isSameValue(item, other[at], ignoresMarkers))
    )
  }
  if (!isObject(one) || !isObject(other)) return false
  const listSentKeys = (fields: Readonly<Record<string, unknown>>): readonly string[] =>
    Object.keys(fields).filter(
      (key) => fields[key] !== undefined && !(ignoresMarkers && key === CACHE_MARKER_FIELD),
    )
  const [keys, others] = [listSentKeys(one), listSentKeys(other)]
  if (keys.length !== others.length) return false
  return keys.every(
    (key, at) =>
      key === others[at] && isSameValue(one[key], other[key], ignoresMarkers && NESTED_BLOCK_FIELDS.has(key)),
  )
}

/** Returns the index of the newest message with a block from the log record `uuid`; null if there is none. */
export function findMessageIndexOfRecord(messages: MessageList, uuid: string): number | null {
  for (let index = countMessages(messages) - 1; index >= 0; index -= 1) {
    if (findMessageAt(messages, index)?.origins.includes(uuid) === true) return index
  }
  return null
}
