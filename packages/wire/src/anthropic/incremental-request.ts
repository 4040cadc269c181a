/**
 * Builds a request body by extending the previous one, so that only new messages are encoded. The result has the same
 * bytes as that of `encodeRequestFragments`.
 */
import type { TracedMessage } from '@tidemark/core/context/flatten-context'
import type { ModelStreamInput } from '@tidemark/core/engine/ports'
import type { JsonObject } from '@tidemark/core/log/json'
import { AppendList } from '@tidemark/core/log/persistent-collections'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { AssembledRequest } from '@tidemark/core/request/build-request'
import type { EncodeCallOptions, EncodedRequest } from '../providers/provider-codec.ts'
import {
  encodeCacheControlMember,
  encodeCacheReferenceMember,
  encodeParameters,
  encodeRequestFragments,
  encodeToolsOrSystem,
  encodeWithoutMarker,
  findClosingBracket,
  joinRequestFragments,
  toContentBlocks,
} from './encode-request.ts'
import { BETA_HEADER } from './headers.ts'

/** A request body as JSON texts, kept so that the next body of the conversation can reuse them. */
export interface IncrementalRequest {
  readonly parameters: string
  /** JSON text of each tool; null if the request has no tools. `system` has the same form. */
  readonly tools: readonly string[] | null
  readonly system: readonly string[] | null
  readonly messages: IncrementalMessages
  /** Values for the `anthropic-beta` header, which are not part of the body. */
  readonly betas: readonly string[]
}

/**
 * JSON texts of a request's messages. Most are shared with the previous request; messages with a cache marker are
 * replaced.
 */
interface IncrementalMessages extends MarkedTexts {
  /** JSON texts of `frozenMessages`, in the same order. */
  readonly frozenTexts: AppendList<MessageText>
  readonly tailTexts: readonly MessageText[]
  readonly frozenMessages: AppendList<TracedMessage>
  /** The frozen messages between those with a cache marker, in order. */
  readonly stretches: readonly JoinedStretch[]
}

/**
 * The joined texts of successive frozen messages without a cache marker, from the index `from` up to, but not
 * including, the index `to`. The next request appends to this text, for which JavaScript engines need not copy it.
 */
interface JoinedStretch {
  readonly from: number
  readonly to: number
  /** True if tool results have a `cache_reference`. */
  readonly isReferenced: boolean
  readonly text: string
}

/**
 * Differences between the cached message texts and those that are sent: added cache markers (`cache_control`) and cache
 * references (`cache_reference`).
 */
interface MarkedTexts {
  /** Texts of the messages that have a cache marker, by message index. These are sent instead of the cached texts. */
  readonly overlays: ReadonlyMap<number, string>
  /** Index of a message. Tool results in all messages before it are sent with a `cache_reference`. */
  readonly referencedUntil: number
}

interface ExtendRequestOptions {
  /** Fields that the caller adds to the request body, such as `stream`. */
  readonly fields?: JsonObject
  /** The previous request. Its message texts are reused if the new request only appends messages. */
  readonly previous?: IncrementalRequest | undefined
  /** Texts of messages of earlier requests, for a request that does not extend the previous one. */
  readonly texts?: MessageTextCache
}

/**
 * A cache of message texts. It may drop a text at any time, because each request keeps the texts of its own messages. A
 * plain `WeakMap` would keep the text of every message object still in use, even if no later request needs it.
 */
export interface MessageTextCache {
  get(message: TracedMessage): MessageText | undefined
  set(message: TracedMessage, text: MessageText): void
}

/**
 * Encodes the body of a model call in steps: with `call.request` as an extension of the previous body, otherwise
 * `call.payload` whole.
 */
export function* encodeMessagesCall(
  call: ModelStreamInput,
  { fields = {}, previous, texts }: EncodeCallOptions,
): WorkInSteps<EncodedRequest> {
  if (call.request !== undefined) {
    const request = yield* extendRequest(call.request, {
      fields,
      previous: previous as IncrementalRequest | undefined,
      ...(texts === undefined ? {} : { texts: texts as MessageTextCache }),
    })
    return { text: joinIncrementalRequest(request), headers: toBetaHeader(request.betas), state: request }
  }
  // A call without `request` has no cached message texts, so the payload is encoded whole.
  const { payload, raw } = call
  const encoded = encodeRequestFragments(
    { ...payload, ...fields },
    raw === undefined ? {} : { raw: { messages: raw } },
  )
  return { text: joinRequestFragments(encoded), headers: toBetaHeader(encoded.betas), state: previous }
}

