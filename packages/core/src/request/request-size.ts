/**
 * Keeps an API request within the provider's byte and image limits. If a limit is exceeded, the oldest images are
 * replaced by placeholders until the request is well below the limit, so that the cached prefix is rewritten only once
 * in many turns. This file only proposes the change; the caller appends the record that makes it.
 */

import { createMediaPlaceholder, isMediaOrPlaceholder } from '../context/context-entry.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import { countsAsImage, isBlock, isToolResult } from '../log/block.ts'
import { measureLongestSide } from '../log/image-size.ts'
import { countJsonBytes, countJsonBytesOnce, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import type { ProviderProfile, ProviderSizeRules } from '../policy/provider-profile.ts'
import type { RequestLimitsPolicy } from '../policy/window-policy.ts'
import { findMessageAt, type MessageList, toMessageBlocks } from './block-index.ts'
import { toNonMessageFields } from './build-request.ts'
import { findLastResponseIndex } from './cache-markers.ts'
import { buildRequestPrefix, type KnownPrefix, type RequestPrefix } from './prefix-snapshot.ts'

export interface RequestSize {
  readonly bytes: number
  /** Number of images, including paged documents such as PDFs. */
  readonly images: number
}

/** Images and documents to replace by placeholders, with the size of the request before and after. */
export interface MediaDropProposal {
  readonly before: RequestSize
  readonly after: RequestSize
  readonly limits: RequestSize
  /** Images and documents to replace by placeholders, oldest first. */
  readonly drop: readonly MediaItem[]
  /** False if the API request would exceed a limit even after dropping all images and documents that may be dropped. */
  readonly fits: boolean
}

/** If a limit is exceeded, images are dropped until the API request is at this share of the limit. */
const LOW_WATER_SHARE = 0.75

interface RequestSizeRules {
  readonly profile: ProviderProfile
  readonly policy: RequestLimitsPolicy
  /** uuids of pinned records, whose images are never dropped. */
  readonly pins?: ReadonlySet<string>
}

interface RequestSizeInput {
  readonly messages: MessageList
  /** Bytes of everything in the request except its messages (`measureNonMessageBytes`). */
  readonly around: number
}

/** Bytes of one cache marker with a lifetime and a scope. */
const MARKER_BYTES = 80

/** Size of the last request, from which the size of the next request is computed incrementally. */
export interface RequestSizeState {
  readonly tally: MediaTally
  readonly front: RequestPrefix | null
  /** Bytes of the request without its messages. */
  readonly prefixBytes: number
}

interface NextRequestSizeInput {
  readonly flat: MessageList
  readonly prefix: Pick<KnownPrefix, 'current'>
  readonly lastRequest: { readonly front: RequestPrefix } | null
  readonly maxMarkers: number
}

/** Measures the size of the next request. Counts only new messages, unless the prefix changed. */
export function* updateRequestSize(
  before: RequestSizeState | null,
  { flat, prefix, lastRequest, maxMarkers }: NextRequestSizeInput,
): WorkInSteps<RequestSizeState> {
  const tally = yield* tallyFrozenMedia(before?.tally ?? EMPTY_MEDIA_TALLY, flat)
  const front =
    prefix.current === null ? null : buildRequestPrefix(prefix.current, { previous: lastRequest?.front })
  const isSamePrefix =
    before?.front?.current.epoch === front?.current.epoch && before?.front?.parameters === front?.parameters
  if (before !== null && isSamePrefix) return { ...before, tally }
  return { tally, front, prefixBytes: front === null ? 0 : measureNonMessageBytes(front, maxMarkers) }
}

/**
 * Measures a request without its messages. `maxMarkers`: number of cache markers to reserve bytes for, because they are
 * placed after the request is measured.
 */
export function measureNonMessageBytes(
  front: RequestPrefix,
  maxMarkers: number,
  extra: JsonObject = {},
): number {
  const fields = { ...toNonMessageFields({ front, extra, markers: [] }), betas: undefined, messages: [] }
  return (countJsonBytes(fields) ?? 0) + maxMarkers * MARKER_BYTES
}

/**
 * True if the request exceeds the byte limit, or has more images than the policy allows or than the provider takes at full
 * size. A proposal then shows whether anything must go. `tally`: counts of the frozen messages, which are not counted again.
 */
export function canExceedSizeLimits(
  sized: RequestSizeInput,
  tally: MediaTally,
  rules: RequestSizeRules,
): boolean {
  const limits = findRequestSizeLimits(rules.profile, rules.policy)
  const { bytes, items } = tallyAllMedia(tally, sized.messages)
  const few = Math.min(limits.images, rules.profile.sizes.manyImages)
  return sized.around + bytes > limits.bytes || filterImages(items.toArray()).length > few
}

/**
 * Proposes to drop the oldest images and documents until each exceeded limit is well kept. Pinned ones and those after the
 * last response stay.
 */
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

/**
 * Proposes to drop all images and documents that may be dropped, because the provider refused the API request as too
 * large. `unanswered`: also drops those sent after the last response.
 */
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

/** Returns the proposal changed to drop exactly the images and documents in `drop`. */
export function withDroppedMedia(proposal: MediaDropProposal, drop: readonly MediaItem[]): MediaDropProposal {
  const { before, limits } = proposal
  const after = {
    bytes: before.bytes - measureFreedBytes(drop),
    images: before.images - filterImages(drop).length,
  }
  const fits = after.bytes <= limits.bytes && after.images <= limits.images
  return { ...proposal, after, drop, fits }
}

/** Measures the API request. Returns a proposal that drops nothing, and a list of all images and documents. */
function measureRequest(
  sized: RequestSizeInput,
  tally: MediaTally,
  { profile, policy }: RequestSizeRules,
): MediaDropProposal & { readonly items: readonly MediaItem[] } {
  const media = tallyAllMedia(tally, sized.messages)
  const items = media.items.toArray()
  const before = { bytes: sized.around + media.bytes, images: filterImages(items).length }
  return {
    items,
    before,
    after: before,
    limits: findRequestSizeLimits(profile, policy),
    drop: [],
    fits: false,
  }
}

/** True if the image or document may be dropped. Those sent after the last response are kept. */
function canDropMedia(item: MediaItem, messages: MessageList, pins?: ReadonlySet<string>): boolean {
  return item.index <= (findLastResponseIndex(messages) ?? -1) && isUserMedia(item, messages, pins)
}

/** True for an image or document in a user message whose record is not pinned. */
function isUserMedia(
  { index, origin }: MediaItem,
  messages: MessageList,
  pins: ReadonlySet<string> = new Set(),
): boolean {
  if (pins.has(origin) || origin === '') return false
  return findMessageAt(messages, index)?.message.role === 'user'
}

/** Returns the limits of a request: of provider and policy, the smaller ones. */
export function findRequestSizeLimits(
  { sizes, window }: ProviderProfile,
  policy: RequestLimitsPolicy,
): RequestSize {
  const isSmall = window === null || window <= policy.smallWindowTokens
  const images = isSmall ? policy.imagesInSmallWindow : policy.images
  return { bytes: Math.min(policy.bodyBytes, sizes.bodyBytes), images: Math.min(images, sizes.images) }
}

function filterImages(items: readonly MediaItem[]): readonly MediaItem[] {
  return items.filter(({ isPicture }) => isPicture)
}

/** Returns the bytes saved by replacing the given images and documents with placeholders. */
function measureFreedBytes(items: readonly MediaItem[]): number {
  return items.reduce(
    (sum, item) => sum + item.bytes - (countJsonBytes(createMediaPlaceholder(item.kind)) ?? 0),
    0,
  )
}

/** Selects the oldest images and documents to drop, until each exceeded limit is down to the share `LOW_WATER_SHARE`. */
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

/** True if an image is too large for the number of images. Providers accept only small images if a request has many. */
function hasTooLargeImages(items: readonly MediaItem[], sizes: ProviderSizeRules): boolean {
  const images = filterImages(items)
  return images.length > sizes.manyImages && images.some(({ side }) => side > sizes.manyImagePixels)
}

/**
 * Adds old images that are too large to `dropped`. If a new image is too large, also adds the oldest images until so
 * few are left that large ones are accepted.
 */
function withLargeImages(
  items: readonly MediaItem[],
  old: readonly MediaItem[],
  dropped: ReadonlySet<MediaItem>,
  sizes: ProviderSizeRules,
): ReadonlySet<MediaItem> {
  const all = new Set(dropped)
  const listKept = (): readonly MediaItem[] => items.filter((item) => !all.has(item))
  if (!hasTooLargeImages(listKept(), sizes)) return all
  for (const item of old) if (item.side > sizes.manyImagePixels) all.add(item)
  for (const item of filterImages(old)) if (hasTooLargeImages(listKept(), sizes)) all.add(item)
  return all
}

// The declarations below count the images and documents in the messages, and the bytes of all messages. Frozen messages
// are counted once.

/** An image or document in a request, and where it is. */
export interface MediaItem {
  /** uuid of the record that contains the image or document. */
  readonly origin: string
  /** Id of the tool call whose result contains the image or document; null if none does. */
  readonly toolUseId: string | null
  /** Number, from 0, of the image or document among those in that result, or else in the record, placeholders included. */
  readonly nth: number
  /**
   * Index of the message, and of the block in that message. For an item inside a tool result, also the index of its
   * block there; otherwise null.
   */
  readonly index: number
  readonly block: number
  readonly inner: number | null
  readonly kind: 'image' | 'document'
  /** True if the item counts towards the image limit: every image, and every document with pages. */
  readonly isPicture: boolean
  readonly bytes: number
  /** Longest side in pixels; 0 if unknown. */
  readonly side: number
}

interface MediaTally {
  readonly frozen: AppendList<TracedMessage>
  readonly items: AppendList<MediaItem>
  /** UTF-8 bytes of the messages as JSON, with the commas between them. */
  readonly bytes: number
}

export const EMPTY_MEDIA_TALLY: MediaTally = { frozen: AppendList.of(), items: AppendList.of(), bytes: 0 }

/**
 * Counts the images, documents and bytes of the frozen messages, in steps. Continues from `tally`, the counts of an
 * earlier state.
 */
export function* tallyFrozenMedia(tally: MediaTally, { frozen }: MessageList): WorkInSteps<MediaTally> {
  let next = frozen.extends(tally.frozen) ? tally : EMPTY_MEDIA_TALLY
  for (let index = next.frozen.length; index < frozen.length; index += 1) {
    const { bytes } = next
    next = withMessageMedia(next, frozen.at(index), index)
    yield next.bytes - bytes
  }
  return { ...next, frozen }
}

/** Counts the images, documents and bytes of all messages. Continues from the counts of the frozen messages. */
function tallyAllMedia(tally: MediaTally, { frozen, tail }: MessageList): MediaTally {
  return tail.reduce((sum, message, at) => withMessageMedia(sum, message, frozen.length + at), tally)
}

function withMessageMedia(tally: MediaTally, message: TracedMessage | undefined, index: number): MediaTally {
  if (message === undefined) return tally
  let { items } = tally
  for (const item of findMedia(message, index)) items = items.push(item)
  const comma = index === 0 ? 0 : 1
  const blocks = toMessageBlocks(message)
  const around = (countJsonBytes({ ...message.message, content: [] }) ?? 0) + Math.max(0, blocks.length - 1)
  const bytes = blocks.reduce((sum, block) => sum + (countJsonBytesOnce(block) ?? 0), around)
  return { ...tally, items, bytes: tally.bytes + comma + bytes }
}

function findMedia(message: TracedMessage, index: number): readonly MediaItem[] {
  const numbers = new Map<string, number>()
  return toMessageBlocks(message).flatMap((block, at) => {
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

/**
 * Returns a function that numbers the images and documents of a log record in order. Each tool result has its own
 * numbering.
 */
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
  if (!isBlock(value) || (value.type !== 'image' && value.type !== 'document')) return []
  const bytes = countJsonBytes(value) ?? 0
  const isPicture = countsAsImage(value)
  return [{ ...place, kind: value.type, isPicture, bytes, side: measureLongestSide(value) }]
}
