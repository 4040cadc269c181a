/**
 * A request put together from what stays (the front of its epoch) and the messages by reference. Markers are
 * places, put on by whoever spells the request: they move every turn onto messages that have long been settled,
 * and must not make anybody copy those. A turn costs what it added.
 */

import type { FlatMessage } from '../context/message-parts.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { List } from '../log/append-list.ts'
import { type Block, isToolResult } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import type { MarkersPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import type { Finding } from '../validate/finding.ts'
import type { PlacedMarker } from '../validate/limit-rules.ts'
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
  /** The frozen messages as they were given, where markers of others' were taken out of `messages`. */
  readonly given?: Unmarked['given']
  readonly counted: Counted
  /** In the order of the request. */
  readonly markers: readonly PlannedMarker[]
  /** The lifetime the markers ask for; null where there are none to be. */
  readonly ttl: string | null
  /** Fields of this request alone (`context_management`, `diagnostics`): they come behind the parameters. */
  readonly extra: JsonObject
  /** Results in front of the last marker carry a reference to themselves, so that they can be deleted later. */
  readonly refers: boolean
}

export interface AssembleQuestion {
  readonly front: Front
  /** As flattening gives them. */
  readonly flat: CallPlaces
  readonly profile: Profile
  readonly markers: MarkersPolicy
  /** The lifetime in force; null: caching is off, and there are no markers. */
  readonly ttl: string | null
  /** Tier 1 is on. */
  readonly clears: boolean
  /** Where the edge is held. */
  readonly edge?: HeldEdge
  /** The last record of the carriers that a compaction left unchanged in front. */
  readonly carriersEnd?: string | null
  readonly extra?: JsonObject
}

const NO_FIELDS: JsonObject = {}

/** `previous`: the request before, of which everything that still holds is taken over. */
export function assembleRequest(question: AssembleQuestion, previous?: AssembledRequest): AssembledRequest {
  const { front, profile, ttl, extra = NO_FIELDS } = question
  const { given, ...messages } = messagesOf(question, previous)
  const counted = countMessages(messages, profile.cache.collapsesToolRuns, previous?.counted)
  const markers = ttl === null ? [] : markersOf(question, counted, ttl)
  const request = { front, messages, counted, markers, ttl, extra, refers: profile.capabilities.cacheEdits }
  return given === undefined ? request : { ...request, given }
}

/** Where caching is off, what was given goes out as it is. */
function messagesOf(
  { flat: { frozen, tail }, ttl }: AssembleQuestion,
  previous: AssembledRequest | undefined,
): MessageList & Pick<AssembledRequest, 'given'> {
  return ttl === null ? { frozen, tail } : unmarkedMessages({ frozen, tail }, unmarkedOf(previous))
}

/** What was made of the messages of a request. */
export function unmarkedOf(request: AssembledRequest | undefined): Unmarked | undefined {
  return request?.given === undefined ? undefined : { ...request.messages, given: request.given }
}

