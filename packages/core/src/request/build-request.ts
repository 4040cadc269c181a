/**
 * Builds a request from the frozen prefix and the messages by reference. Markers stay positions until the request is
 * encoded: they move every turn onto messages that are long frozen, which must not be copied. A turn costs what it added.
 */

import type { FlatMessage } from '../context/flatten.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { type Block, isToolResult } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { MarkersPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import type { PlacedMarker } from '../validate/content-rules.ts'
import type { Finding } from '../validate/finding.ts'
import { type Checked, checkMessage, checkRequest, finishMessages } from '../validate/validate.ts'
import { blocksIn, type Counted, countMessages, type MessageList, messageAt } from './block-index.ts'
import {
  type CallPlaces,
  comparePlaces,
  type HeldEdge,
  type MessagePlace,
  NO_EDGE,
  type PlannedMarker,
  placeOfRecord,
  placeOfResult,
  planMarkers,
} from './cache-markers.ts'
import type { Front } from './prefix.ts'

export interface AssembledRequest {
  readonly front: Front
  readonly messages: MessageList
  /** The frozen messages as the host gave them, if they were searched for cache markers of its own. */
  readonly given?: List<FlatMessage>
  readonly counted: Counted
  /** In request order. */
  readonly markers: readonly PlannedMarker[]
  /** Lifetime of the markers; null if caching is off. */
  readonly ttl: string | null
  /** Fields of this request alone (`context_management`, `diagnostics`), sent after the parameters. */
  readonly extra: JsonObject
  /** Results before the last marker carry a reference to themselves, so that they can be deleted later. */
  readonly refers: boolean
}

export interface AssembleQuestion {
  readonly front: Front
  readonly flat: CallPlaces
  readonly profile: Profile
  readonly markers: MarkersPolicy
  /** Null: caching is off, and nothing is marked. */
  readonly ttl: string | null
  /** Clearing is on. */
  readonly clears: boolean
  /** Where the marker before the first clearable result is held. */
  readonly edge?: HeldEdge
  /** The last record of the context sources that a compaction left unchanged in front. */
  readonly carriersEnd?: string | null
  readonly extra?: JsonObject
}

const NO_FIELDS: JsonObject = {}

/** `previous`: the last request, of which everything that still holds is reused. */
export function assembleRequest(question: AssembleQuestion, previous?: AssembledRequest): AssembledRequest {
  const { front, flat, profile, ttl, extra = NO_FIELDS } = question
  const refers = profile.capabilities.cacheEdits
  const indexWith = (messages: MessageList): Counted =>
    countMessages(messages, profile.cache.collapsesToolRuns, previous?.counted)
  if (ttl === null) {
    // Caching is off: the messages are sent as the host gave them.
    const messages = { frozen: flat.frozen, tail: flat.tail }
    return { front, messages, counted: indexWith(messages), markers: [], ttl, extra, refers }
  }
  const { given, ...messages } = stripMarkers(flat, toUnmarked(previous))
  const counted = indexWith(messages)
  return {
    front,
    messages,
    counted,
    markers: planRequestMarkers(question, counted, ttl),
    ttl,
    extra,
    refers,
    given,
  }
}

function planRequestMarkers(
  question: AssembleQuestion,
  counted: Counted,
  ttl: string,
): readonly PlannedMarker[] {
  const { front, flat, profile, markers: policy, clears, edge = NO_EDGE, carriersEnd = null } = question
  return planMarkers({
    front,
    counted,
    policy,
    cache: profile.cache,
    ttl,
    clears,
    firstClearable: edge.result === null ? null : placeOfResult(flat, edge.result),
    leftClearable: edge.left === null ? null : placeOfResult(flat, edge.left),
    carriersEnd: carriersEnd === null ? null : placeOfRecord(flat, carriersEnd),
  })
}

// The request as a payload: messages by reference, markers on them apart.

/** A payload without its messages. */
interface RequestFields {
  readonly model: string
  readonly [field: string]: unknown
}