/** Returns the header that a body with these betas needs; empty if there are none. */
export function toBetaHeader(betas: readonly string[]): Readonly<Record<string, string>> {
  return betas.length === 0 ? {} : { [BETA_HEADER]: [...new Set(betas)].join(',') }
}

/**
 * Encodes a request, with the texts of messages from `options.previous` if messages were only appended since. In steps, so that
 * a long history that is all new does not block the process.
 */
function* extendRequest(
  request: AssembledRequest,
  options: ExtendRequestOptions,
): WorkInSteps<IncrementalRequest> {
  const { model, parameters, tools, system } = request.front
  const all: JsonObject = { model, ...parameters, ...request.extra, ...options.fields }
  const { betas, ...fields } = all
  const blocks = system.map(({ block }) => block)
  return {
    parameters: encodeParameters(fields).join(','),
    tools: tools.length === 0 ? null : encodeToolsOrSystem('tools', tools, request.markers),
    system: blocks.length === 0 ? null : encodeToolsOrSystem('system', blocks, request.markers),
    messages: yield* extendMessages(request, options),
    betas: Array.isArray(betas) ? betas.filter((name) => typeof name === 'string') : [],
  }
}

/** Returns the whole request body as one string. The time depends on the messages that were added, not on all of them. */
function joinIncrementalRequest({ parameters, tools, system, messages }: IncrementalRequest): string {
  const lists = [
    ...(tools === null ? [] : [`"tools":[${tools.join(',')}]`]),
    ...(system === null ? [] : [`"system":[${system.join(',')}]`]),
  ]
  return `{${[parameters, ...lists].join(',')},"messages":[${joinMessages(messages)}]}`
}

function joinMessages(messages: IncrementalMessages): string {
  const { frozenTexts, tailTexts, overlays, referencedUntil, stretches } = messages
  const tail = new Map(
    tailTexts.map((message, at): [number, string] => {
      const index = frozenTexts.length + at
      return [index, textAsSent(message, index < referencedUntil)]
    }),
  )
  const joined = new Map([...stretches.map(({ from, text }) => [from, text] as const), ...tail, ...overlays])
  // String concatenation is used because `join` would copy every text.
  return [...joined]
    .sort(([one], [other]) => one - other)
    .reduce((before, [index, text]) => (index === 0 ? text : `${before},${text}`), '')
}

function* extendMessages(
  request: AssembledRequest,
  { previous: before, texts = new WeakMap() }: ExtendRequestOptions,
): WorkInSteps<IncrementalMessages> {
  const { frozen, tail } = request.messages
  const previous = before?.messages
  const isExtension = previous !== undefined && frozen.extends(previous.frozenMessages)
  let settled = isExtension ? previous.frozenTexts : AppendList.of<MessageText>()
  for (const message of frozen.toArray(settled.length)) {
    const encoded = encodeMessage(message, texts)
    settled = settled.push(encoded)
    yield encoded.text.length
  }
  const tailTexts = tail.map((message) => encodeMessage(message, texts))
  const marked = applyMarkers(request, (index) => settled.at(index) ?? tailTexts[index - settled.length])
  const known = isExtension ? previous.stretches : []
  return {
    frozenTexts: settled,
    tailTexts,
    ...marked,
    frozenMessages: frozen,
    stretches: joinStretches(settled, marked, known),
  }
}

/** Joins the frozen messages between those with a cache marker. `known`: the stretches of the previous request. */
function joinStretches(
  texts: AppendList<MessageText>,
  { overlays, referencedUntil }: MarkedTexts,
  known: readonly JoinedStretch[],
): readonly JoinedStretch[] {
  const marked = [...overlays.keys()]
    .filter((index) => index < texts.length)
    .sort((one, other) => one - other)
  const stretches: JoinedStretch[] = []
  let from = 0
  for (const to of [...marked, texts.length]) {
    const isReferenced = to <= referencedUntil
    const begun = known.find(
      (stretch) => stretch.from === from && stretch.to <= to && stretch.isReferenced === isReferenced,
    )
    let text = begun?.text ?? ''
    for (const message of texts.toArray(begun?.to ?? from, to))
      text += (text === '' ? '' : ',') + textAsSent(message, isReferenced)
    if (from < to) stretches.push({ from, to, isReferenced, text })
    from = to + 1
  }
  return stretches
}

