/**
 * Plans the cache markers of an API request. A provider caches a prefix only where a marker was, and a marker finds a cached
 * prefix only within a number of positions before it (`CacheRules.lookBack`, usually 20). Markers are placed in this order of
 * preference, up to the provider's limit, usually four:
 *
 * 1. The last message block that the next request will repeat, so that it reads everything before it.
 * 2. The block before the first tool result that may be cleared, so that a clearing keeps the cached prefix before it.
 * 3. The end of the system prompt, which covers the tools too.
 * 4. The last block of the previous request, if a turn added more positions than a marker looks back.
 *
 * A client's own markers keep their places and lifetimes. Others are added only before its last one on the messages, where
 * they cost nothing: so a client that caches never pays more for its cache than without the engine.
 */

import type { TracedMessage } from '../context/flatten-context.ts'
import { type Block, isToolResult, isToolUse } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CacheMarkersPolicy } from '../policy/cache-policy.ts'
import type { CacheRules, ProviderProfile } from '../policy/provider-profile.ts'
import { canCarryMarker, isTurnScopedMessage } from '../validate/content-rules.ts'
import {
  type BlockIndex,
  countMessages,
  countTotalsThroughBlock,
  findMessageAt,
  isSameJson,
  type MessageList,
  toMessageBlocks,
} from './block-index.ts'
import { isLoadedUpfront, type RequestPrefix } from './prefix-snapshot.ts'

/**
 * The kinds of cache marker, by position. `client`: where the client set one itself. `after-sources`: after the attachments
 * at the start of the context that a compaction carried over unchanged.
 */
type MarkerKind =
  | 'client'
  | 'last-message'
  | 'before-first-clearable'
  | 'system'
  | 'previous-last-message'
  | 'after-sources'
  | 'static-system'
  | 'last-tool'

/** A cache marker, the block that it will be set on, and why there. */
export interface PlannedMarker {
  readonly kind: MarkerKind
  readonly place: MarkerPlace
  /** Name of the lifetime that the marker asks for; null for the provider's default. */
  readonly ttl: string | null
  readonly scope?: string | undefined
  /** The marker as the provider spells it, or, for a marker of the client, as the client spelt it. */
  readonly control: JsonObject
}

export interface PlanMarkersInput {
  readonly front: RequestPrefix
  readonly blockIndex: BlockIndex
  readonly policy: CacheMarkersPolicy
  readonly cache: CacheRules
  readonly spelling: ProviderProfile['spelling']
  /** Name of the cache lifetime to use, such as `5m` or `1h`. */
  readonly ttl: string
  /** Name of the lifetime of the markers that move with every request, if it is shorter. */
  readonly tailTtl?: string | undefined
  /** True if the policy clears old tool results. Otherwise exactly one cache marker is placed on the messages. */
  readonly clears: boolean
  /** The first tool result that may still be cleared; null if there is none. */
  readonly firstClearable?: MessageBlockPlace | null
  /**
   * The tool result that was the first clearable one before the last clearing. The first API request after a clearing
   * gets cache markers before both the old and the new one.
   */
  readonly leftClearable?: MessageBlockPlace | null
  /** After a compaction: the last block at the start of the context that comes from a context source and did not change. */
  readonly carriersEnd?: MessageBlockPlace | null
  /**
   * The last block that the next request is expected to repeat; null if it is expected to repeat no message. Default: all
   * blocks are repeated.
   */
  readonly repeatedUntil?: MessageBlockPlace | null
  /** The markers that the client set in its own request, placed in this one. */
  readonly clientMarkers?: readonly PlannedMarker[]
  /**
   * Which parts of the request get cache markers that the client has not set itself. Default: all. `prefix`: system prompt
   * and tools, and what the client caches in any case.
   */
  readonly ownMarkers?: OwnMarkerScope
  /**
   * True if the engine has rewritten the context of a client, so that what a compaction attaches may follow the client's last
   * marker. Default: false.
   */
  readonly isRewritten?: boolean
}

/** Which parts of a client's request get markers of the engine. */
export type OwnMarkerScope = 'all' | 'prefix' | 'none'

type MarkerCandidate = Pick<PlannedMarker, 'kind' | 'place'> | PlannedMarker