/** With the markers on tools and system prompt in place. */
export function requestFields(request: Pick<AssembledRequest, 'front' | 'extra' | 'markers'>): RequestFields {
  const { model, parameters, tools, system } = request.front
  const withMarker = <T extends object>(value: T, zone: 'tools' | 'system', index: number): T => {
    const found = request.markers.find(({ place }) => place.zone === zone && place.index === index)
    return found === undefined ? value : { ...value, cache_control: found.control }
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

/** The markers on messages, each with its message. */
export function placedMarkers({ messages, markers }: AssembledRequest): readonly PlacedMarker[] {
  return markers.flatMap(({ place, control }) => {
    const found = place.zone === 'messages' ? messageAt(messages, place.index) : undefined
    if (place.zone !== 'messages' || found === undefined) return []
    const message = { ...found.message, content: blocksIn(found) }
    return [{ message, index: place.index, block: place.block, control }]
  })
}

/** What `validate` would find in the payload; costs what is not frozen. */
export function requestFindings(checked: Checked, request: AssembledRequest): readonly Finding[] {
  let { state } = checked
  for (const { message } of request.messages.tail) state = checkMessage(state, message)
  const fields = requestFields(request)
  return [...checkRequest(fields, state.profile), ...finishMessages(state, fields, placedMarkers(request))]
}

/** The whole payload with markers and references in place, for codecs that cannot insert them. */
export function payloadOf(request: AssembledRequest): Payload {
  const marked = request.markers.filter(isOnMessage)
  const messages = messagesIn(request).map((message, index) =>
    withMarkers(message, index, marked, request.refers),
  )
  return { ...requestFields(request), messages }
}

/** What a model is called with; payload and raw texts are made on first use. */
export interface SpelledCall {
  readonly request: AssembledRequest
  readonly payload: Payload
  readonly raw: readonly FlatMessage['raw'][]
}

export function callOf(request: AssembledRequest): SpelledCall {
  let payload: Payload | undefined
  let raw: SpelledCall['raw'] | undefined
  return {
    request,
    get payload() {
      payload ??= payloadOf(request)
      return payload
    },
    get raw() {
      raw ??= rawTextsOf(request)
      return raw
    },
  }
}

/** Exact texts of blocks that would not survive parse and stringify, by message. */
export function rawTextsOf(request: AssembledRequest): readonly FlatMessage['raw'][] {
  return messagesIn(request).map(({ raw }) => raw)
}

function messagesIn({ messages }: AssembledRequest): readonly FlatMessage[] {
  return [...messages.frozen.toArray(), ...messages.tail]
}

type MessageMarker = PlannedMarker & { readonly place: MessagePlace }

function isOnMessage(marker: PlannedMarker): marker is MessageMarker {
  return marker.place.zone === 'messages'
}

/** The same object if nothing is put on the message. */
function withMarkers(
  message: FlatMessage,
  index: number,
  markers: readonly MessageMarker[],
  refers: boolean,
): ApiMessage {
  const own = markers.filter(({ place }) => place.index === index)
  const last = refers ? markers.at(-1)?.place : undefined
  const isReferred = last !== undefined && index <= last.index && blocksIn(message).some(isToolResult)
  if (own.length === 0 && !isReferred) return message.message
  const content = blocksIn(message).map((block, at) => {
    const control = own.find(({ place }) => place.block === at)?.control
    const place: MessagePlace = { zone: 'messages', index, block: at }
    const referred = last !== undefined && comparePlaces(place, last) < 0 ? withReference(block) : block
    return control === undefined ? referred : { ...referred, cache_control: control }
  })
  return { ...message.message, content }
}

/** A reference that came with a result stays as it is. */
function withReference(block: Block): Block {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? { ...block, cache_reference: block.tool_use_id } : block
}

// Messages without the cache markers that a host set itself. If the engine does the caching, all markers are its own:
// others would exceed the provider's four, with lifetimes that may not fit, and would be logged and sent for ever.
// Unchanged messages stay the same objects.

const EMPTY = List.of<FlatMessage>()

export interface Unmarked extends MessageList {
  /** The frozen messages as they were given. */
  readonly given: List<FlatMessage>
}

/** What a request has of this, for the next one to continue. */
export function toUnmarked(request: AssembledRequest | undefined): Unmarked | undefined {
  return request?.given === undefined ? undefined : { ...request.messages, given: request.given }
}

/** `from`: the result for an earlier state; only what was added since is searched. */
export function stripMarkers({ frozen: given, tail }: MessageList, from?: Unmarked): Unmarked {
  const known = from !== undefined && given.extends(from.given) ? from : undefined
  const isPlain = known === undefined || known.frozen === known.given
  let frozen = given
  if (!isPlain || given.toArray(known?.given.length ?? 0).some(isMarked)) {
    frozen = known?.frozen ?? EMPTY
    for (const message of given.toArray(frozen.length)) frozen = frozen.push(stripMessage(message))
  }
  return { given, frozen, tail: tail.some(isMarked) ? tail.map(stripMessage) : tail }
}

export function stripMessage(message: FlatMessage): FlatMessage {
  if (!isMarked(message)) return message
  const blocks = blocksIn(message)
  const kept = [...(message.raw ?? [])].filter(([at]) => !hasMarker(blocks[at]))
  const { raw: _, ...rest } = message
  const plain = { ...rest, message: { ...message.message, content: blocks.map(stripBlock) } }
  return kept.length === 0 ? plain : { ...plain, raw: new Map(kept) }
}

function isMarked(message: FlatMessage): boolean {
  return typeof message.message.content !== 'string' && message.message.content.some(hasMarker)
}

/** Markers inside a result count like any other. */
function hasMarker(block: Block | undefined): boolean {
  if (block === undefined) return false
  return (
    'cache_control' in block ||
    innerBlocks(block).some((inner) => isObject(inner) && 'cache_control' in inner)
  )
}

function innerBlocks(block: Block): readonly unknown[] {
  return isToolResult(block) && Array.isArray(block.content) ? block.content : []
}

function stripBlock(block: Block): Block {
  if (!hasMarker(block)) return block
  const { cache_control: _, ...plain } = block
  const inner = innerBlocks(block)
  if (inner.length === 0) return plain
  return {
    ...plain,
    content: inner.map((each) => (isObject(each) ? unmarkedFields(each as JsonObject) : each)),
  }
}

/** For tools, parameters and inner blocks: a marker on the whole request is one more. */
export function unmarkedFields<T extends JsonObject>(fields: T): T {
  if (!('cache_control' in fields)) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'cache_control')) as T
}
