/**
 * Byte and image limits of a request. Over a limit the oldest images become placeholders, down to well below it, so that
 * the prefix is rewritten once in many turns. This only proposes; the rewrite is a record like any other.
 */

import { isMediaPlace, mediaPlaceholder } from '../context/entry.ts'
import type { FlatMessage } from '../context/flatten.ts'
import { type Block, isBlock, isToolResult } from '../log/block.ts'
import { imageSize } from '../log/image-size.ts'
import { isObject, type JsonObject, jsonBytes } from '../log/json.ts'
import { List } from '../log/persistent-collections.ts'
import type { RequestPolicy } from '../policy/policy.ts'
import type { Profile, SizeRules } from '../policy/provider-profile.ts'
import { blocksIn, type MessageList, messageAt } from './block-index.ts'
import { requestFields } from './build-request.ts'
import { lastResponse } from './cache-markers.ts'
import type { Front } from './prefix.ts'

export interface RequestSize {
  readonly bytes: number
  /** Images and paged documents. */
  readonly images: number
}

export interface SizeProposal {
  readonly before: RequestSize
  readonly after: RequestSize
  readonly limits: RequestSize
  /** To become placeholders, oldest first. */
  readonly drop: readonly MediaItem[]
  /** False if what may not be dropped is too much already. */
  readonly fits: boolean
}

/** Share of a limit that dropping goes down to. */
const LOW_WATER = 0.75

export interface BudgetRules {
  readonly profile: Profile
  readonly policy: RequestPolicy
  /** Records that every rewrite keeps as they are. */
  readonly pins?: ReadonlySet<string>
}

export interface SizedRequest {
  readonly messages: MessageList
  /** Bytes of everything but the messages (`bytesAround`). */
  readonly around: number
}

/** Markers move: room for all of them is always reserved. */
const MARKER_BYTES = 4 * 80

export function bytesAround(front: Front, extra: JsonObject = {}): number {
  const fields = { ...requestFields({ front, extra, markers: [] }), betas: undefined, messages: [] }
  return (jsonBytes(fields) ?? 0) + MARKER_BYTES
}

/** `tally`: of the frozen messages. Costs what is not frozen. */
export function isOverBudget(sized: SizedRequest, tally: MediaTally, rules: BudgetRules): boolean {
  const limits = limitsOf(rules.profile, rules.policy)
  const { bytes, items } = tallyMedia(tally, sized.messages)
  const few = Math.min(limits.images, rules.profile.sizes.manyImages)
  return sized.around + bytes > limits.bytes || items.length > few
}

export function proposeSize(sized: SizedRequest, tally: MediaTally, rules: BudgetRules): SizeProposal {
  const { sizes } = rules.profile
  const { items, ...nothing } = measure(sized, tally, rules)
  const old = items.filter((item) => mayGo(item, sized.messages, rules.pins))
  const dropped = withLarge(items, old, new Set(selectOldest(old, nothing)), sizes)
  const proposal = withDropped(
    nothing,
    items.filter((item) => dropped.has(item)),
  )
  const left = items.filter((item) => !dropped.has(item))
  return { ...proposal, fits: proposal.fits && !areTooLarge(left, sizes) }
}

/** All that may go, whatever the limits: the provider has refused it. `unanswered`: what was just sent goes too. */
export function proposeAll(
  sized: SizedRequest,
  tally: MediaTally,
  rules: BudgetRules & { readonly unanswered: boolean },
): SizeProposal {
  const { items, ...nothing } = measure(sized, tally, rules)
  const isFree = rules.unanswered ? isUserMedia : mayGo
  return withDropped(
    nothing,
    items.filter((item) => isFree(item, sized.messages, rules.pins)),
  )
}

/** The proposal with exactly these dropped. */
export function withDropped(proposal: SizeProposal, drop: readonly MediaItem[]): SizeProposal {
  const { before, limits } = proposal
  const after = { bytes: before.bytes - freedBytes(drop), images: before.images - imagesIn(drop).length }
  const fits = after.bytes <= limits.bytes && after.images <= limits.images
  return { ...proposal, after, drop, fits }
}

/** Nothing is dropped yet. */
function measure(
  sized: SizedRequest,
  tally: MediaTally,
  { profile, policy }: BudgetRules,
): SizeProposal & { readonly items: readonly MediaItem[] } {
  const media = tallyMedia(tally, sized.messages)
  const items = media.items.toArray()
  const before = { bytes: sized.around + media.bytes, images: imagesIn(items).length }
  return { items, before, after: before, limits: limitsOf(profile, policy), drop: [], fits: false }
}

