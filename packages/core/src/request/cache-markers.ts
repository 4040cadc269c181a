/**
 * Where the cache markers (`cache_control`) of a request stand. A fork only reuses its parent's last one. Default, in order
 * of preference, up to the provider's four: the last message block (the next request reads everything before it), the
 * block before the first tool result that may be cleared (a clearing then keeps all before it), the end of the system
 * prompt (it covers the tools too), and the last block of the previous request if a turn outran the look-back.
 *
 * The reason: a provider keeps a prefix only where a marker stood, and a marker finds one only within 20 positions.
 */

import type { TracedMessage } from '../context/flatten.ts'
import { isToolResult } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { MarkersPolicy } from '../policy/policy.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { canCarryMarker } from '../validate/content-rules.ts'
import { isTurnScoped } from '../validate/finding.ts'
import {
  type BlockIndex,
  blocksOfMessage,
  type MessageList,
  messageAt,
  messageCount,
  totalsThroughBlock,
} from './block-index.ts'
import { isLoadedUpfront, type RequestPrefix } from './prefix.ts'

/** By position. `after-sources`: after the context sources that a compaction left unchanged in front. */
export type MarkerKind =
  | 'last-message'
  | 'before-first-clearable'
  | 'system'
  | 'previous-last-message'
  | 'after-sources'
  | 'static-system'
  | 'last-tool'

export interface PlannedMarker {
  readonly kind: MarkerKind
  readonly place: MarkerPlace
  /** The `cache_control` to put there. */
  readonly control: JsonObject
}

export interface PlanMarkersInput {
  readonly front: RequestPrefix
  readonly blockIndex: BlockIndex
  readonly policy: MarkersPolicy
  readonly cache: CacheRules
  /** The lifetime in force, by name. */
  readonly ttl: string
  /** Clearing is on. If it is off, exactly one marker stands on the messages. */
  readonly clears: boolean
  /** The first result that could still be cleared. */
  readonly firstClearable?: MessagePlace | null
  /** Where that was before a clearing moved it: the first request after the clearing marks both places. */
  readonly leftClearable?: MessagePlace | null
  /** The last block of the context sources that a compaction left unchanged in front. */
  readonly carriersEnd?: MessagePlace | null
}

type MarkerCandidate = Pick<PlannedMarker, 'kind' | 'place'>

/** In request order. */
export function planMarkers(question: PlanMarkersInput): readonly PlannedMarker[] {
  const { policy, cache } = question
  const limit = Math.min(policy.maximum, cache.maxMarkers)
  const chosen: MarkerCandidate[] = []
  for (const { kind, place } of listCandidates(question)) {
    const isTaken = chosen.some((other) => comparePlaces(other.place, place) === 0)
    if (!isTaken && chosen.length < limit) chosen.push({ kind, place })
  }
  const inOrder = chosen.toSorted((one, other) => comparePlaces(one.place, other.place))
  return inOrder.map((marker) => ({ ...marker, control: toCacheControl(question, marker.place) }))
}

function listCandidates(question: PlanMarkersInput): readonly MarkerCandidate[] {
  const { blockIndex, cache, clears, policy, firstClearable, leftClearable, carriersEnd } = question
  const hasEdge = clears && policy.edge
  const edge = hasEdge ? findPlaceBefore(question, firstClearable) : null
  const left = hasEdge ? findPlaceBefore(question, leftClearable) : null
  const carriers = hasEdge ? (carriersEnd ?? null) : null
  return [
    ...toCandidates('last-message', findLastMarkableBlock(blockIndex.messages, cache)),
    ...toCandidates('before-first-clearable', left ?? edge ?? carriers),
    ...toCandidates('system', findSystemEnd(question)),
    ...toCandidates('before-first-clearable', left === null ? null : edge),
    ...toCandidates('previous-last-message', clears ? findPreviousEnd(question) : null),
    ...toCandidates('after-sources', carriers),
    ...toCandidates('static-system', findStaticEnd(question)),
    ...toCandidates('last-tool', findLastSharedTool(question)),
  ]
}

function toCandidates(kind: MarkerKind, place: MarkerPlace | null): readonly MarkerCandidate[] {
  return place === null ? [] : [{ kind, place }]
}

/** The block before a result that could be cleared: what precedes it survives the clearing. */
function findPlaceBefore(
  { blockIndex, cache }: PlanMarkersInput,
  result: MessagePlace | null = null,
): MessagePlace | null {
  return result === null ? null : findLastMarkableBlock(blockIndex.messages, cache, result)
}

/** Covers the tools too, which come first; without a system prompt the last tool is marked. */
function findSystemEnd({ front, cache }: PlanMarkersInput): MarkerPlace | null {
  const index = front.system.findLastIndex(({ block }) => canCarryMarker(block, cache))
  if (index !== -1) return { zone: 'system', index }
  const tool = front.tools.findLastIndex(isLoadedUpfront)
  return tool === -1 ? null : { zone: 'tools', index: tool }
}

/**
 * A turn that adds more positions than a marker looks back would lose everything before it. A marker where the last
 * answered request ended, just before the newest response, finds the prefix that it left.
 */
function findPreviousEnd({ blockIndex, cache, policy }: PlanMarkersInput): MessagePlace | null {
  const { messages } = blockIndex
  const response = findLastResponse(messages)
  const tail = findLastMarkableBlock(messages, cache)
  const last =
    response === null ? null : findLastMarkableBlock(messages, cache, { index: response, block: 0 })
  if (tail === null || last === null) return null
  const added = countPositions(blockIndex, tail) - countPositions(blockIndex, last)
  return added > Math.min(policy.laggingAfterPositions, cache.lookBack - 1) ? last : null
}

