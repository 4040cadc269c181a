/**
 * An assembled request as a payload. The fields around the messages are made anew only where markers moved;
 * the messages are handed over by reference, with the markers that come onto them told apart.
 */
import { type Block, isToolResult } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { Checked } from '../view/checked.ts'
import type { FlatMessage } from '../view/draft.ts'
import type { ApiMessage, Payload } from '../view/payload.ts'
import type { Finding } from '../view/validate/finding.ts'
import { checkMessage, finishMessages } from '../view/validate/messages.ts'
import type { PlacedMarker } from '../view/validate/placed.ts'
import { checkRequest } from '../view/validate/validate.ts'
import type { AssembledRequest } from './assemble.ts'
import { blocksIn, messageAt } from './count.ts'
import type { PlannedMarker } from './markers.ts'
import { comparePlaces, type MessagePlace } from './place.ts'

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
