/**
 * Builds an API request from the prefix snapshot (frozen system prompt, tools and parameters) and references to the
 * messages. Cache markers are kept as positions and inserted only when the request is encoded, because they move every
 * turn and messages must not be copied for that. The time per turn depends only on what was added.
 */

import { listTracedMessages, type TracedMessage } from '../context/flatten-context.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { type Block, CACHE_MARKER_FIELD, isBlock, isToolResult, withoutCacheMarker } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { CacheMarkersPolicy } from '../policy/cache-policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { PlacedMarker } from '../validate/content-rules.ts'
import type { Finding } from '../validate/findings.ts'
import { checkMessage, finishRequestCheck, type ValidationState } from '../validate/validate-request.ts'
import {
  type BlockIndex,
  findMessageAt,
  indexBlocks,
  type MessageList,
  toMessageBlocks,
} from './block-index.ts'
import {
  type ClientMarker,
  compareMarkerPlaces,
  type FirstClearableState,
  findRecordPlace,
  findResultPlace,
  type MessageBlockPlace,
  type MessagesWithCalls,
  NO_FIRST_CLEARABLE,
  type OwnMarkerScope,
  type PlannedMarker,
  placeClientMarkers,
  planMarkers,
} from './cache-markers.ts'
import type { RequestPrefix } from './prefix-snapshot.ts'

/** An API request before it is encoded. Shares its messages with the requests before it. */
export interface AssembledRequest {
  readonly front: RequestPrefix
  readonly messages: MessageList
  /** The unchangeable (frozen) messages as the host supplied them, with its own cache markers. Absent if caching is off. */
  readonly given?: AppendList<TracedMessage>
  readonly blockIndex: BlockIndex
  /** Cache markers in the order in which they appear in the API request. */
  readonly markers: readonly PlannedMarker[]
  /** Lifetime of the cache markers; null if caching is off. */
  readonly ttl: string | null
  /** Fields of this API request only, such as context edits. They are sent after the parameters of the prefix snapshot. */
  readonly extra: JsonObject
  /**
   * Adds to a tool result before the last cache marker the reference by which a later request can delete it from the
   * cache. Null if the provider has no such references.
   */
  readonly addReference: ((block: Block) => Block) | null
}

export interface AssembleRequestInput {
  readonly front: RequestPrefix
  readonly flat: MessagesWithCalls
  readonly profile: ProviderProfile
  readonly markers: CacheMarkersPolicy
  /** Lifetime of the cache markers; null if caching is off, so that no block is marked. */
  readonly ttl: string | null
  /** Lifetime of the newest messages, if it is shorter. */
  readonly tailTtl?: string | undefined
  /** True if the policy clears old tool results. */
  readonly clears: boolean
  /** The first tool result that may be cleared. A cache marker is kept before that result. */
  readonly edge?: Pick<FirstClearableState, 'result' | 'left'>
  /**
   * After a compaction: uuid of the last record at the start of the context that comes from a context source and did
   * not change.
   */
  readonly carriersEnd?: string | null
  /**
   * uuid of the last record that the next request is expected to repeat; null for none. Default: all are repeated. If
   * the context does not have it, no message is expected to be repeated.
   */
  readonly repeatedUntil?: string | null
  /** The cache markers that the host set in its own request. */
  readonly clientMarkers?: readonly ClientMarker[]
  /** Which parts get cache markers that the host has not set itself. Default: all. */
  readonly ownMarkers?: OwnMarkerScope
  /** True if the engine has rewritten the context of a host. Default: false. */
  readonly isRewritten?: boolean
  readonly extra?: JsonObject
}

const NO_FIELDS: JsonObject = {}

/** What an API request reuses of the one before it. A request restored from a log has only the block index. */
type PreviousRequest = Partial<Pick<AssembledRequest, 'messages' | 'given' | 'blockIndex'>>

/** Assembles an API request. Parts of `previous`, the last API request, that are still valid are reused. */
export function assembleRequest(
  question: AssembleRequestInput,
  previous: PreviousRequest = {},
): AssembledRequest {
  const { front, flat, profile, ttl, extra = NO_FIELDS } = question
  const addReference = profile.capabilities.cacheEdits ? profile.spelling.addReference : null
  const indexWith = (messages: MessageList): BlockIndex =>
    indexBlocks(messages, profile.cache.collapsesToolRuns, previous.blockIndex)
  if (ttl === null) {
    // With caching off, the messages are sent as the host supplied them, including cache markers set by the host.
    const messages = { frozen: flat.frozen, tail: flat.tail }
    return {
      front,
      messages,
      blockIndex: indexWith(messages),
      markers: [],
      ttl,
      extra,
      addReference,
    }
  }
  const { given, ...messages } = stripMarkers(flat, toUnmarkedMessages(previous))
  const counted = indexWith(messages)
  return {
    front,
    messages,
    blockIndex: counted,
    markers: planRequestMarkers(question, counted, ttl),
    ttl,
    extra,
    addReference,
    given,
  }
}

