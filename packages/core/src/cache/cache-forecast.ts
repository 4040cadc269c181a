/**
 * How much of a request the provider's cache will answer, said before it is sent. Exact wherever usage has told
 * the size of the prefix that is found and nothing unforeseen happens on the provider's side.
 */

import type { View } from '../context/context-view.ts'
import { List } from '../log/append-list.ts'
import { isThinking } from '../log/block.ts'
import type { AssistantRecord, Usage } from '../log/record.ts'
import type { CacheRules, Profile } from '../policy/provider-profile.ts'
import {
  blocksIn,
  type CacheKey,
  type Counted,
  countBefore,
  frontBlocks,
  type MessageList,
  messageAt,
  messageCount,
  sameKey,
  sharedBlocks,
} from '../request/block-index.ts'
import {
  type AssembledRequest,
  type AssembleQuestion,
  assembleRequest,
  blocksOfRequest,
  keyOf,
  type Mark,
  marksOf,
  messageHolding,
  positionAt,
} from '../request/build-request.ts'
import type { CallPlaces } from '../request/cache-markers.ts'
import { anchorOf, billedParts, contextOf } from '../tokens/usage.ts'
import {
  type CachedPrefix,
  type KnownSize,
  knownSize,
  type Lineage,
  NO_LINEAGE,
  type Strand,
  sizeAt,
  type Weigh,
  withStrand,
} from './cache-model.ts'

export interface ForecastQuestion {
  readonly request: AssembledRequest
  /** Milliseconds since 1970: when the request starts. */
  readonly now: number
  readonly profile: Profile
  /** For prefixes whose size nobody has told. */
  readonly weigh?: Weigh
}

/** Why it is so much and no more. `warm`: all that the request before left is read. */
export type ForecastReason =
  | 'warm'
  | 'first' // nothing was sent yet
  | 'off' // the request carries no marker
  | 'key' // model, a parameter or a trait of the whole changed
  | 'rewritten' // the request no longer says what the one before said
  | 'expired'
  | 'out-of-reach' // further back than a marker looks

export interface Forecast {
  /** Tokens. */
  readonly read: number
  /** The figure was told by usage, and not read off between two others. */
  readonly isCertain: boolean
  readonly why: ForecastReason
  readonly hit: CachedPrefix | null
  /** For what is learnt from the response. */
  readonly asked: Asked
}

/** The request as the cache will remember it. */
export interface Asked extends ForecastQuestion {
  readonly key: CacheKey
  readonly marks: readonly Mark[]
  /** Prefixes there may be, lapsed ones among them, and what is known of sizes. */
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: List<KnownSize>
  /** It goes on from the newest strand. */
  readonly follows: boolean
}

export function forecastRead(lineage: Lineage, question: ForecastQuestion): Forecast {
  const asked = askedOf(lineage, question)
  const hit = hitOf(asked)
  const known = hit === null ? 0 : knownSize(asked.sizes, hit.blocks)
  const why = reasonOf(lineage, asked, hit)
  const isCertain = known !== null && hit?.isDoubtful !== true
  return { read: known ?? hit?.tokens ?? 0, isCertain, why, hit, asked }
}

function askedOf(lineage: Lineage, question: ForecastQuestion): Asked {
  const { request, profile } = question
  const key = keyOf(request)
  const [newest, ...older] = lineage.strands
  const own = newest === undefined ? null : usable(newest, question, key)
  const follows = own !== null && newest !== undefined && own.isWhole
  const all = follows || own === null ? [own] : [own, ...older.map((strand) => usable(strand, question, key))]
  const found = all.filter((each) => each !== null)
  return {
    ...question,
    key,
    marks: marksOf(request, profile.cache),
    prefixes: merged(found.flatMap(({ prefixes }) => prefixes)),
    sizes: follows && own !== null ? own.sizes : together(found.map(({ sizes }) => sizes)),
    follows,
  }
}

interface Usable {
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: List<KnownSize>
  /** The request repeats all of the strand, under the same key. */
  readonly isWhole: boolean
}