/**
 * Adds cache markers to message texts. Returns the changed texts, and the index of the message before which all tool
 * results get a cache reference.
 */
function applyMarkers(
  { markers, addReference }: AssembledRequest,
  textAt: (index: number) => MessageText | undefined,
): MarkedTexts {
  const byMessage = new Map<number, Map<number, unknown>>()
  let last = { index: 0, block: 0 }
  for (const { place, control } of markers) {
    if (place.zone !== 'messages') continue
    byMessage.set(place.index, (byMessage.get(place.index) ?? new Map()).set(place.block, control))
    last = place
  }
  const onTop = new Map<number, string>()
  for (const [index, onBlocks] of byMessage) {
    const message = textAt(index)
    const referTo = addReference === null ? 0 : index < last.index ? Number.POSITIVE_INFINITY : last.block
    if (message !== undefined)
      onTop.set(index, applyOverlay(message, { markers: onBlocks, referencedUntil: referTo }))
  }
  return { overlays: onTop, referencedUntil: addReference === null ? 0 : last.index }
}

// Messages are encoded to JSON once. Cache markers and references are then inserted into the text at known offsets.

interface MessageText {
  /** JSON text of the message, before cache markers and references are added. */
  readonly text: string
  readonly insertions: readonly BlockInsertion[]
}

/** The offset in a message's JSON text at which members can be added to one of its blocks. */
interface BlockInsertion {
  readonly offset: number
  /** Length of the block's own cache marker in the text, which an added marker replaces; 0 if the block has none. */
  readonly markerLength: number
  /** JSON text of the `cache_reference` member to add to a tool result; empty for other blocks. */
  readonly reference: string
}

/**
 * What to add to a message: cache markers by block index, and a cache reference to each tool result before the block
 * index `referencedUntil`.
 */
interface Overlay {
  readonly markers: ReadonlyMap<number, unknown>
  readonly referencedUntil: number
}

const referencedTextCache = new WeakMap<MessageText, string>()

/** Returns the JSON text of a message, cached per message object. Messages are immutable. */
function encodeMessage(message: TracedMessage, texts: MessageTextCache): MessageText {
  const known = texts.get(message)
  if (known !== undefined) return known
  const text = buildMessageText(message)
  texts.set(message, text)
  return text
}

/** Returns the JSON text of a message, with a cache reference on each tool result if `isReferenced`. The text is cached. */
function textAsSent(message: MessageText, isReferenced: boolean): string {
  if (!isReferenced || message.insertions.every(({ reference }) => reference === '')) return message.text
  const text =
    referencedTextCache.get(message) ??
    applyOverlay(message, { markers: new Map(), referencedUntil: message.insertions.length })
  referencedTextCache.set(message, text)
  return text
}

function applyOverlay({ text, insertions }: MessageText, { markers, referencedUntil }: Overlay): string {
  let [done, from] = ['', 0]
  for (const [index, { offset, markerLength, reference }] of insertions.entries()) {
    const control = markers.get(index)
    done += text.slice(from, offset) + (index < referencedUntil ? reference : '')
    if (control !== undefined) done += encodeCacheControlMember(control)
    from = control === undefined ? offset : offset + markerLength
  }
  return done + text.slice(from)
}

/**
 * Encodes a message as JSON. String content becomes a text block, so that its bytes stay the same if a later message is
 * merged with it.
 */
function buildMessageText({ message, raw }: TracedMessage): MessageText {
  const { role, content, ...fields } = message
  let text = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":[`
  const blocks: BlockInsertion[] = []
  for (const [index, block] of toContentBlocks(content).entries()) {
    const plain = encodeWithoutMarker(block, raw?.get(index))
    const marker = block.cache_control === undefined ? '' : encodeCacheControlMember(block.cache_control)
    const end = findClosingBracket(plain)
    if (index > 0) text += ','
    blocks.push({
      offset: text.length + end,
      markerLength: marker.length,
      reference: encodeCacheReferenceMember(block),
    })
    text += plain.slice(0, end) + marker + plain.slice(end)
  }
  return { text: `${text}]}`, insertions: blocks }
}
