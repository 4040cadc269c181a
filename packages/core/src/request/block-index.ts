/**
 * Counts the blocks and cache look-back positions before each message of an API request, and finds where two requests
 * first differ. Frozen messages are counted and compared once, so an API request costs time only for what it added.
 */

import type { TracedMessage } from '../context/flatten.ts'
import type { Role } from '../context/payload.ts'
import { type Block, isThinkingBlock, toBlocks } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { isTurnEndingBlock } from '../log/record.ts'

/**
 * The messages of an API request: `frozen` messages never change, `tail` holds the messages after them as they would be
 * sent now.
 */
export interface MessageList {
  readonly frozen: AppendList<TracedMessage>
  readonly tail: readonly TracedMessage[]
}

/** Properties of all messages together that are part of the provider's cache key. */
export interface MessageTraits {
  readonly hasImages: boolean
  /** True if a document has citations enabled. */
  readonly hasCitations: boolean
  /** True if a message defines a tool (`tool_addition`). */
  readonly definesTools: boolean
}

/** Running totals over the blocks before some point of the messages. */
interface BlockTotals {
  readonly blocks: number
  /**
   * Number of positions as a cache marker counts them when it looks back. With some providers a run of tool calls, or a
   * run of tool results, counts as one position.
   */
  readonly positions: number
  /** Number of thinking blocks. */
  readonly thinkingBlocks: number
  /** Kind of the run of tool calls or tool results that the next block may continue; null if there is none. */
  readonly openRun: string | null
  /** Number of blocks before the newest user block that started a new turn. */
  readonly blocksBeforePrompt: number
  readonly traits: MessageTraits
}

/** The messages of an API request, with the running block totals before each message. */
export interface BlockIndex {
  readonly messages: MessageList
  readonly starts: AppendList<BlockTotals>
  readonly tailStarts: readonly BlockTotals[]
  /** Totals after the last frozen message. */
  readonly frozenEnd: BlockTotals
  readonly end: BlockTotals
  readonly collapsesRuns: boolean
}

const NO_TRAITS: MessageTraits = { hasImages: false, hasCitations: false, definesTools: false }
const START_TOTALS: BlockTotals = {
  blocks: 0,
  positions: 0,
  thinkingBlocks: 0,
  openRun: null,
  blocksBeforePrompt: 0,
  traits: NO_TRAITS,
}

/**
 * Counts the blocks of the messages. `collapses`: a run of tool calls or of tool results counts as one position.
 * `from`: the index for an earlier state; frozen messages that it contains are not counted again.
 */