/** A prompt that has not been answered keeps its images. */
function mayGo(item: MediaItem, messages: MessageList, pins?: ReadonlySet<string>): boolean {
  return item.index <= (lastResponse(messages) ?? -1) && isUserMedia(item, messages, pins)
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

export function limitsOf({ sizes, window }: Profile, policy: RequestPolicy): RequestSize {
  const isSmall = window === null || window <= policy.smallWindowTokens
  const images = isSmall ? policy.imagesInSmallWindow : policy.images
  return { bytes: Math.min(policy.bodyBytes, sizes.bodyBytes), images: Math.min(images, sizes.images) }
}

function imagesIn(items: readonly MediaItem[]): readonly MediaItem[] {
  return items.filter(({ isPicture }) => isPicture)
}

/** Bytes that go when the items become placeholders. */
function freedBytes(items: readonly MediaItem[]): number {
  return items.reduce((sum, item) => sum + item.bytes - (jsonBytes(placeholderFor(item)) ?? 0), 0)
}

/** Oldest first, until each limit that was exceeded is back at its low-water mark. */
function selectOldest(
  items: readonly MediaItem[],
  { before, limits }: Pick<SizeProposal, 'before' | 'limits'>,
): readonly MediaItem[] {
  const target = {
    bytes: before.bytes > limits.bytes ? limits.bytes * LOW_WATER : Number.POSITIVE_INFINITY,
    images: before.images > limits.images ? limits.images * LOW_WATER : Number.POSITIVE_INFINITY,
  }
  const drop: MediaItem[] = []
  let { bytes, images } = before
  for (const item of items) {
    if (bytes <= target.bytes && images <= target.images) break
    const helps = bytes > target.bytes || item.isPicture
    if (!helps) continue
    drop.push(item)
    bytes -= freedBytes([item])
    images -= item.isPicture ? 1 : 0
  }
  return drop
}

/** Among many images, a provider accepts only small ones. */
function areTooLarge(items: readonly MediaItem[], sizes: SizeRules): boolean {
  const images = imagesIn(items)
  return images.length > sizes.manyImages && images.some(({ side }) => side > sizes.manyImagePixels)
}

/** `dropped`, with the large old ones; if a new one is large, with so many old ones that few are left. */
function withLarge(
  items: readonly MediaItem[],
  old: readonly MediaItem[],
  dropped: ReadonlySet<MediaItem>,
  sizes: SizeRules,
): ReadonlySet<MediaItem> {
  const all = new Set(dropped)
  const listKept = (): readonly MediaItem[] => items.filter((item) => !all.has(item))
  if (!areTooLarge(listKept(), sizes)) return all
  for (const item of old) if (item.side > sizes.manyImagePixels) all.add(item)
  for (const item of imagesIn(old)) if (areTooLarge(listKept(), sizes)) all.add(item)
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
  readonly frozen: List<FlatMessage>
  readonly items: List<MediaItem>
  /** UTF-8 bytes of the messages as JSON, with the commas between them. */
  readonly bytes: number
}

export const NO_MEDIA: MediaTally = { frozen: List.of(), items: List.of(), bytes: 0 }

/** Of the frozen messages, continued from an earlier state. */
export function advanceMedia(tally: MediaTally, { frozen }: MessageList): MediaTally {
  let next = frozen.extends(tally.frozen) ? tally : NO_MEDIA
  for (let index = next.frozen.length; index < frozen.length; index += 1) {
    next = withMessage(next, frozen.at(index), index)
  }
  return { ...next, frozen }
}

/** Of all messages. */
function tallyMedia(tally: MediaTally, { frozen, tail }: MessageList): MediaTally {
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
      ...toMediaItem(block, { ...place, inner: null, ...number(block, null) }),
      ...inner.flatMap((held, within) => toMediaItem(held, { ...place, inner: within, ...number(held, id) })),
    ]
  })
}

type Numbered = Pick<MediaItem, 'toolUseId' | 'nth'>

/** Numbers the media of a record, by tool result, in order. */
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

function toMediaItem(value: unknown, place: MediaPlace): readonly MediaItem[] {
  if (!isObject(value) || (value.type !== 'image' && value.type !== 'document')) return []
  const { type: kind, source } = value
  const isPicture = kind === 'image' || isPaged(source)
  return [
    {
      ...place,
      kind,
      isPicture,
      bytes: jsonBytes(value) ?? 0,
      side: kind === 'image' ? longestSide(source) : 0,
    },
  ]
}

function isPaged(source: unknown): boolean {
  if (!isObject(source)) return false
  return source.type === 'url' || (source.type === 'base64' && source.media_type === 'application/pdf')
}

function longestSide(source: unknown): number {
  if (!isObject(source) || typeof source.data !== 'string') return 0
  const size = imageSize(source.data)
  return size === null ? 0 : Math.max(size.width, size.height)
}

/** The block left in its place. */
export function placeholderFor({ kind }: Pick<MediaItem, 'kind'>): Block {
  return mediaPlaceholder(kind)
}