function planRequestMarkers(
  question: AssembleRequestInput,
  counted: BlockIndex,
  ttl: string,
): readonly PlannedMarker[] {
  const { front, flat, profile, markers, clears, repeatedUntil, clientMarkers = [] } = question
  const { edge = NO_FIRST_CLEARABLE, carriersEnd = null } = question
  return planMarkers({
    front,
    blockIndex: counted,
    policy: markers,
    cache: profile.cache,
    spelling: profile.spelling,
    ttl,
    tailTtl: question.tailTtl,
    clears,
    firstClearable: edge.result === null ? null : findResultPlace(flat, edge.result),
    leftClearable: edge.left === null ? null : findResultPlace(flat, edge.left),
    carriersEnd: carriersEnd === null ? null : findRecordPlace(flat, carriersEnd),
    clientMarkers: placeClientMarkers(clientMarkers, {
      front,
      messages: counted.messages,
      cache: profile.cache,
    }),
    ownMarkers: question.ownMarkers ?? 'all',
    isRewritten: question.isRewritten ?? false,
    ...(repeatedUntil === undefined
      ? {}
      : { repeatedUntil: repeatedUntil === null ? null : findRecordPlace(flat, repeatedUntil) }),
  })
}

// The functions below turn an assembled API request into the payload to send. Messages are not copied, and cache
// markers on messages are listed separately.

/** All fields of a payload except `messages`. */
interface RequestFields {
  readonly model: string
  readonly [field: string]: unknown
}

/** Returns all fields of the request except the messages, with the cache markers on tools and system prompt in place. */
export function toNonMessageFields(
  request: Pick<AssembledRequest, 'front' | 'extra' | 'markers'>,
): RequestFields {
  const { model, parameters, tools, system } = request.front
  const withMarker = <T extends object>(value: T, zone: 'tools' | 'system', index: number): T => {
    const found = request.markers.find(({ place }) => place.zone === zone && place.index === index)
    return found === undefined ? value : { ...value, [CACHE_MARKER_FIELD]: found.control }
  }
  return {
    model,
    ...parameters,
    ...request.extra,
    ...(tools.length === 0 ? {} : { tools: tools.map((tool, at) => withMarker(tool, 'tools', at)) }),
    ...(system.length === 0
      ? {}
      : { system: system.map(({ block }, at) => withMarker(block, 'system', at)) }),
  }
}

/** Lists the cache markers on messages, each together with the marked message. */
function listMessageMarkers({ messages, markers }: AssembledRequest): readonly PlacedMarker[] {
  return markers.flatMap(({ place, control }) => {
    const found = place.zone === 'messages' ? findMessageAt(messages, place.index) : undefined
    if (place.zone !== 'messages' || found === undefined) return []
    const message = { ...found.message, content: toMessageBlocks(found) }
    return [{ message, index: place.index, block: place.block, control }]
  })
}

/**
 * Returns the problems that `validate` finds in the API request. Frozen messages were checked before, so the time
 * depends only on the messages after them.
 */
export function findRequestProblems(checked: ValidationState, request: AssembledRequest): readonly Finding[] {
  const fields = toNonMessageFields(request)
  const placed = listMessageMarkers(request)
  let { state } = checked
  for (const { message } of request.messages.tail) state = checkMessage(state, message)
  return finishRequestCheck(state, fields, placed)
}

/** Builds the complete payload with cache markers and cache references inserted, for codecs that cannot insert them. */
export function toPayload(request: AssembledRequest): Payload {
  const { addReference } = request
  const marked = request.markers.filter(isOnMessage)
  const indexes = new Set(marked.map(({ place }) => place.index))
  const messages = listTracedMessages(request.messages).map((message, index) =>
    addReference !== null || indexes.has(index)
      ? withMessageMarkers(message, index, marked, addReference)
      : message.message,
  )
  return { ...toNonMessageFields(request), messages }
}

/** The input of a model call. The payload and the raw texts are computed on first use. */
interface ModelCallInput {
  readonly request: AssembledRequest
  readonly payload: Payload
  readonly raw: readonly TracedMessage['raw'][]
}

/** Returns the request as the `Model` port takes it. */
export function toModelCallInput(request: AssembledRequest): ModelCallInput {
  let payload: Payload | undefined
  let raw: ModelCallInput['raw'] | undefined
  return {
    request,
    get payload() {
      payload ??= toPayload(request)
      return payload
    },
    get raw() {
      raw ??= listExactBlockTexts(request)
      return raw
    },
  }
}

/** Returns, for each message, the original JSON texts of blocks that would change if they were parsed and stringified. */
export function listExactBlockTexts(request: AssembledRequest): readonly TracedMessage['raw'][] {
  return listTracedMessages(request.messages).map(({ raw }) => raw)
}