export function indexBlocks(messages: MessageList, collapses: boolean, from?: BlockIndex): BlockIndex {
  const isGrown = from?.collapsesRuns === collapses && messages.frozen.extends(from.messages.frozen)
  let [starts, frozenEnd] = isGrown
    ? [from.starts, from.frozenEnd]
    : [AppendList.of<BlockTotals>(), START_TOTALS]
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

export function messageAt({ frozen, tail }: MessageList, index: number): TracedMessage | undefined {
  return index < frozen.length ? frozen.at(Math.max(0, index)) : tail[index - frozen.length]
}

/** Returns the blocks of a message as they are sent: a string is one text block, an empty string none. */
export function toMessageBlocks({ message: { content } }: TracedMessage): readonly Block[] {
  return content === '' ? [] : toBlocks(content)
}

/** Returns the block totals before the message at `index`; past the last message, the totals of all messages. */
export function readTotalsBeforeMessage(counted: BlockIndex, index: number): BlockTotals {
  const { starts, tailStarts, end } = counted
  return starts.at(index) ?? tailStarts[index - starts.length] ?? end
}

/** Returns the block totals up to and including one block of a message. */
export function countTotalsThroughBlock(counted: BlockIndex, index: number, block: number): BlockTotals {
  const message = messageAt(counted.messages, index)
  let count = readTotalsBeforeMessage(counted, index)
  if (message === undefined) return count
  for (const each of toMessageBlocks(message).slice(0, block + 1)) {
    count = addBlockTotals(count, each, message.message.role, counted.collapsesRuns)
  }
  return count
}

/** Returns the totals over the first `blocks` blocks of the request. */
export function countTotalsOfBlocks(counted: BlockIndex, blocks: number): BlockTotals {
  const index = findMessageOfBlock(counted, blocks)
  return countTotalsThroughBlock(counted, index, blocks - readTotalsBeforeMessage(counted, index).blocks - 1)
}

/** Returns the index of the message that contains the block with this number, counted from 1. */
export function findMessageOfBlock(counted: BlockIndex, block: number): number {
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
  // A `cache_edits` block is an instruction about the cache and not part of the prompt, so it takes no position.
  if (block.type === 'cache_edits') return { ...count, blocks: count.blocks + 1 }
  const run = collapses && RUN_BLOCK_TYPES.has(block.type) ? `${role} ${block.type}` : null
  const goesOn = run !== null && run === count.openRun
  return {
    blocks: count.blocks + 1,
    positions: count.positions + (goesOn ? 0 : 1),
    thinkingBlocks: count.thinkingBlocks + (isThinkingBlock(block) ? 1 : 0),
    openRun: run,
    blocksBeforePrompt: role === 'user' && isTurnEndingBlock(block) ? count.blocks : count.blocksBeforePrompt,
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
 * Returns the first block where `after` differs from `before`; null if `after` repeats all blocks of `before`. The last
 * message of `before` may have grown; in an earlier message an added block is a difference. Cache markers are ignored.
 */
export function findFirstDifference(before: MessageList, after: MessageList): BlockPosition | null {
  const [short, long] = before.frozen.length <= after.frozen.length ? [before, after] : [after, before]
  const start = long.frozen.extends(short.frozen) ? short.frozen.length : 0
  const last = countMessages(before) - 1
  for (let index = start; index <= last; index += 1) {
    const block = findDifferingBlock(messageAt(before, index), messageAt(after, index), index === last)
    if (block !== null) return { message: index, block }
  }
  return null
}

/** Returns how many leading blocks of `one` are also the leading blocks of `other`. */
export function countSharedMessageBlocks(one: BlockIndex, other: BlockIndex): number {
  const found = findFirstDifference(one.messages, other.messages)
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

/**
 * True if role and other fields of the messages are equal; a mid-conversation system message has fields besides its
 * content.
 */
function hasSameFields(one: TracedMessage, other: TracedMessage): boolean {
  const { content: _, ...fields } = one.message
  const { content: __, ...otherFields } = other.message
  return isSameValue(fields, otherFields, false)
}

/**
 * True if both values are sent as the same JSON. Key order matters, since a provider caches bytes; undefined fields are
 * not sent.
 */
export function isSameJson(one: unknown, other: unknown): boolean {
  return isSameValue(one, other, false)
}

/** Fields of a block that may contain blocks with cache markers. */
const NESTED_BLOCK_FIELDS = new Set(['content', 'source'])

/**
 * True if both values are sent as the same JSON. `ignoresMarkers`: ignore `cache_control` on the block and on blocks
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
      (key) => fields[key] !== undefined && !(ignoresMarkers && key === 'cache_control'),
    )
  const [keys, others] = [listSentKeys(one), listSentKeys(other)]
  if (keys.length !== others.length) return false
  return keys.every(
    (key, at) =>
      key === others[at] && isSameValue(one[key], other[key], ignoresMarkers && NESTED_BLOCK_FIELDS.has(key)),
  )
}

/** Returns the index of the newest message with a block from the record `uuid`; null if there is none. */
export function findMessageOfRecord(messages: MessageList, uuid: string): number | null {
  for (let index = countMessages(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.origins.includes(uuid) === true) return index
  }
  return null
}