/** Chooses the blocks that get a cache marker, up to the provider's limit. Returns the markers in request order. */
export function planMarkers(question: PlanMarkersInput): readonly PlannedMarker[] {
  const { policy, cache, clientMarkers = [] } = question
  const limit = Math.min(policy.maximum, cache.maxMarkers)
  const chosen: MarkerCandidate[] = [...clientMarkers]
  for (const candidate of listCandidates(question)) {
    const isTaken = chosen.some((other) => compareMarkerPlaces(other.place, candidate.place) === 0)
    if (!isTaken && chosen.length < limit) chosen.push(candidate)
  }
  const inOrder = chosen.toSorted((one, other) => compareMarkerPlaces(one.place, other.place))
  // Longer lifetimes must come first: from the first marker that moves, all have the lifetime of the newest messages.
  const moving = inOrder.findIndex(({ kind }) => MOVING_MARKER_KINDS.has(kind))
  return inOrder.map((marker, index) =>
    'control' in marker ? marker : createOwnMarker(question, marker, moving !== -1 && index >= moving),
  )
}

/** Cache markers whose position changes with every API request. */
export const MOVING_MARKER_KINDS: ReadonlySet<MarkerKind> = new Set(['last-message', 'previous-last-message'])

/**
 * Returns the lifetime of a marker that the client has not set: that of the client's next one, since longer lifetimes must
 * come first, or else the shortest.
 */
function findOwnTtl(
  { ttl, tailTtl, cache, clientMarkers = [] }: PlanMarkersInput,
  place: MarkerPlace,
  isInTail: boolean,
): string {
  if (clientMarkers.length === 0) return isInTail ? (tailTtl ?? ttl) : ttl
  const next = clientMarkers.find((other) => compareMarkerPlaces(other.place, place) >= 0)
  return next?.ttl ?? cache.defaultTtl
}

function listCandidates(question: PlanMarkersInput): readonly MarkerCandidate[] {
  const { clears, policy, firstClearable, leftClearable, carriersEnd } = question
  const hasEdge = clears && policy.edge
  const edge = hasEdge ? findPlaceBefore(question, firstClearable) : null
  const left = hasEdge ? findPlaceBefore(question, leftClearable) : null
  const carriers = hasEdge ? (carriersEnd ?? null) : null
  const candidates = [
    ...findTailPlaces(question).flatMap((place) => toCandidates('last-message', place)),
    ...toCandidates('before-first-clearable', left ?? edge ?? carriers),
    ...toCandidates('system', findSystemEnd(question)),
    ...toCandidates('before-first-clearable', left === null ? null : edge),
    ...toCandidates('previous-last-message', clears ? findPreviousEnd(question) : null),
    ...toCandidates('after-sources', carriers),
    ...toCandidates('static-system', findStaticEnd(question)),
    ...toCandidates('last-tool', findLastSharedTool(question)),
  ]
  return candidates.filter(({ place }) => canMark(place, question))
}

/** Returns the last block that can carry a cache marker, of all blocks and of those that will be repeated. */
function findTailPlaces({
  blockIndex: { messages },
  cache,
  repeatedUntil = null,
}: PlanMarkersInput): readonly (MessageBlockPlace | null)[] {
  const tail = findLastMarkableBlock(messages, cache)
  if (repeatedUntil === null) return [tail]
  const { index, block } = repeatedUntil
  return [tail, findLastMarkableBlock(messages, cache, { index, block: block + 1 })]
}

/**
 * True for places up to the client's last marker. After that, only if `ownMarkers` permits it and the next request should
 * repeat the block, but not if the client marks the end of messages that were not rewritten. False for `ownMarkers: 'none'`.
 */
function canMark(place: MarkerPlace, question: PlanMarkersInput): boolean {
  const { repeatedUntil, clientMarkers = [], ownMarkers = 'all', blockIndex, isRewritten = false } = question
  if (ownMarkers === 'none') return false
  // Where the provider caches each prompt by itself, only the end of the system prompt is worth a marker.
  if (question.cache.kind === 'breakpoints') return place.zone === 'system'
  const last = clientMarkers.at(-1)?.place
  if (last !== undefined && compareMarkerPlaces(place, last) <= 0) return true
  const marksEnd =
    last?.zone === 'messages' && last.index >= (findLastResponseIndex(blockIndex.messages) ?? 0)
  if (marksEnd && !isRewritten) return false
  if (place.zone !== 'messages') return true
  if (ownMarkers !== 'all') return false
  if (repeatedUntil === undefined) return true
  return repeatedUntil !== null && compareMarkerPlaces(place, repeatedUntil) <= 0
}

