/**
 * Builds a request from the frozen prefix and the messages by reference. Markers stay positions until the request is
 * encoded: they move every turn onto messages that are long frozen, which must not be copied. A turn costs what it added.
 */

import type { TracedMessage } from '../context/flatten.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { type Block, isToolResult } from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { MarkersPolicy } from '../policy/policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { PlacedMarker } from '../validate/content-rules.ts'
import type { Finding } from '../validate/finding.ts'
import { checkMessage, checkRequest, finishMessageCheck, type ValidationState } from '../validate/validate.ts'
import { type BlockIndex, blocksOfMessage, indexBlocks, type MessageList, messageAt } from './block-index.ts'
import {
  type ClearableMarker,
  comparePlaces,
  findRecordPlace,
  findResultPlace,
  type MessagePlace,
  type MessagesWithCalls,
  NO_CLEARABLE_MARKER,
  type PlannedMarker,
  planMarkers,
} from './cache-markers.ts'
import type { RequestPrefix } from './prefix.ts'

export interface AssembledRequest {
  readonly front: RequestPrefix
  readonly messages: MessageList
  /** The frozen messages as the host gave them, if they were searched for cache markers of its own. */
  readonly given?: AppendList<TracedMessage>
  readonly blockIndex: BlockIndex
  /** In request order. */
  readonly markers: readonly PlannedMarker[]
  /** Lifetime of the markers; null if caching is off. */
  readonly ttl: string | null
  /** Fields of this request alone (`context_management`, `diagnostics`), sent after the parameters. */
  readonly extra: JsonObject
  /** Results before the last marker carry a reference to themselves, so that they can be deleted later. */
  readonly addsCacheReferences: boolean
}

export interface AssembleRequestInput {
  readonly front: RequestPrefix
  readonly flat: MessagesWithCalls
  readonly profile: ProviderProfile
  readonly markers: MarkersPolicy
  /** Null: caching is off, and nothing is marked. */
  readonly ttl: string | null
  /** Clearing is on. */
  readonly clears: boolean
  /** Where the marker before the first clearable result is held. */
  readonly edge?: ClearableMarker
  /** The last record of the context sources that a compaction left unchanged in front. */
  readonly carriersEnd?: string | null
  readonly extra?: JsonObject
}

const NO_FIELDS: JsonObject = {}

