/**
 * The messages of a request by block: how many blocks and look-back positions come before each message, and where two
 * requests first differ. Frozen messages are counted and compared once, so a call costs what it added.
 */

import type { TracedMessage } from '../context/flatten.ts'
import type { Role } from '../context/payload.ts'
import { type Block, isThinking, toBlocks } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { isNewTurnContent } from '../log/record.ts'

/** Messages by reference: `frozen` ones never change, `tail` is what would be sent behind them now. */
export interface MessageList {
  readonly frozen: AppendList<TracedMessage>
  readonly tail: readonly TracedMessage[]
}

/** Properties of the messages as a whole that are part of the provider's cache key. */
export interface MessageTraits {
  readonly hasImages: boolean
  /** A document has citations enabled. */
  readonly hasCitations: boolean
  /** A message defines a tool (`tool_addition`). */
  readonly definesTools: boolean
}

/** Running totals at a point of the messages. */
interface BlockTotals {
  readonly blocks: number
  /** As a cache marker looks back: a run of tool calls or of results is one position where the provider says so. */
  readonly positions: number
  /** Thinking blocks. */
  readonly thinkingBlocks: number
  /** The run that the next block may continue. */
  readonly openRun: string | null
  /** Blocks before the newest user block that ended a turn. */
  readonly blocksBeforePrompt: number
  readonly traits: MessageTraits
}

/** The messages with the totals before each. */
export interface BlockIndex {
  readonly messages: MessageList
  readonly starts: AppendList<BlockTotals>
  readonly tailStarts: readonly BlockTotals[]
  /** After the frozen messages. */
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

/** `collapses`: runs of calls and of results are one position. `from`: an earlier state, counted on from there. */
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

export function messageCount({ frozen, tail }: MessageList): number {
  return frozen.length + tail.length
}

export function messageAt({ frozen, tail }: MessageList, index: number): TracedMessage | undefined {
  return index < frozen.length ? frozen.at(Math.max(0, index)) : tail[index - frozen.length]
}

/** As sent: a string is one block, an empty string none. */
export function blocksOfMessage({ message: { content } }: TracedMessage): readonly Block[] {
  return content === '' ? [] : toBlocks(content)
}

/** Totals before the message at `index`; past the last message, the totals of all. */
export function totalsBeforeMessage(counted: BlockIndex, index: number): BlockTotals {
  const { starts, tailStarts, end } = counted
  return starts.at(index) ?? tailStarts[index - starts.length] ?? end
}

/** Totals up to and including a block of a message. */
export function totalsThroughBlock(counted: BlockIndex, index: number, block: number): BlockTotals {
  const message = messageAt(counted.messages, index)
  let count = totalsBeforeMessage(counted, index)
  if (message === undefined) return count
  for (const each of blocksOfMessage(message).slice(0, block + 1)) {
    count = addBlockTotals(count, each, message.message.role, counted.collapsesRuns)
  }
  return count
}

/** Totals of the first `blocks` blocks. */
export function totalsAfterBlocks(counted: BlockIndex, blocks: number): BlockTotals {
  const index = findMessageOfBlock(counted, blocks)
  return totalsThroughBlock(counted, index, blocks - totalsBeforeMessage(counted, index).blocks - 1)
}

/** Index of the message that holds the block with this number, counted from 1. */
export function findMessageOfBlock(counted: BlockIndex, block: number): number {
  let [low, high] = [0, Math.max(0, messageCount(counted.messages) - 1)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (totalsBeforeMessage(counted, middle).blocks < block) low = middle
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
  return blocksOfMessage(message).reduce(
    (count, block) => addBlockTotals(count, block, role, collapses),
    before,
  )
}

const RUN_BLOCK_TYPES = new Set(['tool_use', 'tool_result'])

function addBlockTotals(count: BlockTotals, block: Block, role: Role, collapses: boolean): BlockTotals {
  // An instruction to the provider about its cache, not part of the prompt.
  if (block.type === 'cache_edits') return { ...count, blocks: count.blocks + 1 }
  const run = collapses && RUN_BLOCK_TYPES.has(block.type) ? `${role} ${block.type}` : null
  const goesOn = run !== null && run === count.openRun
  return {
    blocks: count.blocks + 1,
    positions: count.positions + (goesOn ? 0 : 1),
    thinkingBlocks: count.thinkingBlocks + (isThinking(block) ? 1 : 0),
    openRun: run,
    blocksBeforePrompt: role === 'user' && isNewTurnContent(block) ? count.blocks : count.blocksBeforePrompt,
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

// The first difference of two requests.

/** A block of a request: the message by index, and which of its blocks. */
export interface BlockPosition {
  readonly message: number
  readonly block: number
}

/**
 * Where `after` stops repeating the blocks of `before`; null if it repeats all of them. The last message may have grown;
 * in an earlier one the position is that of the block added. Cache markers do not count.
 */
export function firstDifference(before: MessageList, after: MessageList): BlockPosition | null {
  const [short, long] = before.frozen.length <= after.frozen.length ? [before, after] : [after, before]
  const start = long.frozen.extends(short.frozen) ? short.frozen.length : 0
  const last = messageCount(before) - 1
  for (let index = start; index <= last; index += 1) {
    const block = findDifferingBlock(messageAt(before, index), messageAt(after, index), index === last)
    if (block !== null) return { message: index, block }
  }
  return null
}

/** How many leading blocks of `one` the other request repeats. */
export function countSharedMessageBlocks(one: BlockIndex, other: BlockIndex): number {
  const found = firstDifference(one.messages, other.messages)
  return found === null ? one.end.blocks : totalsBeforeMessage(one, found.message).blocks + found.block
}

function findDifferingBlock(
  before: TracedMessage | undefined,
  after: TracedMessage | undefined,
  mayGrow: boolean,
): number | null {
  if (before === undefined || before === after) return null
  if (after === undefined || !hasSameFields(before, after)) return 0
  const [blocks, others] = [blocksOfMessage(before), blocksOfMessage(after)]
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

/** Role, and the fields that a system message in mid-conversation has besides its content. */
function hasSameFields(one: TracedMessage, other: TracedMessage): boolean {
  const { content: _, ...fields } = one.message
  const { content: __, ...otherFields } = other.message
  return isSameValue(fields, otherFields, false)
}

/** Equal as sent: key order counts, since a provider caches bytes; fields that are undefined are not sent. */
export function isSameJson(one: unknown, other: unknown): boolean {
  return isSameValue(one, other, false)
}

/** Fields of a block that hold blocks, which may carry markers of their own. */
const NESTED_BLOCK_FIELDS = new Set(['content', 'source'])

/** `ignoresMarkers`: `cache_control` does not count, here and on inner blocks. */
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

/** Index of the newest message with a block of the record; null if there is none. */
export function findMessageIndex(messages: MessageList, uuid: string): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.origins.includes(uuid) === true) return index
  }
  return null
}
