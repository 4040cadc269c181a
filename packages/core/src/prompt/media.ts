/** Images and documents among the messages, and how many bytes the whole is. Keeps pace with flattening. */
import { type Block, isBlock, isToolResult } from '../conversation/block.ts'
import { imageSize } from '../conversation/image-size.ts'
import { isObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import { jsonBytes } from '../conversation/utf8.ts'
import { isMediaPlace, mediaPlaceholder } from '../view/cleared-media.ts'
import type { FlatMessage } from '../view/draft.ts'
import { blocksIn, type MessageList } from './count.ts'

export interface MediaItem {
  /** The record it comes from. */
  readonly origin: string
  /** Which one of that record's: see `HiddenMedia`. */
  readonly toolUseId: string | null
  readonly nth: number
  /** Which message, which of its blocks, and which block inside a tool result (null: the block itself). */
  readonly index: number
  readonly block: number
  readonly inner: number | null
  readonly kind: 'image' | 'document'
  /** It counts as an image: every image, and a document in pages. */
  readonly isPicture: boolean
  readonly bytes: number
  /** Longest side in pixels; 0 where it cannot be seen. */
  readonly side: number
}

export interface MediaTally {
  readonly frozen: List<FlatMessage>
  readonly items: List<MediaItem>
  /** UTF-8 bytes of the JSON of the messages, the commas between them included. */
  readonly bytes: number
}

export const NO_MEDIA: MediaTally = { frozen: List.of(), items: List.of(), bytes: 0 }

/** The tally of what is frozen, given that of an earlier state. */
export function advanceMedia(tally: MediaTally, { frozen }: MessageList): MediaTally {
  let next = frozen.extends(tally.frozen) ? tally : NO_MEDIA
  for (let index = next.frozen.length; index < frozen.length; index += 1) {
    next = withMessage(next, frozen.at(index), index)
  }
  return { ...next, frozen }
}

/** The tally of all messages, those behind the frozen ones included. */
export function mediaOf(tally: MediaTally, { frozen, tail }: MessageList): MediaTally {
  return tail.reduce((sum, message, at) => withMessage(sum, message, frozen.length + at), tally)
}

function withMessage(tally: MediaTally, message: FlatMessage | undefined, index: number): MediaTally {
  if (message === undefined) return tally
  let { items } = tally
  for (const item of mediaIn(message, index)) items = items.push(item)
  const comma = index === 0 ? 0 : 1
  const sent = { ...message.message, content: blocksIn(message) }
  return { ...tally, items, bytes: tally.bytes + comma + (jsonBytes(sent) ?? 0) }
}

function mediaIn(message: FlatMessage, index: number): readonly MediaItem[] {
  const numbers = new Map<string, number>()
  return blocksIn(message).flatMap((block, at) => {
    const origin = message.origins[at] ?? ''
    const number = numbering(numbers, origin)
    const place = { origin, index, block: at }
    const id = isToolResult(block) ? block.tool_use_id : null
    const inner: readonly unknown[] = id !== null && Array.isArray(block.content) ? block.content : []
    return [
      ...itemOf(block, { ...place, inner: null, ...number(block, null) }),
      ...inner.flatMap((held, within) => itemOf(held, { ...place, inner: within, ...number(held, id) })),
    ]
  })
}

type Numbered = Pick<MediaItem, 'toolUseId' | 'nth'>

/** Numbers what a record brings, result by result, as it comes. */
function numbering(
  numbers: Map<string, number>,
  origin: string,
): (value: unknown, toolUseId: string | null) => Numbered {
  return (value, toolUseId) => {
    const key = JSON.stringify([origin, toolUseId])
    const nth = numbers.get(key) ?? 0
    if (isBlock(value) && isMediaPlace(value)) numbers.set(key, nth + 1)
    return { toolUseId, nth }
  }
}

type MediaPlace = Omit<MediaItem, 'kind' | 'isPicture' | 'bytes' | 'side'>

function itemOf(value: unknown, place: MediaPlace): readonly MediaItem[] {
  if (!isObject(value) || (value.type !== 'image' && value.type !== 'document')) return []
  const { type: kind, source } = value
  const isPicture = kind === 'image' || isPaged(source)
  return [
    { ...place, kind, isPicture, bytes: jsonBytes(value) ?? 0, side: kind === 'image' ? sideOf(source) : 0 },
  ]
}

function isPaged(source: unknown): boolean {
  if (!isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

function sideOf(source: unknown): number {
  if (!isObject(source) || typeof source.data !== 'string') return 0
  const size = imageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** What stands where one was. */
export function placeholderFor({ kind }: Pick<MediaItem, 'kind'>): Block {
  return mediaPlaceholder(kind)
}