/** `previous`: the last request, of which everything that still holds is reused. */
export function assembleRequest(
  question: AssembleRequestInput,
  previous?: AssembledRequest,
): AssembledRequest {
  const { front, flat, profile, ttl, extra = NO_FIELDS } = question
  const refers = profile.capabilities.cacheEdits
  const indexWith = (messages: MessageList): BlockIndex =>
    indexBlocks(messages, profile.cache.collapsesToolRuns, previous?.blockIndex)
  if (ttl === null) {
    // Caching is off: the messages are sent as the host gave them.
    const messages = { frozen: flat.frozen, tail: flat.tail }
    return {
      front,
      messages,
      blockIndex: indexWith(messages),
      markers: [],
      ttl,
      extra,
      addsCacheReferences: refers,
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
    addsCacheReferences: refers,
    given,
  }
}

function planRequestMarkers(
  question: AssembleRequestInput,
  counted: BlockIndex,
  ttl: string,
): readonly PlannedMarker[] {
  const { front, flat, profile, markers, clears, edge = NO_CLEARABLE_MARKER, carriersEnd = null } = question
  return planMarkers({
    front,
    blockIndex: counted,
    policy: markers,
    cache: profile.cache,
    ttl,
    clears,
    firstClearable: edge.result === null ? null : findResultPlace(flat, edge.result),
    leftClearable: edge.left === null ? null : findResultPlace(flat, edge.left),
    carriersEnd: carriersEnd === null ? null : findRecordPlace(flat, carriersEnd),
  })
}

// The request as a payload: messages by reference, markers on them apart.

/** A payload without its messages. */
interface RequestFields {
  readonly model: string
  readonly [field: string]: unknown
}

/** With the markers on tools and system prompt in place. */
export function toRequestFields(
  request: Pick<AssembledRequest, 'front' | 'extra' | 'markers'>,
): RequestFields {
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
export function listMessageMarkers({ messages, markers }: AssembledRequest): readonly PlacedMarker[] {
  return markers.flatMap(({ place, control }) => {
    const found = place.zone === 'messages' ? messageAt(messages, place.index) : undefined
    if (place.zone !== 'messages' || found === undefined) return []
    const message = { ...found.message, content: blocksOfMessage(found) }
    return [{ message, index: place.index, block: place.block, control }]
  })
}

/** What `validate` would find in the payload; costs what is not frozen. */
export function findRequestProblems(checked: ValidationState, request: AssembledRequest): readonly Finding[] {
  let { state } = checked
  for (const { message } of request.messages.tail) state = checkMessage(state, message)
  const fields = toRequestFields(request)
  return [
    ...checkRequest(fields, state.profile),
    ...finishMessageCheck(state, fields, listMessageMarkers(request)),
  ]
}

/** The whole payload with markers and references in place, for codecs that cannot insert them. */
export function toPayload(request: AssembledRequest): Payload {
  const marked = request.markers.filter(isOnMessage)
  const messages = listMessages(request).map((message, index) =>
    withMessageMarkers(message, index, marked, request.addsCacheReferences),
  )
  return { ...toRequestFields(request), messages }
}

/** What a model is called with; payload and raw texts are made on first use. */
export interface ModelCallInput {
  readonly request: AssembledRequest
  readonly payload: Payload
  readonly raw: readonly TracedMessage['raw'][]
}

export function toModelCall(request: AssembledRequest): ModelCallInput {
  let payload: Payload | undefined
  let raw: ModelCallInput['raw'] | undefined
  return {
    request,
    get payload() {
      payload ??= toPayload(request)
      return payload
    },
    get raw() {
      raw ??= listRawTexts(request)
      return raw
    },
  }
}

/** Exact texts of blocks that would not survive parse and stringify, by message. */
export function listRawTexts(request: AssembledRequest): readonly TracedMessage['raw'][] {
  return listMessages(request).map(({ raw }) => raw)
}

function listMessages({ messages }: AssembledRequest): readonly TracedMessage[] {
  return [...messages.frozen.toArray(), ...messages.tail]
}

type MessageMarker = PlannedMarker & { readonly place: MessagePlace }

function isOnMessage(marker: PlannedMarker): marker is MessageMarker {
  return marker.place.zone === 'messages'
}

/** The same object if nothing is put on the message. */
function withMessageMarkers(
  message: TracedMessage,
  index: number,
  markers: readonly MessageMarker[],
  refers: boolean,
): ApiMessage {
  const own = markers.filter(({ place }) => place.index === index)
  const last = refers ? markers.at(-1)?.place : undefined
  const isReferred = last !== undefined && index <= last.index && blocksOfMessage(message).some(isToolResult)
  if (own.length === 0 && !isReferred) return message.message
  const content = blocksOfMessage(message).map((block, at) => {
    const control = own.find(({ place }) => place.block === at)?.control
    const place: MessagePlace = { zone: 'messages', index, block: at }
    const referred = last !== undefined && comparePlaces(place, last) < 0 ? withCacheReference(block) : block
    return control === undefined ? referred : { ...referred, cache_control: control }
  })
  return { ...message.message, content }
}

/** A reference that came with a result stays as it is. */
function withCacheReference(block: Block): Block {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? { ...block, cache_reference: block.tool_use_id } : block
}

// Messages without the cache markers that a host set itself. If the engine does the caching, all markers are its own:
// others would exceed the provider's four, with lifetimes that may not fit, and would be logged and sent for ever.
// Unchanged messages stay the same objects.

const NO_MESSAGES = AppendList.of<TracedMessage>()

export interface UnmarkedMessages extends MessageList {
  /** The frozen messages as they were given. */
  readonly given: AppendList<TracedMessage>
}

/** What a request has of this, for the next one to continue. */
export function toUnmarkedMessages(request: AssembledRequest | undefined): UnmarkedMessages | undefined {
  return request?.given === undefined ? undefined : { ...request.messages, given: request.given }
}

/** `from`: the result for an earlier state; only what was added since is searched. */
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

export function stripMessageMarkers(message: TracedMessage): TracedMessage {
  if (!hasMessageMarker(message)) return message
  const blocks = blocksOfMessage(message)
  const kept = [...(message.raw ?? [])].filter(([at]) => !hasBlockMarker(blocks[at]))
  const { raw: _, ...rest } = message
  const plain = { ...rest, message: { ...message.message, content: blocks.map(stripBlockMarkers) } }
  return kept.length === 0 ? plain : { ...plain, raw: new Map(kept) }
}

function hasMessageMarker(message: TracedMessage): boolean {
  return typeof message.message.content !== 'string' && message.message.content.some(hasBlockMarker)
}

/** Markers inside a result count like any other. */
function hasBlockMarker(block: Block | undefined): boolean {
  if (block === undefined) return false
  return (
    'cache_control' in block ||
    listInnerBlocks(block).some((inner) => isObject(inner) && 'cache_control' in inner)
  )
}

function listInnerBlocks(block: Block): readonly unknown[] {
  return isToolResult(block) && Array.isArray(block.content) ? block.content : []
}

function stripBlockMarkers(block: Block): Block {
  if (!hasBlockMarker(block)) return block
  const { cache_control: _, ...plain } = block
  const inner = listInnerBlocks(block)
  if (inner.length === 0) return plain
  return {
    ...plain,
    content: inner.map((each) => (isObject(each) ? withoutCacheControl(each as JsonObject) : each)),
  }
}

/** For tools, parameters and inner blocks: a marker on the whole request is one more. */
export function withoutCacheControl<T extends JsonObject>(fields: T): T {
  if (!('cache_control' in fields)) return fields
  return Object.fromEntries(Object.entries(fields).filter(([name]) => name !== 'cache_control')) as T
}
