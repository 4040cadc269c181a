/**
 * Where the cache markers of a request stand. All are counted here and nowhere else, and filled in this order:
 * tail, edge, end of the system prompt, lagging, then what is left over.
 */

import type { FlatMessage } from '../context/message-parts.ts'
import { isToolResult } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { MarkersPolicy } from '../policy/policy.ts'
import type { CacheRules } from '../policy/provider-profile.ts'
import { canCarry } from '../validate/limit-rules.ts'
import { isTurnScoped } from '../validate/role-rules.ts'
import {
  blocksIn,
  type Counted,
  countThrough,
  type MessageList,
  messageAt,
  messageCount,
} from './block-index.ts'
import { type Front, isOffered } from './prefix.ts'

/** `carriers` is the end of what stays unchanged across a compaction, `static` and `tool` parts of the front. */
export type MarkerKind = 'tail' | 'edge' | 'system' | 'lagging' | 'carriers' | 'static' | 'tool'

export interface PlannedMarker {
  readonly kind: MarkerKind
  readonly place: Place
  /** The `cache_control` to put there. */
  readonly control: JsonObject
}

export interface MarkerQuestion {
  readonly front: Front
  readonly counted: Counted
  readonly policy: MarkersPolicy
  readonly cache: CacheRules
  /** The lifetime in force, by name. */
  readonly ttl: string
  /** Tier 1 is on. Where it is off exactly one marker stands on the messages. */
  readonly clears: boolean
  /** The first result that tier 1 could still clear. */
  readonly firstClearable?: MessagePlace | null
  /** What that was before a clearing moved it: the first request behind the clearing stands on both places. */
  readonly leftClearable?: MessagePlace | null
  /** The last block of the carriers that a compaction left unchanged in front. */
  readonly carriersEnd?: MessagePlace | null
}

type Wanted = Pick<PlannedMarker, 'kind' | 'place'>

/** In the order of the request. */
export function planMarkers(question: MarkerQuestion): readonly PlannedMarker[] {
  const { policy, cache } = question
  const limit = Math.min(policy.maximum, cache.maxMarkers)
  const chosen: Wanted[] = []
  for (const { kind, place } of wanted(question)) {
    const isTaken = chosen.some((other) => comparePlaces(other.place, place) === 0)
    if (!isTaken && chosen.length < limit) chosen.push({ kind, place })
  }
  const inOrder = chosen.toSorted((one, other) => comparePlaces(one.place, other.place))
  return inOrder.map((marker) => ({ ...marker, control: controlOf(question, marker.place) }))
}

function wanted(question: MarkerQuestion): readonly Wanted[] {
  const { counted, cache, clears, policy, firstClearable, leftClearable, carriersEnd } = question
  const hasEdge = clears && policy.edge
  const edge = hasEdge ? before(question, firstClearable) : null
  const left = hasEdge ? before(question, leftClearable) : null
  const carriers = hasEdge ? (carriersEnd ?? null) : null
  return [
    ...at('tail', lastMarkable(counted.messages, cache)),
    ...at('edge', left ?? edge ?? carriers),
    ...at('system', systemEnd(question)),
    ...at('edge', left === null ? null : edge),
    ...at('lagging', clears ? laggingOf(question) : null),
    ...at('carriers', carriers),
    ...at('static', staticEnd(question)),
    ...at('tool', lastTool(question)),
  ]
}

function at(kind: MarkerKind, place: Place | null): readonly Wanted[] {
  return place === null ? [] : [{ kind, place }]
}

/** The block before a result that could be cleared: what is in front of it survives the clearing. */
function before({ counted, cache }: MarkerQuestion, result: MessagePlace | null = null): MessagePlace | null {
  return result === null ? null : lastMarkable(counted.messages, cache, result)
}

/** It covers the tools too, which come first; without a system prompt it is they that end the front. */
function systemEnd({ front, cache }: MarkerQuestion): Place | null {
  const index = front.system.findLastIndex(({ block }) => canCarry(block, cache))
  if (index !== -1) return { zone: 'system', index }
  const tool = front.tools.findLastIndex(isOffered)
  return tool === -1 ? null : { zone: 'tools', index: tool }
}

/**
 * A turn that adds more than the tail can look back over would lose all before it: a marker on the tail of the
 * request that was answered last, which the newest response follows, finds that entry where it stands.
 */
function laggingOf({ counted, cache, policy }: MarkerQuestion): MessagePlace | null {
  const { messages } = counted
  const response = lastResponse(messages)
  const tail = lastMarkable(messages, cache)
  const last = response === null ? null : lastMarkable(messages, cache, { index: response, block: 0 })
  if (tail === null || last === null) return null
  const added = positionOf(counted, tail) - positionOf(counted, last)
  return added > Math.min(policy.laggingAfterPositions, cache.lookBack - 1) ? last : null
}

function positionOf(counted: Counted, { index, block }: MessagePlace): number {
  return countThrough(counted, index, block).positions
}

