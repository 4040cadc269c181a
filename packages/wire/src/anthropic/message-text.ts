/**
 * A message as text, spelled once for as long as it lives. Markers and references move over messages that have
 * long been settled: they are laid into the text at known places, and nothing is spelled again for them.
 */
import { type ApiMessage, type Block, type FlatMessage, isToolResult } from '@tidemark/core'
import { endOf, markerText, plainText, referenceText } from './fragment.ts'

export interface MessageText {
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
export interface Overlay {
  readonly markers: ReadonlyMap<number, unknown>
  readonly referTo: number
}

const spelled = new WeakMap<FlatMessage, MessageText>()
const referred = new WeakMap<MessageText, string>()

/** Remembered by the message itself, which is a value: whoever holds it, it says the same. */
export function messageText(message: FlatMessage): MessageText {
  const known = spelled.get(message)
  if (known !== undefined) return known
  const made = spellMessage(message)
  spelled.set(message, made)
  return made
}

/** The text with a reference on each result; remembered too. */
export function referredText(message: MessageText): string {
  if (message.blocks.every(({ reference }) => reference === '')) return message.text
  const text =
    referred.get(message) ?? overlaid(message, { markers: new Map(), referTo: message.blocks.length })
  referred.set(message, text)
  return text
}

export function overlaid({ text, blocks }: MessageText, { markers, referTo }: Overlay): string {
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
    blocks.push({ at: text.length + end, marker: marker.length, reference: referenceFor(block) })
    text += plain.slice(0, end) + marker + plain.slice(end)
  }
  return { text: `${text}]}`, blocks }
}

function referenceFor(block: Block): string {
  const isNew = isToolResult(block) && block.cache_reference === undefined
  return isNew ? referenceText(block.tool_use_id) : ''
}

function blocksIn(content: ApiMessage['content']): readonly Block[] {
  if (typeof content !== 'string') return content
  return content === '' ? [] : [{ type: 'text', text: content }]
}
