/**
 * Byte and image limits of a request. Over a limit the oldest images become placeholders, down to well below it, so that
 * the prefix is rewritten once in many turns. This only proposes; the rewrite is a record like any other.
 */

import { isMediaOrPlaceholder, mediaPlaceholder } from '../context/entry.ts'
import type { TracedMessage } from '../context/flatten.ts'
import { type Block, isBlock, isToolResult } from '../log/block.ts'
import { readImageSize } from '../log/image-size.ts'
import { countJsonBytes, isObject, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { RequestPolicy } from '../policy/policy.ts'
import type { ProviderProfile, SizeRules } from '../policy/provider-profile.ts'
import { blocksOfMessage, type MessageList, messageAt } from './block-index.ts'
import { toRequestFields } from './build-request.ts'
import { findLastResponse } from './cache-markers.ts'
import type { RequestPrefix } from './prefix.ts'

export interface RequestSize {
  readonly bytes: number
  /** Images and paged documents. */
  readonly images: number
}

export interface MediaDropProposal {
  readonly before: RequestSize
  readonly after: RequestSize
  readonly limits: RequestSize
  /** To become placeholders, oldest first. */
  readonly drop: readonly MediaItem[]
  /** False if what may not be dropped is too much already. */
  readonly fits: boolean
}

/** Share of a limit that dropping goes down to. */
const LOW_WATER_SHARE = 0.75

export interface RequestSizeRules {
  readonly profile: ProviderProfile
  readonly policy: RequestPolicy
  /** Records that every rewrite keeps as they are. */
  readonly pins?: ReadonlySet<string>
}

export interface RequestSizeInput {
  readonly messages: MessageList
  /** Bytes of everything but the messages (`bytesAround`). */
  readonly around: number
}

/** Markers move: room for all of them is always reserved. */
const MARKER_BYTES = 4 * 80

export function measureOtherBytes(front: RequestPrefix, extra: JsonObject = {}): number {
  const fields = { ...toRequestFields({ front, extra, markers: [] }), betas: undefined, messages: [] }
  return (countJsonBytes(fields) ?? 0) + MARKER_BYTES
}

/** `tally`: of the frozen messages. Costs what is not frozen. */
export function isOverSizeLimit(
  sized: RequestSizeInput,
  tally: MediaTally,
  rules: RequestSizeRules,
): boolean {
  const limits = requestSizeLimits(rules.profile, rules.policy)
  const { bytes, items } = tallyAllMedia(tally, sized.messages)
  const few = Math.min(limits.images, rules.profile.sizes.manyImages)
  return sized.around + bytes > limits.bytes || items.length > few
}

export function proposeMediaDrop(
  sized: RequestSizeInput,
  tally: MediaTally,
  rules: RequestSizeRules,
): MediaDropProposal {
  const { sizes } = rules.profile
  const { items, ...nothing } = measureRequest(sized, tally, rules)
  const old = items.filter((item) => canDropMedia(item, sized.messages, rules.pins))
  const dropped = withLargeImages(items, old, new Set(selectOldestMedia(old, nothing)), sizes)
  const proposal = withDroppedMedia(
    nothing,
    items.filter((item) => dropped.has(item)),
  )
  const left = items.filter((item) => !dropped.has(item))
  return { ...proposal, fits: proposal.fits && !hasTooLargeImages(left, sizes) }
}

/** All that may go, whatever the limits: the provider has refused it. `unanswered`: what was just sent goes too. */
export function proposeFullMediaDrop(
  sized: RequestSizeInput,
  tally: MediaTally,
  rules: RequestSizeRules & { readonly unanswered: boolean },
): MediaDropProposal {
  const { items, ...nothing } = measureRequest(sized, tally, rules)
  const isFree = rules.unanswered ? isUserMedia : canDropMedia
  return withDroppedMedia(
    nothing,
    items.filter((item) => isFree(item, sized.messages, rules.pins)),
  )
}

/** The proposal with exactly these dropped. */
export function withDroppedMedia(proposal: MediaDropProposal, drop: readonly MediaItem[]): MediaDropProposal {
  const { before, limits } = proposal
  const after = {
    bytes: before.bytes - measureFreedBytes(drop),
    images: before.images - filterImages(drop).length,
  }
  const fits = after.bytes <= limits.bytes && after.images <= limits.images
  return { ...proposal, after, drop, fits }
}

/** Nothing is dropped yet. */
function measureRequest(
  sized: RequestSizeInput,
  tally: MediaTally,
  { profile, policy }: RequestSizeRules,
): MediaDropProposal & { readonly items: readonly MediaItem[] } {
  const media = tallyAllMedia(tally, sized.messages)
  const items = media.items.toArray()
  const before = { bytes: sized.around + media.bytes, images: filterImages(items).length }
  return { items, before, after: before, limits: requestSizeLimits(profile, policy), drop: [], fits: false }
}

/** A prompt that has not been answered keeps its images. */
function canDropMedia(item: MediaItem, messages: MessageList, pins?: ReadonlySet<string>): boolean {
  return item.index <= (findLastResponse(messages) ?? -1) && isUserMedia(item, messages, pins)
}

/** Pinned records and the model's own messages are kept as they are. */
function isUserMedia(
  { index, origin }: MediaItem,
  messages: MessageList,
  pins: ReadonlySet<string> = new Set(),
): boolean {
  if (pins.has(origin) || origin === '') return false
  return messageAt(messages, index)?.message.role === 'user'
}

export function requestSizeLimits({ sizes, window }: ProviderProfile, policy: RequestPolicy): RequestSize {
  const isSmall = window === null || window <= policy.smallWindowTokens
  const images = isSmall ? policy.imagesInSmallWindow : policy.images
  return { bytes: Math.min(policy.bodyBytes, sizes.bodyBytes), images: Math.min(images, sizes.images) }
}

function filterImages(items: readonly MediaItem[]): readonly MediaItem[] {
  return items.filter(({ isPicture }) => isPicture)
}

/** Bytes that go when the items become placeholders. */
function measureFreedBytes(items: readonly MediaItem[]): number {
  return items.reduce((sum, item) => sum + item.bytes - (countJsonBytes(toMediaPlaceholder(item)) ?? 0), 0)
}

/** Oldest first, until each limit that was exceeded is back at its low-water mark. */
function selectOldestMedia(
  items: readonly MediaItem[],
  { before, limits }: Pick<MediaDropProposal, 'before' | 'limits'>,
): readonly MediaItem[] {
  const target = {
    bytes: before.bytes > limits.bytes ? limits.bytes * LOW_WATER_SHARE : Number.POSITIVE_INFINITY,
    images: before.images > limits.images ? limits.images * LOW_WATER_SHARE : Number.POSITIVE_INFINITY,
  }
  const drop: MediaItem[] = []
  let { bytes, images } = before
  for (const item of items) {
    if (bytes <= target.bytes && images <= target.images) break
    const helps = bytes > target.bytes || item.isPicture
    if (!helps) continue
    drop.push(item)
    bytes -= measureFreedBytes([item])
    images -= item.isPicture ? 1 : 0
  }
  return drop
}

/** Among many images, a provider accepts only small ones. */
function hasTooLargeImages(items: readonly MediaItem[], sizes: SizeRules): boolean {
  const images = filterImages(items)
  return images.length > sizes.manyImages && images.some(({ side }) => side > sizes.manyImagePixels)
}

/** `dropped`, with the large old ones; if a new one is large, with so many old ones that few are left. */
function withLargeImages(
  items: readonly MediaItem[],
  old: readonly MediaItem[],
  dropped: ReadonlySet<MediaItem>,
  sizes: SizeRules,
): ReadonlySet<MediaItem> {
  const all = new Set(dropped)
  const listKept = (): readonly MediaItem[] => items.filter((item) => !all.has(item))
  if (!hasTooLargeImages(listKept(), sizes)) return all
  for (const item of old) if (item.side > sizes.manyImagePixels) all.add(item)
  for (const item of filterImages(old)) if (hasTooLargeImages(listKept(), sizes)) all.add(item)
  return all
}

// Images and documents in the messages, and the bytes of all messages, counted as the messages grow.

export interface MediaItem {
  /** The record it comes from. */
  readonly origin: string
  /** Which of that record's items (`HiddenMedia`). */
  readonly toolUseId: string | null
  readonly nth: number
  /** Message, block, and block inside a tool result (null: the block itself). */
  readonly index: number
  readonly block: number
  readonly inner: number | null
  readonly kind: 'image' | 'document'
  /** It counts as an image: every image, and a paged document. */
  readonly isPicture: boolean
  readonly bytes: number
  /** Longest side in pixels; 0 if unknown. */
  readonly side: number
}

export interface MediaTally {
  readonly frozen: AppendList<TracedMessage>
  readonly items: AppendList<MediaItem>
  /** UTF-8 bytes of the messages as JSON, with the commas between them. */
  readonly bytes: number
}

export const NO_MEDIA: MediaTally = { frozen: AppendList.of(), items: AppendList.of(), bytes: 0 }

/** Of the frozen messages, continued from an earlier state. */
export function updateMediaTally(tally: MediaTally, { frozen }: MessageList): MediaTally {
  let next = frozen.extends(tally.frozen) ? tally : NO_MEDIA
  for (let index = next.frozen.length; index < frozen.length; index += 1) {
    next = withMessageMedia(next, frozen.at(index), index)
  }
  return { ...next, frozen }
}

/** Of all messages. */
function tallyAllMedia(tally: MediaTally, { frozen, tail }: MessageList): MediaTally {
  return tail.reduce((sum, message, at) => withMessageMedia(sum, message, frozen.length + at), tally)
}

function withMessageMedia(tally: MediaTally, message: TracedMessage | undefined, index: number): MediaTally {
  if (message === undefined) return tally
  let { items } = tally
  for (const item of findMedia(message, index)) items = items.push(item)
  const comma = index === 0 ? 0 : 1
  const sent = { ...message.message, content: blocksOfMessage(message) }
  return { ...tally, items, bytes: tally.bytes + comma + (countJsonBytes(sent) ?? 0) }
}

function findMedia(message: TracedMessage, index: number): readonly MediaItem[] {
  const numbers = new Map<string, number>()
  return blocksOfMessage(message).flatMap((block, at) => {
    const origin = message.origins[at] ?? ''
    const number = createNumbering(numbers, origin)
    const place = { origin, index, block: at }
    const id = isToolResult(block) ? block.tool_use_id : null
    const inner: readonly unknown[] = id !== null && Array.isArray(block.content) ? block.content : []
    return [
      ...toMediaItem(block, { ...place, inner: null, ...number(block, null) }),
      ...inner.flatMap((held, within) => toMediaItem(held, { ...place, inner: within, ...number(held, id) })),
    ]
  })
}

type MediaNumber = Pick<MediaItem, 'toolUseId' | 'nth'>

/** Numbers the media of a record, by tool result, in order. */
function createNumbering(
  numbers: Map<string, number>,
  origin: string,
): (value: unknown, toolUseId: string | null) => MediaNumber {
  return (value, toolUseId) => {
    const key = JSON.stringify([origin, toolUseId])
    const nth = numbers.get(key) ?? 0
    if (isBlock(value) && isMediaOrPlaceholder(value)) numbers.set(key, nth + 1)
    return { toolUseId, nth }
  }
}

type MediaPosition = Omit<MediaItem, 'kind' | 'isPicture' | 'bytes' | 'side'>

function toMediaItem(value: unknown, place: MediaPosition): readonly MediaItem[] {
  if (!isObject(value) || (value.type !== 'image' && value.type !== 'document')) return []
  const { type, source } = value
  const isPicture = type === 'image' || isPagedDocument(source)
  return [
    {
      ...place,
      kind: type,
      isPicture,
      bytes: countJsonBytes(value) ?? 0,
      side: type === 'image' ? measureLongestSide(source) : 0,
    },
  ]
}

function isPagedDocument(source: unknown): boolean {
  if (!isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

function measureLongestSide(source: unknown): number {
  if (!isObject(source) || typeof source.data !== 'string') return 0
  const size = readImageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** The block left in its place. */
export function toMediaPlaceholder({ kind }: Pick<MediaItem, 'kind'>): Block {
  return mediaPlaceholder(kind)
}