function staticEnd({ front }: MarkerQuestion): Place | null {
  const index = front.system.findIndex(({ part }) => part === 'static')
  return index === -1 ? null : { zone: 'system', index }
}

function lastTool({ front }: MarkerQuestion): Place | null {
  return front.lastSharedTool === null ? null : { zone: 'tools', index: front.lastSharedTool }
}

/** The plain marker says as little as it can. A scope is written only where the provider has it and all may share. */
function controlOf({ front, cache, ttl }: MarkerQuestion, place: Place): JsonObject {
  const isStatic = place.zone === 'system' && front.system[place.index]?.part === 'static'
  const isGlobal = isStatic && front.isShareable && cache.scopes.includes('global')
  const asks = ttl !== cache.defaultTtl && cache.ttls.some(({ name }) => name === ttl)
  return { type: 'ephemeral', ...(asks ? { ttl } : {}), ...(isGlobal ? { scope: 'global' } : {}) }
}

// Where the edge stands: at the first result that tier 1 could still clear. It stays there until a rewrite of
// the view moves it, whatever else becomes clearable or is pinned meanwhile: a marker that wanders finds nothing.
// The first request after the move stands on both places: what survived the clearing was kept up to the old one.

export interface HeldEdge {
  /** The call whose result is the first that could be cleared; null where there is none. */
  readonly result: string | null
  /** The one it moved from, until a request that stood on both has been answered. */
  readonly left: string | null
  readonly rewrittenAt: number
}

export const NO_EDGE: HeldEdge = { result: null, left: null, rewrittenAt: Number.NEGATIVE_INFINITY }

export interface EdgeQuestion {
  /** The call whose result tier 1 would clear first, as things are now. */
  readonly firstClearable: string | null
  /** When the view was last rewritten … */
  readonly rewrittenAt: number
  /** … and whether a response has come since. */
  readonly isAnswered: boolean
  readonly flat: CallPlaces
}

export function holdEdge(held: HeldEdge, question: EdgeQuestion): HeldEdge {
  const { firstClearable, rewrittenAt, isAnswered, flat } = question
  if (held.rewrittenAt !== rewrittenAt) {
    return { result: firstClearable, left: isAnswered ? null : held.result, rewrittenAt }
  }
  const stays = held.result !== null && placeOfResult(flat, held.result) !== null
  const left = isAnswered ? null : held.left
  if (stays && left === held.left) return held
  return { result: stays ? held.result : firstClearable, left, rewrittenAt }
}

// Places in a request, and where in its messages a thing stands.

/** A block of a message. */
export interface MessagePlace {
  readonly zone: 'messages'
  /** Which message. */
  readonly index: number
  readonly block: number
}

export type Place = { readonly zone: 'tools' | 'system'; readonly index: number } | MessagePlace

const ZONES = ['tools', 'system', 'messages']

/** In the order of a request. */
export function comparePlaces(one: Place, other: Place): number {
  const [left, right] = [numbersOf(one), numbersOf(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  return differs === -1 ? 0 : (left[differs] ?? 0) - (right[differs] ?? 0)
}

function numbersOf(place: Place): readonly number[] {
  return [ZONES.indexOf(place.zone), place.index, place.zone === 'messages' ? place.block : 0]
}

/** The last block in front of `before` that may carry a marker; without `before`, of all. */
export function lastMarkable(
  messages: MessageList,
  cache: CacheRules,
  before: Omit<MessagePlace, 'zone'> = { index: messageCount(messages), block: 0 },
): MessagePlace | null {
  for (let index = Math.min(before.index, messageCount(messages) - 1); index >= 0; index -= 1) {
    const message = messageAt(messages, index)
    if (message === undefined || isTurnScoped(message.message)) continue
    const blocks = index === before.index ? blocksIn(message).slice(0, before.block) : blocksIn(message)
    const block = blocks.findLastIndex((each) => canCarry(each, cache))
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** Where the newest response begins: what the request that asked for it ended before. Null where there is none. */
export function lastResponse(messages: MessageList): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.message.role === 'assistant') return index
  }
  return null
}

/** Messages with the place of each tool call known, as flattening keeps them. */
export interface CallPlaces extends MessageList {
  readonly calls: { get(id: string): number | undefined }
}

/** The answer to a tool call. Looked for from where the call stands on. */
export function placeOfResult(messages: CallPlaces, id: string): MessagePlace | null {
  const from = messages.calls.get(id) ?? messages.frozen.length
  for (let index = from; index < messageCount(messages); index += 1) {
    const block = resultIn(messageAt(messages, index), id)
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

function resultIn(message: FlatMessage | undefined, id: string): number {
  if (message === undefined) return -1
  return blocksIn(message).findIndex((block) => isToolResult(block) && block.tool_use_id === id)
}

/** The last block that comes from the record `uuid`, looked for from the front. */
export function placeOfRecord(messages: MessageList, uuid: string): MessagePlace | null {
  for (let index = 0; index < messageCount(messages); index += 1) {
    const block = messageAt(messages, index)?.origins.lastIndexOf(uuid) ?? -1
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}