function toCandidates(kind: MarkerKind, place: MarkerPlace | null): readonly MarkerCandidate[] {
  return place === null ? [] : [{ kind, place }]
}

/**
 * Returns the last block before a clearable tool result that can carry a cache marker. Clearing the result keeps the
 * cached prefix up to this block.
 */
function findPlaceBefore(
  { blockIndex, cache }: PlanMarkersInput,
  result: MessageBlockPlace | null = null,
): MessageBlockPlace | null {
  return result === null ? null : findLastMarkableBlock(blockIndex.messages, cache, result)
}

/**
 * Returns the last block of the system prompt, or the last tool if there is no system prompt. A marker on the system
 * prompt covers the tools too, since they come before it.
 */
function findSystemEnd({ front, cache }: PlanMarkersInput): MarkerPlace | null {
  const index = front.system.findLastIndex(({ block }) => canCarryMarker(block, cache))
  if (index !== -1) return { zone: 'system', index }
  const tool = front.tools.findLastIndex(isLoadedUpfront)
  return tool === -1 ? null : { zone: 'tools', index: tool }
}

/**
 * Returns the block where the last answered API request ended, if more positions were added since than a cache marker
 * looks back. The prefix cached up to that block is found only if a marker is set there. Otherwise returns null.
 */
function findPreviousEnd({ blockIndex, cache, policy }: PlanMarkersInput): MessageBlockPlace | null {
  const { messages } = blockIndex
  const response = findLastResponseIndex(messages)
  const tail = findLastMarkableBlock(messages, cache)
  const last =
    response === null ? null : findLastMarkableBlock(messages, cache, { index: response, block: 0 })
  if (tail === null || last === null) return null
  const added = countPositions(blockIndex, tail) - countPositions(blockIndex, last)
  return added > Math.min(policy.laggingAfterPositions, cache.lookBack - 1) ? last : null
}

function countPositions(counted: BlockIndex, { index, block }: MessageBlockPlace): number {
  return countTotalsThroughBlock(counted, index, block).positions
}

function findStaticEnd({ front }: PlanMarkersInput): MarkerPlace | null {
  const index = front.system.findIndex(({ part }) => part === 'static')
  return index === -1 ? null : { zone: 'system', index }
}

function findLastSharedTool({ front }: PlanMarkersInput): MarkerPlace | null {
  return front.lastSharedTool === null ? null : { zone: 'tools', index: front.lastSharedTool }
}

/** Creates a marker. The scope `global` is set only if the provider has it and the prefix is the same for all accounts. */
function createOwnMarker(
  question: PlanMarkersInput,
  { kind, place }: MarkerCandidate,
  isInTail: boolean,
): PlannedMarker {
  const { front, cache, spelling } = question
  const isStatic = place.zone === 'system' && front.system[place.index]?.part === 'static'
  const isGlobal = isStatic && front.isShareable && cache.scopes.includes('global')
  const ttl = toMarkerTtl(findOwnTtl(question, place, isInTail), cache)
  const scope = isGlobal ? 'global' : undefined
  return { kind, place, ttl, scope, control: spelling.spellMarker({ ttl, scope }) }
}

/** Returns the lifetime that a marker must name; null if it is the provider's default, or one that it does not have. */
export function toMarkerTtl(ttl: string, { defaultTtl, ttls }: CacheRules): string | null {
  return ttl !== defaultTtl && ttls.some(({ name }) => name === ttl) ? ttl : null
}

// A cache marker stands before the first clearable tool result, so that what is before it stays cached after a clearing.
// The first API request after a clearing or compaction gets a marker at the old and at the new place, because the
// remaining prefix was cached up to the old place. Both places follow from the log: a session that is opened again
// marks the same blocks.

