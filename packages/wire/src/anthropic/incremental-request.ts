/**
 * The body of a request that grows out of the one before it: byte for byte what `encodeRequest` makes of its
 * payload, at the cost of what is new. Joining the texts is left to whoever sends them.
 */
import {
  type ApiMessage,
  type AssembledRequest,
  type Block,
  type FlatMessage,
  type JsonObject,
  List,
  type PlannedMarker,
} from '@tidemark/core'
import { endOf, markerText, newReferenceText, parameterTexts, plainText } from './request.ts'

/** Zone by zone: `{` parameters, tools, system, messages `}`. */
export interface GrowingRequest {
  readonly parameters: string
  /** A text for each; null where the request has none. */
  readonly tools: readonly string[] | null
  readonly system: readonly string[] | null
  readonly messages: GrowingMessages
  /** For the header: they are no part of the body. */
  readonly betas: readonly string[]
}

/** Messages by reference to their texts; what the markers of this request do to a few of them comes on top. */
interface GrowingMessages {
  readonly settled: List<MessageText>
  readonly tail: readonly MessageText[]
  readonly onTop: ReadonlyMap<number, string>
  /** Messages before this one carry references to their results. */
  readonly referTo: number
  /** Whose texts `settled` are. */
  readonly frozen: List<FlatMessage>
}

interface GrowOptions {
  /** Fields of the body that the caller adds (`stream`). */
  readonly fields?: JsonObject
  /** The request before: what it settled is taken over where this one goes on from there. */
  readonly previous?: GrowingRequest | undefined
}

export function growRequest(request: AssembledRequest, options: GrowOptions = {}): GrowingRequest {
  const { model, parameters, tools, system } = request.front
  const given: JsonObject = { model, ...parameters, ...request.extra, ...options.fields }
  const { betas, ...fields } = given
  const blocks = system.map(({ block }) => block)
  return {
    parameters: parameterTexts(fields).join(','),
    tools: tools.length === 0 ? null : frontTexts('tools', tools, request.markers),
    system: blocks.length === 0 ? null : frontTexts('system', blocks, request.markers),
    messages: growMessages(request, options.previous?.messages),
    betas: Array.isArray(betas) ? betas.filter((name) => typeof name === 'string') : [],
  }
}

/** All of it in one string. */
export function growingText({ parameters, tools, system, messages }: GrowingRequest): string {
  const lists = [
    ...(tools === null ? [] : [`"tools":[${tools.join(',')}]`]),
    ...(system === null ? [] : [`"system":[${system.join(',')}]`]),
  ]
  return `{${[parameters, ...lists].join(',')},"messages":[${messageTexts(messages).join(',')}]}`
}

/** The text of each message as it is sent. */
function messageTexts({ settled, tail, onTop, referTo }: GrowingMessages): readonly string[] {
  return [...settled.toArray(), ...tail].map(
    (message, index) => onTop.get(index) ?? (index < referTo ? referredText(message) : message.text),
  )
}

function growMessages(request: AssembledRequest, previous: GrowingMessages | undefined): GrowingMessages {
  const { frozen, tail } = request.messages
  const goesOn = previous !== undefined && frozen.extends(previous.frozen)
  let settled = goesOn ? previous.settled : List.of<MessageText>()
  for (const message of frozen.toArray(settled.length)) settled = settled.push(messageText(message))
  const list = { settled, tail: tail.map(messageText) }
  return {
    ...list,
    ...topOf(request, (index) => settled.at(index) ?? list.tail[index - settled.length]),
    frozen,
  }
}

/** The messages that markers stand on, and how far references go: up to the last marker. */
function topOf(
  { markers, refers }: AssembledRequest,
  textAt: (index: number) => MessageText | undefined,
): Pick<GrowingMessages, 'onTop' | 'referTo'> {
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

/** Tools and blocks of the system prompt stay the same objects for as long as their epoch stands. */
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

// A message as text, spelled once for as long as it lives. Markers and references move over messages that have
// long been settled: they are laid into the text at known places, and nothing is spelled again for them.

interface MessageText {
  /** As it is sent where nothing comes onto it. */
  readonly text: string
  readonly blocks: readonly BlockEnd[]
}

/** Where further members of a block come, and what may stand there already. */
interface BlockEnd {
  readonly at: number
  /** Length of the marker that the block brought along: one that is put onto it takes its place. */
  readonly marker: number
  /** The reference that a result can be given. */
  readonly reference: string
}

/** What comes onto a message: markers by index of block, and references onto the results before `referTo`. */
interface Overlay {
  readonly markers: ReadonlyMap<number, unknown>
  readonly referTo: number
}

const spelled = new WeakMap<FlatMessage, MessageText>()
const referred = new WeakMap<MessageText, string>()

/** Remembered by the message itself, which is a value: whoever holds it, it says the same. */
function messageText(message: FlatMessage): MessageText {
  const known = spelled.get(message)
  if (known !== undefined) return known
  const made = spellMessage(message)
  spelled.set(message, made)
  return made
}

/** The text with a reference on each result; remembered too. */
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

/** A string is one text block, so that a later message that joins it leaves its bytes alone. */
function spellMessage({ message, raw }: FlatMessage): MessageText {
  const { role, content, ...fields } = message
  let text = `${JSON.stringify({ role, ...fields }).slice(0, -1)},"content":[`
  const blocks: BlockEnd[] = []
  for (const [index, block] of blocksIn(content).entries()) {
    const plain = plainText(block, raw?.get(index))
    const marker = block.cache_control === undefined ? '' : markerText(block.cache_control)
    const end = endOf(plain)
    if (index > 0) text += ','
    blocks.push({ at: text.length + end, marker: marker.length, reference: newReferenceText(block) })
    text += plain.slice(0, end) + marker + plain.slice(end)
  }
  return { text: `${text}]}`, blocks }
}

function blocksIn(content: ApiMessage['content']): readonly Block[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}
