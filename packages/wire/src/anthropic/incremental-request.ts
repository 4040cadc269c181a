/**
 * The body of a request, built from that of the previous request: byte for byte what `encodeRequest` makes of the same
 * payload, but it costs only what is new. The caller joins the texts.
 */
import {
  type AssembledRequest,
  type Block,
  type FlatMessage,
  type JsonObject,
  List,
  type PlannedMarker,
} from '@tidemark/core'
import { asBlocks, endOf, markerText, newReferenceText, parameterTexts, plainText } from './request.ts'

/** The texts of the body in order: parameters, tools, system, messages. */
export interface GrowingRequest {
  readonly parameters: string
  /** One text for each tool or block; null if the request has none. */
  readonly tools: readonly string[] | null
  readonly system: readonly string[] | null
  readonly messages: GrowingMessages
  /** For the `anthropic-beta` header: not part of the body. */
  readonly betas: readonly string[]
}

/** Message texts shared with the previous request, and replacements for the few that this request's markers change. */
interface GrowingMessages extends MarkedTexts {
  /** Texts of `frozenMessages`. */
  readonly settled: List<MessageText>
  readonly tail: readonly MessageText[]
  readonly frozen: List<FlatMessage>
}

/** What markers and references do to message texts. */
interface MarkedTexts {
  /** By index: the text with markers and references. */
  readonly onTop: ReadonlyMap<number, string>
  /** Tool results in messages before this index carry a `cache_reference`. */
  readonly referTo: number
}

interface GrowOptions {
  /** Body fields that the caller adds, such as `stream`. */
  readonly fields?: JsonObject
  /** The previous request: its texts are reused if this request's messages extend it. */
  readonly previous?: GrowingRequest | undefined
}

export function growRequest(request: AssembledRequest, options: GrowOptions = {}): GrowingRequest {
  const { model, parameters, tools, system } = request.front
  const all: JsonObject = { model, ...parameters, ...request.extra, ...options.fields }
  const { betas, ...fields } = all
  const blocks = system.map(({ block }) => block)
  return {
    parameters: parameterTexts(fields).join(','),
    tools: tools.length === 0 ? null : frontTexts('tools', tools, request.markers),
    system: blocks.length === 0 ? null : frontTexts('system', blocks, request.markers),
    messages: growMessages(request, options.previous?.messages),
    betas: Array.isArray(betas) ? betas.filter((name) => typeof name === 'string') : [],
  }
}

/** The whole body in one string. */
export function growingText({ parameters, tools, system, messages }: GrowingRequest): string {
  const lists = [
    ...(tools === null ? [] : [`"tools":[${tools.join(',')}]`]),
    ...(system === null ? [] : [`"system":[${system.join(',')}]`]),
  ]
  return `{${[parameters, ...lists].join(',')},"messages":[${messageTexts(messages).join(',')}]}`
}

/** The text of each message, as sent. */
function messageTexts({ settled, tail, onTop, referTo }: GrowingMessages): readonly string[] {
  return [...settled.toArray(), ...tail].map(
    (message, index) => onTop.get(index) ?? (index < referTo ? referredText(message) : message.text),
  )
}

function growMessages(request: AssembledRequest, previous: GrowingMessages | undefined): GrowingMessages {
  const { frozen, tail } = request.messages
  const isExtension = previous !== undefined && frozen.extends(previous.frozen)
  let settled = isExtension ? previous.settled : List.of<MessageText>()
  for (const message of frozen.toArray(settled.length)) settled = settled.push(messageText(message))
  const tailTexts = tail.map(messageText)
  const overlays = topOf(request, (index) => settled.at(index) ?? tailTexts[index - settled.length])
  return { settled, tail: tailTexts, ...overlays, frozen }
}

/** The texts of messages with markers. References are added up to the last marker. */
function topOf(
  { markers, refers }: AssembledRequest,
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
    const referTo = !refers ? 0 : index < last.index ? Number.POSITIVE_INFINITY : last.block
    if (message !== undefined) onTop.set(index, overlaid(message, { markers: onBlocks, referTo }))
  }
  return { onTop, referTo: refers ? last.index : 0 }
}

const plainTexts = new WeakMap<object, string>()

/** Cached by object: tools and system blocks stay the same objects until the next prefix snapshot. */
function frontTexts(
  zone: 'tools' | 'system',
  values: readonly (Block | JsonObject)[],
  markers: readonly PlannedMarker[],
): readonly string[] {
  return values.map((value, index) => {
    const planned = markers.find(({ place }) => place.zone === zone && place.index === index)
    const control = planned?.control ?? value.cache_control
    const plain = plainTexts.get(value) ?? plainText(value)
    plainTexts.set(value, plain)
    const end = endOf(plain)
    return control === undefined ? plain : plain.slice(0, end) + markerText(control) + plain.slice(end)
  })
}

// A message as text, encoded once. Markers and references move over messages that no longer change: they are inserted
// into the text at known places, and nothing is encoded again.

interface MessageText {
  /** As sent without added markers and references. */
  readonly text: string
  readonly blocks: readonly BlockEnd[]
}

/** Where members can be added to a block. */
interface BlockEnd {
  readonly at: number
  /** Length of the block's own marker: an added marker replaces it. */
  readonly marker: number
  /** The `cache_reference` member that can be added to a tool result; empty for other blocks. */
  readonly reference: string
}

/** What is added to a message: markers by block index, and references on tool results before `referencedUntil`. */
interface Overlay {
  readonly markers: ReadonlyMap<number, unknown>
  readonly referTo: number
}

const spelled = new WeakMap<FlatMessage, MessageText>()
const referred = new WeakMap<MessageText, string>()

/** Cached by message: a message is a value and never changes. */
function messageText(message: FlatMessage): MessageText {
  const text = spelled.get(message) ?? spellMessage(message)
  spelled.set(message, text)
  return text
}

/** The text with a reference on each tool result; cached as well. */
function referredText(message: MessageText): string {
  if (message.blocks.every(({ reference }) => reference === '')) return message.text
  const text =
    referred.get(message) ?? overlaid(message, { markers: new Map(), referTo: message.blocks.length })
  referred.set(message, text)
  return text
}

function overlaid({ text, blocks }: MessageText, { markers, referTo }: Overlay): string {
  let [done, from] = ['', 0]
  for (const [index, { at, marker, reference }] of blocks.entries()) {
    const control = markers.get(index)
    done += text.slice(from, at) + (index < referTo ? reference : '')
    if (control !== undefined) done += markerText(control)
    from = control === undefined ? at : at + marker
  }
  return done + text.slice(from)
}

/** A string becomes one text block, so that its bytes stay the same when a later message is merged into it. */
function spellMessage({ message, raw }: FlatMessage): MessageText {
  const { role, content, ...fields } = message
  let text = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":[`
  const blocks: BlockEnd[] = []
  for (const [index, block] of asBlocks(content).entries()) {
    const plain = plainText(block, raw?.get(index))
    const marker = block.cache_control === undefined ? '' : markerText(block.cache_control)
    const end = endOf(plain)
    if (index > 0) text += ','
    blocks.push({ at: text.length + end, marker: marker.length, reference: newReferenceText(block) })
    text += plain.slice(0, end) + marker + plain.slice(end)
  }
  return { text: `${text}]}`, blocks }
}