/** The first clearable tool result, now and before the last rewrite, from which the markers before them follow. */
export interface FirstClearableState {
  /** Id of the tool call whose result is the first that may be cleared; null if there is none. */
  readonly result: string | null
  /**
   * Id of the tool call whose result was the first in the last answered request, if the context was rewritten after that;
   * null once a request after the rewrite has been answered.
   */
  readonly left: string | null
  /** The last request, if this process has assembled it. */
  readonly asked: AskedRequest | null
  /** The last request that was answered, if this process has assembled it. */
  readonly answered: AskedRequest | null
}

/** A request, identified by the number of records before it in the log. `result`: its first clearable result. */
interface AskedRequest {
  readonly position: number
  readonly result: string | null
}

export const NO_FIRST_CLEARABLE: FirstClearableState = {
  result: null,
  left: null,
  asked: null,
  answered: null,
}

export interface FirstClearableInput {
  /** Id of the tool call whose result would be the first to be cleared now; null if there is none. */
  readonly firstClearable: string | null
  /** Number of records in the log. */
  readonly position: number
  /** Position of the request that the newest response answers; null if there is no response. */
  readonly answeredAt: number | null
  /** True if a response arrived after the context was last rewritten. */
  readonly isAnswered: boolean
  /** Finds the first clearable result of the request at `answeredAt` in the log. Called if no process remembers it. */
  readonly restore: () => string | null
}

/** Returns the first clearable results for the request that is being assembled. */
export function updateFirstClearable(
  held: FirstClearableState,
  { firstClearable: result, position, answeredAt, isAnswered, restore }: FirstClearableInput,
): FirstClearableState {
  const asked = { position, result }
  const known = [held.asked, held.answered].find((request) => request?.position === answeredAt) ?? null
  if (answeredAt === null || isAnswered) return { result, left: null, asked, answered: known }
  const answered = known ?? { position: answeredAt, result: restore() }
  return { result, left: answered.result, asked, answered }
}

// The declarations below describe and find positions in an API request.

/** The position of a block in the messages. */
export interface MessageBlockPlace {
  readonly zone: 'messages'
  /** Index of the message in the request. */
  readonly index: number
  readonly block: number
}

type MarkerPlace = { readonly zone: 'tools' | 'system'; readonly index: number } | MessageBlockPlace

const ZONE_ORDER = ['tools', 'system', 'messages']

/** Compares two positions by their order in the request, as a sort function does. */
export function compareMarkerPlaces(one: MarkerPlace, other: MarkerPlace): number {
  const [left, right] = [toSortKey(one), toSortKey(other)]
  const differs = left.findIndex((part, index) => part !== right[index])
  return differs === -1 ? 0 : (left[differs] ?? 0) - (right[differs] ?? 0)
}

function toSortKey(place: MarkerPlace): readonly number[] {
  return [ZONE_ORDER.indexOf(place.zone), place.index, place.zone === 'messages' ? place.block : 0]
}

/**
 * Returns the last block before the position `before` that can carry a cache marker; null if there is none. Without
 * `before`, the whole API request is searched.
 */