function markersOf(question: AssembleQuestion, counted: Counted, ttl: string): readonly PlannedMarker[] {
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

// An assembled request as a payload. The fields around the messages are made anew only where markers moved;
// the messages are handed over by reference, with the markers that come onto them told apart.

/** A payload but for its messages. */
export interface RequestFields {
  readonly model: string
  readonly [field: string]: unknown
}

/** Everything but the messages, markers on tools and system prompt in place. */
export function requestFields(request: Pick<AssembledRequest, 'front' | 'extra' | 'markers'>): RequestFields {
  const { model, parameters, tools, system } = request.front
  const control = (zone: 'tools' | 'system', index: number): JsonObject | undefined =>
    request.markers.find(({ place }) => place.zone === zone && place.index === index)?.control
  const marked = <T extends object>(value: T, on: JsonObject | undefined): T =>
    on === undefined ? value : { ...value, cache_control: on }
  return {
    model,
    ...parameters,
    ...request.extra,
    ...(tools.length === 0 ? {} : { tools: tools.map((tool, at) => marked(tool, control('tools', at))) }),
    ...(system.length === 0
      ? {}
      : { system: system.map(({ block }, at) => marked(block, control('system', at))) }),
  }
}

/** The markers that come onto messages, with the message each comes onto. */
export function placedMarkers(request: AssembledRequest): readonly PlacedMarker[] {
  return request.markers.flatMap(({ place, control }) => {
    const found = place.zone === 'messages' ? messageAt(request.messages, place.index) : undefined
    if (place.zone !== 'messages' || found === undefined) return []
    return [{ message: asList(found), index: place.index, block: place.block, control }]
  })
}

function asList(message: FlatMessage): ApiMessage {
  return { ...message.message, content: blocksIn(message) }
}

/** What `validate` would find in the payload, at the cost of what is not frozen. */
export function requestFindings(checked: Checked, request: AssembledRequest): readonly Finding[] {
  let { state } = checked
  for (const { message } of request.messages.tail) state = checkMessage(state, message)
  const fields = requestFields(request)
  return [...checkRequest(fields, state.profile), ...finishMessages(state, fields, placedMarkers(request))]
}

/** The whole payload, markers and references in place: for codecs that take no places, and for people who look. */
export function payloadOf(request: AssembledRequest): Payload {
  const { frozen, tail } = request.messages
  const marked = request.markers.filter(isOnMessage)
  const messages = [...frozen.toArray(), ...tail].map((message, index) =>
    spelled({ message, index }, marked, request.refers),
  )
  return { ...requestFields(request), messages }
}

/** What a model is called with: payload and raw texts are spelt only if somebody asks for them. */
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

/** Exact texts of blocks that would not survive parse and stringify, message by message. */
export function rawTextsOf({ messages }: AssembledRequest): readonly FlatMessage['raw'][] {
  return [...messages.frozen.toArray(), ...messages.tail].map(({ raw }) => raw)
}

type MessageMarker = PlannedMarker & { readonly place: MessagePlace }

function isOnMessage(marker: PlannedMarker): marker is MessageMarker {
  return marker.place.zone === 'messages'
}

interface Placed {
  readonly message: FlatMessage
  readonly index: number
}

/** The very same message where nothing comes onto it. */
function spelled({ message, index }: Placed, markers: readonly MessageMarker[], refers: boolean): ApiMessage {
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

/** One that came with a result stays as it is. */
function withReference(block: Block): Block {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? { ...block, cache_reference: block.tool_use_id } : block
}

// What a host says without the cache markers it brought along. Where the engine does the caching all markers are
// its own: those of others would come on top of the four there may be, with lifetimes that need not fit, and what
// is once in the log would be sent for ever. What stays the same stays the same object.

const EMPTY = List.of<FlatMessage>()

export interface Unmarked extends MessageList {
  /** The frozen messages as they were given. */
  readonly given: List<FlatMessage>
}

/** `from`: what was made of an earlier state; only what has come since is looked at. */
export function unmarkedMessages({ frozen: given, tail }: MessageList, from?: Unmarked): Unmarked {
  const isGrown = from !== undefined && given.extends(from.given)
  const known = isGrown ? from.given.length : 0
  const isPlain = !isGrown || from.frozen === from.given
  return {
    given,
    frozen: isPlain && !isMarkedFrom(given, known) ? given : withNews(given, isGrown ? from : undefined),
    tail: tail.some(isMarked) ? tail.map(unmarkedMessage) : tail,
  }
}

function isMarkedFrom(messages: List<FlatMessage>, start: number): boolean {
  for (let index = start; index < messages.length; index += 1) {
    const message = messages.at(index)
    if (message !== undefined && isMarked(message)) return true
  }
  return false
}

function withNews(given: List<FlatMessage>, from: Unmarked | undefined): List<FlatMessage> {
  let frozen = from?.frozen ?? EMPTY
  for (const message of given.toArray(frozen.length)) frozen = frozen.push(unmarkedMessage(message))
  return frozen
}

export function unmarkedMessage(message: FlatMessage): FlatMessage {
  if (!isMarked(message)) return message
  const blocks = blocksIn(message)
  const kept = [...(message.raw ?? [])].filter(([at]) => !hasMarker(blocks[at]))
  const { raw: _, ...rest } = message
  const plain = { ...rest, message: { ...message.message, content: blocks.map(unmarkedBlock) } }
  return kept.length === 0 ? plain : { ...plain, raw: new Map(kept) }
}

function isMarked(message: FlatMessage): boolean {
  return typeof message.message.content !== 'string' && message.message.content.some(hasMarker)
}

/** Markers inside a result count like any other. */
function hasMarker(block: Block | undefined): boolean {
  if (block === undefined) return false
  return 'cache_control' in block || innerOf(block).some((held) => isObject(held) && 'cache_control' in held)
}

function innerOf(block: Block): readonly unknown[] {
  return isToolResult(block) && Array.isArray(block.content) ? block.content : []
}

function unmarkedBlock(block: Block): Block {
  if (!hasMarker(block)) return block
  const { cache_control: _, ...plain } = block
  const inner = innerOf(block)
  return inner.length === 0 ? plain : { ...plain, content: inner.map(bare) }
}

function bare(value: unknown): unknown {
  if (!isObject(value) || !('cache_control' in value)) return value
  const { cache_control: _, ...plain } = value
  return plain
}

/** Tools and parameters likewise: a marker on the whole request is one more. */
export function unmarkedFields<T extends JsonObject>(fields: T): T {
  if (!('cache_control' in fields)) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'cache_control')) as T
}
