/**
 * The body of a request, built from that of the previous request: byte for byte what `encodeRequest` makes of the same
 * payload, but it costs only what is new. The caller joins the texts.
 */
import {
  AppendList,
  type AssembledRequest,
  type Block,
  type JsonObject,
  type PlannedMarker,
  type TracedMessage,
} from '@tidemark/core'
import {
  closingBracketIndex,
  encodeMarkerMember,
  encodeParameters,
  newReferenceMember,
  textWithoutMarker,
  toContentBlocks,
} from './request.ts'

/** The texts of the body in order: parameters, tools, system, messages. */
export interface IncrementalRequest {
  readonly parameters: string
  /** One text for each tool or block; null if the request has none. */
  readonly tools: readonly string[] | null
  readonly system: readonly string[] | null
  readonly messages: IncrementalMessages
  /** For the `anthropic-beta` header: not part of the body. */
  readonly betas: readonly string[]
}

/** Message texts shared with the previous request, and replacements for the few that this request's markers change. */
interface IncrementalMessages extends MarkedTexts {
  /** Texts of `frozenMessages`. */
  readonly frozenTexts: AppendList<MessageText>
  readonly tailTexts: readonly MessageText[]
  readonly frozenMessages: AppendList<TracedMessage>
}

/** What markers and references do to message texts. */
interface MarkedTexts {
  /** By index: the text with markers and references. */
  readonly overlays: ReadonlyMap<number, string>
  /** Tool results in messages before this index carry a `cache_reference`. */
  readonly referencedUntil: number
}

interface ExtendRequestOptions {
  /** Body fields that the caller adds, such as `stream`. */
  readonly fields?: JsonObject
  /** The previous request: its texts are reused if this request's messages extend it. */
  readonly previous?: IncrementalRequest | undefined
}

export function extendRequest(
  request: AssembledRequest,
  options: ExtendRequestOptions = {},
): IncrementalRequest {
  const { model, parameters, tools, system } = request.front
  const all: JsonObject = { model, ...parameters, ...request.extra, ...options.fields }
  const { betas, ...fields } = all
  const blocks = system.map(({ block }) => block)
  return {
    parameters: encodeParameters(fields).join(','),
    tools: tools.length === 0 ? null : encodePrefixList('tools', tools, request.markers),
    system: blocks.length === 0 ? null : encodePrefixList('system', blocks, request.markers),
    messages: extendMessages(request, options.previous?.messages),
    betas: Array.isArray(betas) ? betas.filter((name) => typeof name === 'string') : [],
  }
}

/** The whole body in one string. */
export function joinRequestText({ parameters, tools, system, messages }: IncrementalRequest): string {
  const lists = [
    ...(tools === null ? [] : [`"tools":[${tools.join(',')}]`]),
    ...(system === null ? [] : [`"system":[${system.join(',')}]`]),
  ]
  return `{${[parameters, ...lists].join(',')},"messages":[${listMessageTexts(messages).join(',')}]}`
}

/** The text of each message, as sent. */
function listMessageTexts({
  frozenTexts,
  tailTexts,
  overlays,
  referencedUntil,
}: IncrementalMessages): readonly string[] {
  return [...frozenTexts.toArray(), ...tailTexts].map(
    (message, index) =>
      overlays.get(index) ?? (index < referencedUntil ? textWithReferences(message) : message.text),
  )
}

function extendMessages(
  request: AssembledRequest,
  previous: IncrementalMessages | undefined,
): IncrementalMessages {
  const { frozen, tail } = request.messages
  const isExtension = previous !== undefined && frozen.extends(previous.frozenMessages)
  let settled = isExtension ? previous.frozenTexts : AppendList.of<MessageText>()
  for (const message of frozen.toArray(settled.length)) settled = settled.push(encodeMessage(message))
  const tailTexts = tail.map(encodeMessage)
  const overlays = applyMarkers(request, (index) => settled.at(index) ?? tailTexts[index - settled.length])
  return { frozenTexts: settled, tailTexts, ...overlays, frozenMessages: frozen }
}

/** The texts of messages with markers. References are added up to the last marker. */
function applyMarkers(
  { markers, addsCacheReferences }: AssembledRequest,
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
    const referTo = !addsCacheReferences ? 0 : index < last.index ? Number.POSITIVE_INFINITY : last.block
    if (message !== undefined)
      onTop.set(index, applyOverlay(message, { markers: onBlocks, referencedUntil: referTo }))
  }
  return { overlays: onTop, referencedUntil: addsCacheReferences ? last.index : 0 }
}

const plainTextCache = new WeakMap<object, string>()

/** Cached by object: tools and system blocks stay the same objects until the next prefix snapshot. */
function encodePrefixList(
  zone: 'tools' | 'system',
  values: readonly (Block | JsonObject)[],
  markers: readonly PlannedMarker[],
): readonly string[] {
  return values.map((value, index) => {
    const planned = markers.find(({ place }) => place.zone === zone && place.index === index)
    const control = planned?.control ?? value.cache_control
    const plain = plainTextCache.get(value) ?? textWithoutMarker(value)
    plainTextCache.set(value, plain)
    const end = closingBracketIndex(plain)
    return control === undefined
      ? plain
      : plain.slice(0, end) + encodeMarkerMember(control) + plain.slice(end)
  })
}

// A message as text, encoded once. Markers and references move over messages that no longer change: they are inserted
// into the text at known places, and nothing is encoded again.

interface MessageText {
  /** As sent without added markers and references. */
  readonly text: string
  readonly insertions: readonly BlockInsertion[]
}

/** Where members can be added to a block. */
interface BlockInsertion {
  readonly offset: number
  /** Length of the block's own marker: an added marker replaces it. */
  readonly markerLength: number
  /** The `cache_reference` member that can be added to a tool result; empty for other blocks. */
  readonly reference: string
}

/** What is added to a message: markers by block index, and references on tool results before `referencedUntil`. */
interface Overlay {
  readonly markers: ReadonlyMap<number, unknown>
  readonly referencedUntil: number
}

const messageTextCache = new WeakMap<TracedMessage, MessageText>()
const referencedTextCache = new WeakMap<MessageText, string>()

/** Cached by message: a message is a value and never changes. */
function encodeMessage(message: TracedMessage): MessageText {
  const text = messageTextCache.get(message) ?? buildMessageText(message)
  messageTextCache.set(message, text)
  return text
}

/** The text with a reference on each tool result; cached as well. */
function textWithReferences(message: MessageText): string {
  if (message.insertions.every(({ reference }) => reference === '')) return message.text
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
    if (control !== undefined) done += encodeMarkerMember(control)
    from = control === undefined ? offset : offset + markerLength
  }
  return done + text.slice(from)
}

/** A string becomes one text block, so that its bytes stay the same when a later message is merged into it. */
function buildMessageText({ message, raw }: TracedMessage): MessageText {
  const { role, content, ...fields } = message
  let text = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":[`
  const blocks: BlockInsertion[] = []
  for (const [index, block] of toContentBlocks(content).entries()) {
    const plain = textWithoutMarker(block, raw?.get(index))
    const marker = block.cache_control === undefined ? '' : encodeMarkerMember(block.cache_control)
    const end = closingBracketIndex(plain)
    if (index > 0) text += ','
    blocks.push({
      offset: text.length + end,
      markerLength: marker.length,
      reference: newReferenceMember(block),
    })
    text += plain.slice(0, end) + marker + plain.slice(end)
  }
  return { text: `${text}]}`, insertions: blocks }
}