export function findLastMarkableBlock(
  messages: MessageList,
  cache: CacheRules,
  before: Omit<MessageBlockPlace, 'zone'> = { index: countMessages(messages), block: 0 },
): MessageBlockPlace | null {
  for (let index = Math.min(before.index, countMessages(messages) - 1); index >= 0; index -= 1) {
    const message = findMessageAt(messages, index)
    if (message === undefined || isTurnScopedMessage(message.message)) continue
    const blocks =
      index === before.index ? toMessageBlocks(message).slice(0, before.block) : toMessageBlocks(message)
    const block = blocks.findLastIndex((each) => canCarryMarker(each, cache))
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** Returns the index of the last assistant message; null if there is none. */
export function findLastResponseIndex(messages: MessageList): number | null {
  for (let index = countMessages(messages) - 1; index >= 0; index -= 1) {
    if (findMessageAt(messages, index)?.message.role === 'assistant') return index
  }
  return null
}

/** Messages of an API request. `calls` maps a tool call id to a message index from which to search for its result. */
export interface MessagesWithCalls extends MessageList {
  readonly calls: { get(id: string): number | undefined }
}

/** Returns the position of the result of a tool call; null if the messages do not contain it. */
export function findResultPlace(messages: MessagesWithCalls, id: string): MessageBlockPlace | null {
  const from = messages.calls.get(id) ?? messages.frozen.length
  for (let index = from; index < countMessages(messages); index += 1) {
    const block = findResultBlock(findMessageAt(messages, index), id)
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

function findResultBlock(message: TracedMessage | undefined, id: string): number {
  if (message === undefined) return -1
  return toMessageBlocks(message).findIndex((block) => isToolResult(block) && block.tool_use_id === id)
}

/**
 * Returns the position of a block from the log record `uuid`: the last such block in the first message that has one.
 * Null if there is none.
 */
export function findRecordPlace(messages: MessageList, uuid: string): MessageBlockPlace | null {
  for (let index = 0; index < countMessages(messages); index += 1) {
    const block = findMessageAt(messages, index)?.origins.lastIndexOf(uuid) ?? -1
    if (block !== -1) return { zone: 'messages', index, block }
  }
  return null
}

/** Returns the first `count` messages. The map from tool call ids to messages still covers all messages. */
export function takeFirstMessages(
  { frozen, tail, calls }: MessagesWithCalls,
  count: number,
): MessagesWithCalls {
  return { frozen: frozen.take(count), tail: tail.slice(0, Math.max(0, count - frozen.length)), calls }
}

// Places the cache markers of a client's own request in the engine's request. A marker on something that the request no
// longer has is left out.

/** A cache marker that a client has set, as its codec read it. `control`: the marker exactly as the client spelt it. */
export type ClientMarker = Pick<PlannedMarker, 'ttl' | 'scope' | 'control'> &
  (
    | { readonly zone: 'tools'; readonly name: string }
    | { readonly zone: 'system'; readonly index: number }
    /** `block`: the marked block, without its markers. */
    | { readonly zone: 'messages'; readonly block: Block }
    /** A marker on the request itself: the last block that can be marked. */
    | { readonly zone: 'end' }
  )

/**
 * Finds the places of a client's markers in the request. If there are more than the provider allows, the last ones count.
 * Returns them in request order.
 */
export function placeClientMarkers(
  markers: readonly ClientMarker[],
  request: { readonly front: RequestPrefix; readonly messages: MessageList; readonly cache: CacheRules },
): readonly PlannedMarker[] {
  const placed: PlannedMarker[] = []
  for (const marker of markers.toReversed()) {
    const place = findMarkedPlace(marker, request)
    const isTaken = placed.some((other) => place !== null && compareMarkerPlaces(other.place, place) === 0)
    if (place !== null && !isTaken && placed.length < request.cache.maxMarkers)
      placed.push({
        kind: 'client',
        place,
        ttl: marker.ttl,
        scope: marker.scope,
        control: marker.control,
      })
  }
  return placed.toSorted((one, other) => compareMarkerPlaces(one.place, other.place))
}

function findMarkedPlace(
  marker: ClientMarker,
  { front, messages, cache }: Parameters<typeof placeClientMarkers>[1],
): MarkerPlace | null {
  if (marker.zone === 'end') return findLastMarkableBlock(messages, cache)
  if (marker.zone === 'messages') return findSameBlock(messages, marker.block)
  if (marker.zone === 'tools') {
    const index = front.tools.findIndex(({ name, type }) => (name ?? type) === marker.name)
    return index === -1 ? null : { zone: 'tools', index }
  }
  const index = Math.min(marker.index, front.system.length - 1)
  const section = front.system[index]
  return section !== undefined && canCarryMarker(section.block, cache) ? { zone: 'system', index } : null
}

/** Returns the place of the last such block: a tool call or result by id, any other by content. Null if there is none. */
function findSameBlock(messages: MessageList, block: Block): MessageBlockPlace | null {
  for (let index = countMessages(messages) - 1; index >= 0; index -= 1) {
    const message = findMessageAt(messages, index)
    const blocks = message === undefined ? [] : toMessageBlocks(message)
    const found = blocks.findLastIndex((each) => isSameBlock(each, block))
    if (found !== -1) return { zone: 'messages', index, block: found }
  }
  return null
}

/** Compares tool calls and results by their ids, since clients may change their contents, and other blocks by content. */
function isSameBlock(one: Block, other: Block): boolean {
  if (isToolUse(one) && isToolUse(other)) return one.id === other.id
  if (isToolResult(one) && isToolResult(other)) return one.tool_use_id === other.tool_use_id
  return isSameJson(one, other)
}