function usable(strand: Strand, { request, profile }: ForecastQuestion, key: CacheKey): Usable {
  const shared = Math.min(sharedBlocks(strand, request), strippedFrom(strand, request, profile))
  const isWhole = shared >= blocksOfRequest(strand) && sameKey(strand.key, key, 'messages')
  if (isWhole) return { prefixes: strand.prefixes, sizes: strand.sizes, isWhole }
  const isOfModel = strand.front.model === request.front.model
  return {
    prefixes: strand.prefixes.filter(
      ({ blocks, level }) => blocks <= shared && sameKey(strand.key, key, level),
    ),
    sizes: isOfModel ? List.of([...strand.sizes].filter(({ blocks }) => blocks <= shared)) : List.of(),
    isWhole,
  }
}

/**
 * Where a model loses the thinking of finished turns, a new prompt changes the prefix from the first thinking of
 * the turn it finishes on, though no byte of ours does. In blocks before that.
 */
function strippedFrom(strand: Strand, request: AssembledRequest, { thinking }: Profile): number {
  const [one, other] = [strand.counted.end.prompt, request.counted.end.prompt]
  if (!thinking.stripsFinishedTurns || one === other) return Number.POSITIVE_INFINITY
  const further = other > one ? request.counted : strand.counted
  const first = firstThinking(further, Math.min(one, other), Math.max(one, other))
  return first === null ? Number.POSITIVE_INFINITY : frontBlocks(request.front).length + first
}

function firstThinking(counted: Counted, from: number, to: number): number | null {
  for (let index = messageHolding(counted, from + 1); index < messageCount(counted.messages); index += 1) {
    const start = countBefore(counted, index).blocks
    if (start >= to) return null
    const message = messageAt(counted.messages, index)
    const blocks = message === undefined ? [] : blocksIn(message)
    const found = blocks.findIndex((block, at) => start + at >= from && isThinking(block))
    if (found !== -1) return start + found < to ? start + found : null
  }
  return null
}

/** One of each; those of newer strands come first. */
function together(all: readonly List<KnownSize>[]): List<KnownSize> {
  const byLength = new Map<number, KnownSize>()
  for (const size of all.flatMap((sizes) => [...sizes])) {
    if (!byLength.has(size.blocks)) byLength.set(size.blocks, size)
  }
  return List.of(byLength.values())
}

/** One of each, the one that lives longest. Shortest first. */
function merged(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  const byLength = prefixes.toSorted(
    (one, other) => one.blocks - other.blocks || one.expiresAt - other.expiresAt,
  )
  return byLength.filter(({ blocks }, index) => byLength[index + 1]?.blocks !== blocks)
}

/** From the last marker back: the nearest prefix within its reach, else on from the marker before it. */
function hitOf({ request, profile, marks, prefixes, now }: Asked): CachedPrefix | null {
  const live = prefixes.filter(({ expiresAt }) => now < expiresAt)
  const position = (blocks: number): number =>
    positionAt(request, blocks, profile.thinking.stripsFinishedTurns)
  for (const mark of marks.toReversed()) {
    const nearest = live.findLast(({ blocks }) => blocks <= mark.blocks)
    if (nearest === undefined) continue
    if (position(mark.blocks) - position(nearest.blocks) < profile.cache.lookBack) return nearest
  }
  return null
}

function reasonOf({ strands: [newest] }: Lineage, asked: Asked, hit: CachedPrefix | null): ForecastReason {
  if (asked.marks.length === 0) return 'off'
  const left = newest?.prefixes.at(-1)
  if (newest === undefined || left === undefined) return 'first'
  if (hit !== null && hit.blocks >= left.blocks) return 'warm'
  if (!sameKey(newest.key, asked.key, left.level)) return 'key'
  const there = asked.prefixes.find(({ blocks }) => blocks === left.blocks)
  if (there === undefined) return 'rewritten'
  return there.expiresAt <= asked.now ? 'expired' : 'out-of-reach'
}

// What a response's usage tells of the cache: which prefixes are there now, how long, and how large they are.

interface Figures {
  readonly read: number
  readonly written: number
}