function countPositions(counted: BlockIndex, { index, block }: MessagePlace): number {
  return totalsThroughBlock(counted, index, block).positions
}

function findStaticEnd({ front }: PlanMarkersInput): MarkerPlace | null {
  const index = front.system.findIndex(({ part }) => part === 'static')
  return index === -1 ? null : { zone: 'system', index }
}

function findLastSharedTool({ front }: PlanMarkersInput): MarkerPlace | null {
  return front.lastSharedTool === null ? null : { zone: 'tools', index: front.lastSharedTool }
}

/** As little as possible. A scope is written only if the provider has it and the prefix may be shared. */
function toCacheControl({ front, cache, ttl }: PlanMarkersInput, place: MarkerPlace): JsonObject {
  const isStatic = place.zone === 'system' && front.system[place.index]?.part === 'static'
  const isGlobal = isStatic && front.isShareable && cache.scopes.includes('global')
  const asks = ttl !== cache.defaultTtl && cache.ttls.some(({ name }) => name === ttl)
  return { type: 'ephemeral', ...(asks ? { ttl } : {}), ...(isGlobal ? { scope: 'global' } : {}) }
}

// The marker before the first clearable result stays in place until a rewrite of the context moves it, whatever else
// becomes clearable or pinned meanwhile: a marker that wanders finds nothing. The first request after a move marks both
// places, since what survived the clearing was cached up to the old one.

export interface ClearableMarker {
  /** The call whose result is the first that could be cleared; null if there is none. */
  readonly result: string | null
  /** The one it moved from, until a request with both markers has been answered. */
  readonly left: string | null
  readonly rewrittenAt: number
}

export const NO_CLEARABLE_MARKER: ClearableMarker = {
  result: null,
  left: null,
  rewrittenAt: Number.NEGATIVE_INFINITY,
}

export interface ClearableMarkerInput {
  /** The call whose result would be cleared first now. */
  readonly firstClearable: string | null
  /** When the context was last rewritten … */
  readonly rewrittenAt: number
  /** … and whether a response has come since. */
  readonly isAnswered: boolean
  readonly flat: MessagesWithCalls
}

export function updateClearableMarker(
  held: ClearableMarker,
  question: ClearableMarkerInput,
): ClearableMarker {
  const { firstClearable, rewrittenAt, isAnswered, flat } = question
  if (held.rewrittenAt !== rewrittenAt) {
    return { result: firstClearable, left: isAnswered ? null : held.result, rewrittenAt }
  }
  const stays = held.result !== null && findResultPlace(flat, held.result) !== null
  const left = isAnswered ? null : held.left
  if (stays && left === held.left) return held
  return { result: stays ? held.result : firstClearable, left, rewrittenAt }
}

// Places in a request.

/** A block of a message. */
export interface MessagePlace {
  readonly zone: 'messages'
  /** Which message. */
  readonly index: number
  readonly block: number
}

export type MarkerPlace = { readonly zone: 'tools' | 'system'; readonly index: number } | MessagePlace

const ZONE_ORDER = ['tools', 'system', 'messages']

/** In request order. */
export function comparePlaces(one: MarkerPlace, other: MarkerPlace): number {
  const [left, right] = [toSortKey(one), toSortKey(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  return differs === -1 ? 0 : (left[differs] ?? 0) - (right[differs] ?? 0)
}

function toSortKey(place: MarkerPlace): readonly number[] {
  return [ZONE_ORDER.indexOf(place.zone), place.index, place.zone === 'messages' ? place.block : 0]
}

/** The last block before `before` that may carry a marker; without it, the last of all. */
export function findLastMarkableBlock(
  messages: MessageList,
  cache: CacheRules,
  before: Omit<MessagePlace, 'zone'> = { index: messageCount(messages), block: 0 },
): MessagePlace | null {
  for (let index = Math.min(before.index, messageCount(messages) - 1); index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined || isTurnScoped(message.message)) continue
    const blocks =
      index === before.index ? blocksOfMessage(message).slice(0, before.block) : blocksOfMessage(message)
    const block = blocks.findLastIndex((each) => canCarryMarker(each, cache))
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** Index of the newest response; null if there is none. */
export function findLastResponse(messages: MessageList): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.message.role === 'assistant') return index
  }
  return null
}

/** Messages with the index of each tool call. */
export interface MessagesWithCalls extends MessageList {
  readonly calls: { get(id: string): number | undefined }
}

/** The result of a tool call, searched from the call on. */
export function findResultPlace(messages: MessagesWithCalls, id: string): MessagePlace | null {
  const from = messages.calls.get(id) ?? messages.frozen.length
  for (let index = from; index < messageCount(messages); index += 1) {
    const block = findResultBlock(messageAt(messages, index), id)
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

function findResultBlock(message: TracedMessage | undefined, id: string): number {
  if (message === undefined) return -1
  return blocksOfMessage(message).findIndex((block) => isToolResult(block) && block.tool_use_id === id)
}

/** The last block from the record `uuid`. */
export function findRecordPlace(messages: MessageList, uuid: string): MessagePlace | null {
  for (let index = 0; index < messageCount(messages); index += 1) {
    const block = messageAt(messages, index)?.origins.lastIndexOf(uuid) ?? -1
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** The list as it was when it had `count` messages. All `calls` stay. */
export function takeFirstMessages(
  { frozen, tail, calls }: MessagesWithCalls,
  count: number,
): MessagesWithCalls {
  const messages = [...frozen.toArray(0, count), ...tail.slice(0, Math.max(0, count - frozen.length))]
  return { frozen: AppendList.of(messages), tail: [], calls }
}