type MessageMarker = PlannedMarker & { readonly place: MessageBlockPlace }

function isOnMessage(marker: PlannedMarker): marker is MessageMarker {
  return marker.place.zone === 'messages'
}

/** Adds cache markers and cache references to a message. Returns the same object if nothing is added. */
function withMessageMarkers(
  message: TracedMessage,
  index: number,
  markers: readonly MessageMarker[],
  addReference: AssembledRequest['addReference'],
): ApiMessage {
  const own = markers.filter(({ place }) => place.index === index)
  const last = addReference === null ? undefined : markers.at(-1)?.place
  const isReferred = last !== undefined && index <= last.index && toMessageBlocks(message).some(isToolResult)
  if (own.length === 0 && !isReferred) return message.message
  const content = toMessageBlocks(message).map((block, at) => {
    const control = own.find(({ place }) => place.block === at)?.control
    const place: MessageBlockPlace = { zone: 'messages', index, block: at }
    const referred =
      addReference !== null && last !== undefined && compareMarkerPlaces(place, last) < 0
        ? addReference(block)
        : block
    return control === undefined ? referred : { ...referred, [CACHE_MARKER_FIELD]: control }
  })
  return { ...message.message, content }
}

// The functions below remove cache markers that the host set. If caching is on, the engine sets all markers itself.
// Markers of the host could exceed the provider's limit of four or have lifetimes in an invalid order. Unchanged
// messages stay the same objects.

const NO_MESSAGES = AppendList.of<TracedMessage>()

/** Messages without cache markers, and the frozen ones as they were given. */
export interface UnmarkedMessages extends MessageList {
  /** The unchangeable (frozen) messages as the host supplied them, with its own cache markers. */
  readonly given: AppendList<TracedMessage>
}

/**
 * Returns the messages of an API request before and after removal of cache markers, so that `stripMarkers` can continue
 * from them. Undefined if caching was off.
 */
export function toUnmarkedMessages({ messages, given }: PreviousRequest): UnmarkedMessages | undefined {
  return messages === undefined || given === undefined ? undefined : { ...messages, given }
}

/**
 * Removes cache markers set by the host from messages. `from`: result for an earlier API request, so that only messages
 * added since then are searched.
 */
export function stripMarkers(
  { frozen: given, tail }: MessageList,
  from?: UnmarkedMessages,
): UnmarkedMessages {
  const known = from !== undefined && given.extends(from.given) ? from : undefined
  const isPlain = known === undefined || known.frozen === known.given
  let frozen = given
  if (!isPlain || given.toArray(known?.given.length ?? 0).some(hasMessageMarker)) {
    frozen = known?.frozen ?? NO_MESSAGES
    for (const message of given.toArray(frozen.length)) frozen = frozen.push(stripMessageMarkers(message))
  }
  return { given, frozen, tail: tail.some(hasMessageMarker) ? tail.map(stripMessageMarkers) : tail }
}

/** Returns a message without the cache markers of its blocks; the same object if it has none. */
export function stripMessageMarkers(message: TracedMessage): TracedMessage {
  if (!hasMessageMarker(message)) return message
  const blocks = toMessageBlocks(message)
  const kept = [...(message.raw ?? [])].filter(([at]) => !hasBlockMarker(blocks[at]))
  const { raw: _, ...rest } = message
  const plain = { ...rest, message: { ...message.message, content: blocks.map(stripBlockMarkers) } }
  return kept.length === 0 ? plain : { ...plain, raw: new Map(kept) }
}

function hasMessageMarker(message: TracedMessage): boolean {
  return typeof message.message.content !== 'string' && message.message.content.some(hasBlockMarker)
}

/** True if the block has a cache marker, or a block inside its tool result or document has one. */
function hasBlockMarker(block: unknown): boolean {
  return isBlock(block) && (CACHE_MARKER_FIELD in block || listInnerBlocks(block).some(hasBlockMarker))
}

/** Returns the blocks inside a tool result, or inside a document whose source is a list of blocks. */
function listInnerBlocks({ type, content, source }: Block): readonly unknown[] {
  const inner = type === 'document' && isObject(source) ? source.content : content
  return (type === 'tool_result' || type === 'document') && Array.isArray(inner) ? inner : []
}

function stripBlockMarkers(block: Block): Block {
  if (!hasBlockMarker(block)) return block
  const plain = withoutCacheMarker(block)
  if (listInnerBlocks(block).length === 0) return plain
  const inner = listInnerBlocks(block).map((each) => (isBlock(each) ? stripBlockMarkers(each) : each))
  return block.type === 'document' && isObject(block.source)
    ? { ...plain, source: { ...block.source, content: inner } }
    : { ...plain, content: inner }
}