/** The lineage once the response to a forecast request has begun: from then on others can read what it wrote. */
export function learnFromResponse(lineage: Lineage, forecast: Forecast, usage: Usage): Lineage {
  const figures = figuresOf(usage)
  const { asked } = forecast
  const { request, key, follows } = asked
  const sizes = withSizes(forecast, figures)
  const kept = stillThere(forecast, figures)
  const prefixes = refreshed({ ...asked, sizes }, kept, figures)
  const { front, counted } = request
  return withStrand(lineage, { front, counted, key, prefixes, sizes }, follows)
}

/**
 * A fork reads where its parent's last marker stood, which keeps that alive, and leaves all else as it was. One
 * that had to write is remembered beside its parent: what it wrote can be read.
 */
export function learnFromFork(lineage: Lineage, forecast: Forecast, usage: Usage): Lineage {
  const [newest, ...older] = lineage.strands
  const mark = forecast.asked.marks.at(-1)
  const { read, written } = figuresOf(usage)
  if (newest === undefined || mark === undefined || read + written === 0) return lineage
  if (written > 0) return learnFromResponse(lineage, forecast, usage)
  const { now, profile } = forecast.asked
  const prefixes = newest.prefixes.map((prefix) =>
    prefix.blocks === mark.blocks ? lived(prefix, now, profile.cache) : prefix,
  )
  return { strands: [{ ...newest, prefixes }, ...older] }
}

/** The last run of the model: what it saw is what is in the cache. */
function figuresOf(usage: Usage): Figures {
  const tokens = billedParts(usage).at(-1)?.tokens
  return { read: tokens?.cacheRead ?? 0, written: (tokens?.write5m ?? 0) + (tokens?.write1h ?? 0) }
}

/** All up to the last marker was read or written; what was read ends where the prefix found does. */
function withSizes(forecast: Forecast, { read, written }: Figures): Asked['sizes'] {
  const { marks, sizes } = forecast.asked
  const last = marks.at(-1)
  if (last === undefined || read + written === 0) return sizes
  const all = told(sizes, { blocks: last.blocks, tokens: read + written })
  const found = read === 0 || written === 0 ? null : foundAt(forecast, all, read)
  return found === null ? all : told(all, { blocks: found, tokens: read })
}

function told(sizes: Asked['sizes'], size: KnownSize): Asked['sizes'] {
  return knownSize(sizes, size.blocks) === size.tokens ? sizes : sizes.push(size)
}

/** Blocks of the prefix that was read: the one foreseen, or the marked one that comes nearest to the figure. */
function foundAt(
  { asked, hit, read: expected }: Forecast,
  sizes: Asked['sizes'],
  read: number,
): number | null {
  if (hit !== null && isNear(read, expected, FAR)) return hit.blocks
  const sized = asked.marks
    .slice(0, -1)
    .map(({ blocks }) => ({ blocks, ...sizeAt({ ...asked, sizes }, blocks) }))
  const near = sized.filter(({ tokens, isKnown }) => !isKnown && isNear(read, tokens, FAR))
  const nearest = near.toSorted(
    (one, other) => Math.abs(one.tokens - read) - Math.abs(other.tokens - read),
  )[0]
  return nearest?.blocks ?? null
}

/** How far off a figure may be that was read off between two others, at the worst … */
const FAR = 0.5
/** … and as a rule. */
const NEAR = 0.25

function isNear(one: number, other: number, within: number): boolean {
  return Math.abs(one - other) <= within * Math.max(one, other)
}

/** Where less was read than was foreseen, what lies beyond it is gone, whatever the reason. */
function stillThere(
  { asked, isCertain, read: expected }: Forecast,
  { read }: Figures,
): readonly CachedPrefix[] {
  const live = asked.prefixes.filter(({ expiresAt }) => asked.now < expiresAt)
  const isForeseen = read >= expected || (!isCertain && isNear(read, expected, FAR))
  if (isForeseen) return live
  return live.filter(({ blocks, tokens }) => (knownSize(asked.sizes, blocks) ?? tokens) <= read)
}

