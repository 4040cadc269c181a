/**
 * The second budget: bytes of a request and images in it. Over it the oldest images become placeholders, well
 * below the limit at once, so that the prefix is rewritten once in many turns. This only proposes; the rewrite
 * is a record like any other.
 */
import type { JsonObject } from '../conversation/json.ts'
import { jsonBytes } from '../conversation/utf8.ts'
import type { RequestPolicy } from '../policy/groups/estimate-policy.ts'
import type { Profile, SizeRules } from '../policy/profile.ts'
import { type MessageList, messageAt } from './count.ts'
import type { Front } from './front.ts'
import { type MediaItem, type MediaTally, mediaOf, placeholderFor } from './media.ts'
import { lastResponse } from './place.ts'
import { requestFields } from './spell.ts'

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
