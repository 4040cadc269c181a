/**
 * The second budget: bytes of a request and images in it. Over it the oldest images become placeholders, well
 * below the limit at once, so that the prefix is rewritten once in many turns. This only proposes; the rewrite
 * is a record like any other.
 */

import { isMediaPlace, mediaPlaceholder } from '../context/entry.ts'
import type { FlatMessage } from '../context/message-parts.ts'
import { List } from '../log/append-list.ts'
import { type Block, isBlock, isToolResult } from '../log/block.ts'
import { imageSize } from '../log/image-size.ts'
import { isObject, type JsonObject, jsonBytes } from '../log/json.ts'
import type { RequestPolicy } from '../policy/policy.ts'
import type { Profile, SizeRules } from '../policy/provider-profile.ts'
import { blocksIn, type MessageList, messageAt } from './block-index.ts'
import { requestFields } from './build-request.ts'
import { lastResponse } from './cache-markers.ts'
import type { Front } from './prefix.ts'

export interface RequestSize {
  readonly bytes: number
  /** Images, and documents in pages. */
  readonly images: number
}

export interface SizeProposal {
  readonly before: RequestSize
  readonly after: RequestSize
  readonly limits: RequestSize
  /** To become placeholders, oldest first. Empty where all fits. */
  readonly drop: readonly MediaItem[]
  /** False where what may not be dropped is too much already. */
  readonly fits: boolean
}

/** Part of a limit that a clearing goes down to. */
const LOW_WATER = 0.75

export interface BudgetRules {
  readonly profile: Profile
  readonly policy: RequestPolicy
  /** Records that every rewrite keeps as they are. */
  readonly pins?: ReadonlySet<string>
}

/** What a request is made of, as far as its size goes. */
export interface SizedRequest {
  readonly messages: MessageList
  /** Bytes of all but the messages: see `bytesAround`. */
  readonly around: number
}

/** Markers come and go: there is room for all of them. */
const MARKER_BYTES = 4 * 80

export function bytesAround(front: Front, extra: JsonObject = {}): number {
  const fields = { ...requestFields({ front, extra, markers: [] }), betas: undefined, messages: [] }
  return (jsonBytes(fields) ?? 0) + MARKER_BYTES
}

/** `tally`: of what is frozen. Costs what is not, as long as all fits. */
export function isOverBudget(sized: SizedRequest, tally: MediaTally, rules: BudgetRules): boolean {
  const limits = limitsOf(rules.profile, rules.policy)
  const { bytes, items } = mediaOf(tally, sized.messages)
  const few = Math.min(limits.images, rules.profile.sizes.manyImages)
  return sized.around + bytes > limits.bytes || items.length > few
}

export function proposeSize(sized: SizedRequest, tally: MediaTally, rules: BudgetRules): SizeProposal {
  const { sizes } = rules.profile
  const limits = limitsOf(rules.profile, rules.policy)
  const media = mediaOf(tally, sized.messages)
  const items = media.items.toArray()
  const before = { bytes: sized.around + media.bytes, images: picturesIn(items).length }
  const old = items.filter((item) => mayGo(item, sized.messages, rules.pins))
  const aged = new Set(oldest(old, { before, limits }))
  const dropped = withoutLarge(items, { old, aged, sizes })
  const drop = items.filter((item) => dropped.has(item))
  const after = { bytes: before.bytes - freed(drop), images: before.images - picturesIn(drop).length }
  const left = items.filter((item) => !dropped.has(item))
  return { before, after, limits, drop, fits: isWithin(after, limits) && !areTooLarge(left, sizes) }
}

export interface AllRules extends BudgetRules {
  /** Also what the person has just sent: the provider will not have it. */
  readonly unanswered: boolean
}

/** All that may go, whatever the limits are: the provider has refused it. */
export function proposeAll(sized: SizedRequest, tally: MediaTally, rules: AllRules): SizeProposal {
  const media = mediaOf(tally, sized.messages)
  const items = media.items.toArray()
  const before = { bytes: sized.around + media.bytes, images: picturesIn(items).length }
  const isFree = (item: MediaItem): boolean =>
    rules.unanswered ? isPersons(item, sized.messages, rules.pins) : mayGo(item, sized.messages, rules.pins)
  const all = { before, after: before, limits: limitsOf(rules.profile, rules.policy), drop: [], fits: false }
  return withDropped(all, items.filter(isFree))
}

/** The same with exactly these left out. */
export function withDropped(proposal: SizeProposal, drop: readonly MediaItem[]): SizeProposal {
  const { before, limits } = proposal
  const after = { bytes: before.bytes - freed(drop), images: before.images - picturesIn(drop).length }
  return { ...proposal, after, drop, fits: isWithin(after, limits) }
}

/** What the person has said and nobody has answered stays as it is, and so do pinned records and the model's words. */
function mayGo(item: MediaItem, messages: MessageList, pins?: ReadonlySet<string>): boolean {
  return item.index <= (lastResponse(messages) ?? -1) && isPersons(item, messages, pins)
}

function isPersons(
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

function isWithin(size: RequestSize, limits: RequestSize): boolean {
  return size.bytes <= limits.bytes && size.images <= limits.images
}

function picturesIn(items: readonly MediaItem[]): readonly MediaItem[] {
  return items.filter(({ isPicture }) => isPicture)
}

/** Bytes that go when the items become placeholders. */
function freed(items: readonly MediaItem[]): number {
  return items.reduce((sum, item) => sum + item.bytes - (jsonBytes(placeholderFor(item)) ?? 0), 0)
}

interface Fullness {
  readonly before: RequestSize
  readonly limits: RequestSize
}

/** Oldest first, until each limit that was passed is back at its low-water mark. */
function oldest(items: readonly MediaItem[], { before, limits }: Fullness): readonly MediaItem[] {
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
    bytes -= freed([item])
    images -= item.isPicture ? 1 : 0
  }
  return drop
}

/** Among many images a provider takes only small ones. */
function areTooLarge(items: readonly MediaItem[], sizes: SizeRules): boolean {
  const pictures = picturesIn(items)
  return pictures.length > sizes.manyImages && pictures.some(({ side }) => side > sizes.manyImagePixels)
}

interface Dropping {
  readonly old: readonly MediaItem[]
  readonly aged: ReadonlySet<MediaItem>
  readonly sizes: SizeRules
}

/** The large old ones go; where a new one is large, so many of the old that the rest are few. */
function withoutLarge(items: readonly MediaItem[], { old, aged, sizes }: Dropping): ReadonlySet<MediaItem> {
  const dropped = new Set(aged)
  const left = (): readonly MediaItem[] => items.filter((item) => !dropped.has(item))
  if (!areTooLarge(left(), sizes)) return dropped
  for (const item of old) if (item.side > sizes.manyImagePixels) dropped.add(item)
  for (const item of picturesIn(old)) if (areTooLarge(left(), sizes)) dropped.add(item)
  return dropped
}

// Images and documents among the messages, and how many bytes the whole is. Keeps pace with flattening.

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