/** What was found lives on, and so does all that a marker stands on; what was not there is written. */
function refreshed(
  asked: Asked,
  kept: readonly CachedPrefix[],
  { read, written: added }: Figures,
): readonly CachedPrefix[] {
  const { now, profile, marks } = asked
  if (marks.length === 0) return kept
  if (read + added === 0) return []
  const byLength = new Map(kept.map((prefix) => [prefix.blocks, prefix]))
  const found = kept.findLast(({ blocks }) => knownSize(asked.sizes, blocks) === read)
  if (found !== undefined)
    byLength.set(found.blocks, lived({ ...found, isDoubtful: false }, now, profile.cache))
  for (const mark of marks) {
    const there = byLength.get(mark.blocks) ?? written(asked, mark)
    if (there !== null) byLength.set(mark.blocks, lived(there, now, profile.cache))
  }
  return [...byLength.values()].sort((one, other) => one.blocks - other.blocks)
}

/** Null where it is too short to be kept. */
function written(asked: Asked, { blocks, level, ttl }: Mark): CachedPrefix | null {
  const least = asked.profile.cache.minimumTokens ?? 0
  const { tokens, isKnown } = sizeAt(asked, blocks)
  const isDoubtful = !isKnown && isNear(tokens, least, NEAR)
  return tokens < least && !isDoubtful ? null : { blocks, level, ttl, tokens, isDoubtful, expiresAt: 0 }
}

/** Lifetimes count from the start of the request that wrote or read. */
function lived(prefix: CachedPrefix, now: number, { ttls }: CacheRules): CachedPrefix {
  const seconds = ttls.find(({ name }) => name === prefix.ttl)?.seconds ?? 0
  return { ...prefix, expiresAt: Math.max(prefix.expiresAt, now + seconds * 1000) }
}

// What a session that is opened again knows of the cache: its newest response tells what the request it answered
// left there, and when. Nothing else of the past can still be alive, or be told from the log.

/** `question`: that of the request that would be sent now. */
export function recallLineage(question: AssembleQuestion, view: View): Lineage {
  const newest = newestMeasured(view)
  const index = newest === null ? null : indexOfRecord(question.flat, newest.record.uuid)
  const usage = newest?.record.message.usage
  if (newest === null || index === null || usage === undefined) return NO_LINEAGE
  const request = assembleRequest({ ...question, flat: firstOf(question.flat, index) })
  const asked = { request, now: Date.parse(newest.sentAt), profile: question.profile }
  return Number.isNaN(asked.now)
    ? NO_LINEAGE
    : learnFromResponse(NO_LINEAGE, forecastRead(NO_LINEAGE, asked), usage)
}

interface Measured {
  readonly record: AssistantRecord
  /** The newest record from before the response: no later than the request began, so that a life is never overrated. */
  readonly sentAt: string
}

/** Of the newest response that measured the present view, the newest record: its figures are the final ones. */
function newestMeasured(view: View): Measured | null {
  const anchor = anchorOf(view)
  if (anchor === null) return null
  const { entries } = view
  for (let place = entries.length - 1; place >= anchor.first; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type !== 'assistant' || record.message.id !== anchor.response) continue
    if (contextOf(record.message.usage) > 0) return { record, sentAt: timeBefore(entries, anchor.first) }
  }
  return null
}

/** When the newest record in front of a place came. */
function timeBefore(entries: View['entries'], place: number): string {
  for (let at = place - 1; at >= 0; at -= 1) {
    const record = entries.at(at)?.record
    if (record !== undefined && record.type !== 'progress') return record.timestamp
  }
  return ''
}

function indexOfRecord(messages: MessageList, uuid: string): number | null {
  for (let index = messageCount(messages) - 1; index >= 0; index -= 1) {
    if (messageAt(messages, index)?.origins.includes(uuid) === true) return index
  }
  return null
}

function firstOf({ frozen, tail, calls }: CallPlaces, count: number): CallPlaces {
  const messages = [...frozen.toArray(0, count), ...tail.slice(0, Math.max(0, count - frozen.length))]
  return { frozen: List.of(messages), tail: [], calls }
}
