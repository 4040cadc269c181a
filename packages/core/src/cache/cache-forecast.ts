/**
 * How much of a request the provider will read from its cache, predicted before it is sent, and what usage then shows
 * of the cache. Exact wherever usage has shown the size of the prefix found and nothing unforeseen happens.
 */

import type { ContextView } from '../context/context-view.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { AssistantRecord, Usage } from '../log/record.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { findMessageIndex } from '../request/block-index.ts'
import {
  type AssembledRequest,
  type AssembleRequestInput,
  assembleRequest,
} from '../request/build-request.ts'
import { takeFirstMessages } from '../request/cache-markers.ts'
import { findMeasuredResponse } from '../tokens/context-meter.ts'
import { countContextTokens } from '../tokens/usage.ts'
import { toCacheFigures } from './cache-break.ts'
import {
  addRequest,
  type BlockWeigher,
  type CachedPrefix,
  type CacheModel,
  countSharedRequestBlocks,
  EMPTY_CACHE_MODEL,
  estimatePrefixSize,
  findFirstStrippedThinking,
  findPrefixSize,
  isPrefixLive,
  isWithinReach,
  type PrefixSize,
  prefixExpiry,
  type RequestChain,
} from './cache-model.ts'
import {
  type CacheableRequest,
  hasSameCacheKey,
  type MarkedPrefix,
  type SentRequest,
  toCacheableFromSent,
  toCacheableRequest,
} from './sent-request.ts'

interface ForecastOptions {
  /** When the request starts, in milliseconds since 1970. */
  readonly now: number
  readonly profile: Pick<ProviderProfile, 'cache' | 'thinking'>
  /** For prefixes whose size usage has not shown. */
  readonly weigh?: BlockWeigher
}

/** Why it is this much and no more. `warm`: all that the request before left is read. */
export type ForecastReason =
  | 'warm'
  | 'first' // nothing was sent yet
  | 'off' // the request carries no marker
  | 'key' // model, a parameter or a property of the messages changed
  | 'rewritten' // the request no longer repeats the one before
  | 'expired'
  | 'out-of-reach' // further back than a marker looks

export interface CacheForecast {
  /** Tokens. */
  readonly read: number
  /** The figure was shown by usage, not interpolated. */
  readonly isCertain: boolean
  readonly why: ForecastReason
  readonly hit: CachedPrefix | null
  /** The basis of the forecast; learning from the response needs it. */
  readonly basis: ForecastBasis
}

interface ForecastBasis extends ForecastOptions {
  readonly request: CacheableRequest
  /** False if only some of the request's markers are known, as in a log: it may read more than the forecast says. */
  readonly knowsMarkers: boolean
  /** As it was when the forecast was made. */
  readonly model: CacheModel
  /** Prefixes that the request repeats under the same key, expired ones included. */
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: AppendList<PrefixSize>
  /** The request extends the newest chain. */
  readonly follows: boolean
}

export function forecastCacheRead(
  model: CacheModel,
  { request, ...options }: ForecastOptions & { readonly request: AssembledRequest },
): CacheForecast {
  return forecastRequest(model, toCacheableRequest(request, options.profile.cache), {
    ...options,
    knowsMarkers: true,
  })
}

/** For requests that are known only in part, as a log shows them. */
export function forecastSentRequest(
  model: CacheModel,
  sent: SentRequest,
  profile: ForecastOptions['profile'],
): CacheForecast {
  const request = toCacheableFromSent(sent, profile.cache, model.chains[0]?.blockIndex)
  return forecastRequest(model, request, { now: sent.at, profile, knowsMarkers: false })
}

type ForecastSettings = ForecastOptions & Pick<ForecastBasis, 'knowsMarkers'>

function forecastRequest(
  model: CacheModel,
  request: CacheableRequest,
  options: ForecastSettings,
): CacheForecast {
  const asked = buildForecastBasis(model, request, options)
  const hit =
    asked.prefixes.findLast(
      (prefix) => isPrefixLive(prefix, options.now) && isWithinReach(request, prefix.blocks, options.profile),
    ) ?? null
  const known = hit === null ? 0 : findPrefixSize(asked.sizes, hit.blocks)
  const isCertain = known !== null && hit?.isDoubtful !== true
  return { read: known ?? hit?.tokens ?? 0, isCertain, why: explainForecast(asked, hit), hit, basis: asked }
}

function buildForecastBasis(
  model: CacheModel,
  request: CacheableRequest,
  options: ForecastSettings,
): ForecastBasis {
  const [newest, ...older] = model.chains
  const own = newest === undefined ? null : findUsablePart(newest, request, options.profile)
  const follows = own?.isWhole === true
  const rest = follows ? [] : older.map((chain) => findUsablePart(chain, request, options.profile))
  const found = own === null ? [] : [own, ...rest]
  return {
    ...options,
    request,
    model,
    prefixes: follows ? own.prefixes : keepLongestLived(found.flatMap(({ prefixes }) => prefixes)),
    sizes: follows ? own.sizes : keepNewestSizes(found.flatMap(({ sizes }) => [...sizes])),
    follows,
  }
}

interface UsablePart extends Pick<RequestChain, 'prefixes' | 'sizes'> {
  /** The request repeats all of the chain's newest one, under the same key. */
  readonly isWhole: boolean
}

function findUsablePart(
  chain: RequestChain,
  request: CacheableRequest,
  { thinking }: ForecastOptions['profile'],
): UsablePart {
  const stripped = thinking.stripsFinishedTurns
    ? findFirstStrippedThinking(chain.blockIndex, request.blockIndex)
    : null
  const shared = Math.min(
    countSharedRequestBlocks(chain, request),
    request.front.length + (stripped ?? Number.POSITIVE_INFINITY),
  )
  const isWhole =
    shared >= chain.front.length + chain.blockIndex.end.blocks &&
    hasSameCacheKey(chain.key, request.key, 'messages')
  if (isWhole) return { prefixes: chain.prefixes, sizes: chain.sizes, isWhole }
  const isSameModel = hasSameCacheKey(chain.key, request.key, 'tools')
  return {
    prefixes: chain.prefixes.filter(
      ({ blocks, level }) => blocks <= shared && hasSameCacheKey(chain.key, request.key, level),
    ),
    sizes: isSameModel
      ? AppendList.of([...chain.sizes].filter(({ blocks }) => blocks <= shared))
      : AppendList.of(),
    isWhole,
  }
}

/** Newer chains come first, so the first size of each length stays. */
function keepNewestSizes(sizes: readonly PrefixSize[]): AppendList<PrefixSize> {
  const byLength = new Map<number, PrefixSize>()
  for (const size of sizes) if (!byLength.has(size.blocks)) byLength.set(size.blocks, size)
  return AppendList.of(byLength.values())
}

/** Shortest first. */
function keepLongestLived(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  const byLength = prefixes.toSorted(
    (one, other) => one.blocks - other.blocks || prefixExpiry(one) - prefixExpiry(other),
  )
  return byLength.filter(({ blocks }, index) => byLength[index + 1]?.blocks !== blocks)
}

function explainForecast(
  { model, request, prefixes, now }: ForecastBasis,
  hit: CachedPrefix | null,
): ForecastReason {
  if (request.markedPrefixes.length === 0) return 'off'
  const [newest] = model.chains
  const left = newest?.prefixes.at(-1)
  if (newest === undefined || left === undefined) return 'first'
  if (hit !== null && hit.blocks >= left.blocks) return 'warm'
  if (!hasSameCacheKey(newest.key, request.key, left.level)) return 'key'
  const there = prefixes.find(({ blocks }) => blocks === left.blocks)
  if (there === undefined) return 'rewritten'
  return isPrefixLive(there, now) ? 'out-of-reach' : 'expired'
}

// What usage shows of the cache: which prefixes it holds now, for how long, and how large they are.

/** Tokens of the last run of the model: what it saw is what is cached. */
interface CacheUse {
  readonly read: number
  readonly written: number
}

/**
 * The model once the response to a forecast request has begun: from then on, others can read what it wrote. `isEdited`:
 * the provider rewrote the request by itself, so older sizes of message prefixes no longer hold.
 */
export function learnFromResponse(
  model: CacheModel,
  forecast: CacheForecast,
  usage: Usage,
  isEdited = false,
): CacheModel {
  const { basis } = forecast
  const front = basis.request.front.length
  const isInFront = ({ blocks }: PrefixSize): boolean => blocks <= front
  const kept = isEdited
    ? {
        ...basis,
        prefixes: basis.prefixes.filter(isInFront),
        sizes: AppendList.of([...basis.sizes].filter(isInFront)),
      }
    : basis
  return addRequest(model, learnChain({ ...forecast, basis: kept }, toCacheUse(usage)), basis.follows)
}

/**
 * A fork reads where its parent's last marker stood, which keeps that prefix alive; if it was gone, the fork has
 * written it again. The parent's chain stays the newest, and its sizes stay as they are.
 */
export function learnFromFork(model: CacheModel, forecast: CacheForecast, usage: Usage): CacheModel {
  const [newest, ...older] = model.chains
  const { request, now } = forecast.basis
  const use = toCacheUse(usage)
  const end = request.markedPrefixes.at(-1)?.blocks
  if (newest === undefined || end === undefined || use.read + use.written === 0) return model
  const learnt = learnChain(forecast, use)
  const shared = hasSameCacheKey(newest.key, request.key, 'messages')
    ? countSharedRequestBlocks(newest, request)
    : 0
  const usedSince = newest.prefixes.filter(({ blocks, usedAt }) => blocks > shared || usedAt > now)
  const prefixes = [...learnt.prefixes.filter(({ blocks }) => blocks <= shared), ...usedSince]
  const parent = { ...newest, prefixes: keepLongestLived(prefixes) }
  if (shared >= end) return { chains: [parent, ...older] }
  return { chains: [parent, ...addRequest({ chains: older }, learnt, false).chains] }
}

function learnChain(forecast: CacheForecast, use: CacheUse): RequestChain {
  const { basis } = forecast
  const sizes = learnSizes(forecast, use)
  const kept = keepCachedPrefixes(forecast, use)
  return { ...basis.request, prefixes: refreshPrefixes({ ...basis, sizes }, kept, use), sizes }
}

function toCacheUse(usage: Usage): CacheUse {
  const { lastRead, cached } = toCacheFigures(usage)
  return { read: lastRead, written: cached - lastRead }
}

/** All up to the last marker was read or written; what was read ends where the prefix found does. */
function learnSizes(forecast: CacheForecast, { read, written }: CacheUse): AppendList<PrefixSize> {
  const { request, sizes } = forecast.basis
  const last = request.markedPrefixes.at(-1)
  if (last === undefined || read + written === 0) return sizes
  const all = withPrefixSize(sizes, { blocks: last.blocks, tokens: read + written })
  const found = read === 0 || written === 0 ? null : findReadPrefix(forecast, all, read)
  return found === null ? all : withPrefixSize(all, { blocks: found, tokens: read })
}

function withPrefixSize(sizes: AppendList<PrefixSize>, size: PrefixSize): AppendList<PrefixSize> {
  return findPrefixSize(sizes, size.blocks) === size.tokens ? sizes : sizes.push(size)
}

/** Blocks of the prefix that was read: the one forecast, or the marked one whose size comes nearest to the figure. */
function findReadPrefix(
  { basis, hit, read: expected }: CacheForecast,
  sizes: AppendList<PrefixSize>,
  read: number,
): number | null {
  if (hit !== null && isNear(read, expected, MAX_ESTIMATE_ERROR)) return hit.blocks
  const { request, weigh } = basis
  const nearest = request.markedPrefixes
    .slice(0, -1)
    .map(({ blocks }) => ({ blocks, ...estimatePrefixSize(request, sizes, blocks, weigh) }))
    .filter(({ tokens, isKnown }) => !isKnown && isNear(read, tokens, MAX_ESTIMATE_ERROR))
    .toSorted((one, other) => Math.abs(one.tokens - read) - Math.abs(other.tokens - read))[0]
  return nearest?.blocks ?? null
}

/** How far an interpolated figure may be off at worst … */
const MAX_ESTIMATE_ERROR = 0.5
/** … and usually. */
const USUAL_ESTIMATE_ERROR = 0.25

function isNear(one: number, other: number, within: number): boolean {
  return Math.abs(one - other) <= within * Math.max(one, other)
}

/** If less was read than forecast, what lies beyond it is gone, whatever the reason. */
function keepCachedPrefixes(
  { basis, isCertain, read: expected }: CacheForecast,
  { read }: CacheUse,
): readonly CachedPrefix[] {
  const live = basis.prefixes.filter((prefix) => isPrefixLive(prefix, basis.now))
  const isForeseen = read >= expected || (!isCertain && isNear(read, expected, MAX_ESTIMATE_ERROR))
  if (isForeseen) return live
  return live.filter(({ blocks, tokens }) => (findPrefixSize(basis.sizes, blocks) ?? tokens) <= read)
}

/** The prefix that was read lives on, and so does every marked one; marked ones that were missing are written. */
function refreshPrefixes(
  asked: ForecastBasis,
  kept: readonly CachedPrefix[],
  { read, written }: CacheUse,
): readonly CachedPrefix[] {
  const { request, sizes, now } = asked
  if (request.markedPrefixes.length === 0) return kept
  if (read + written === 0) return []
  const markUsed = (prefix: CachedPrefix): CachedPrefix => ({
    ...prefix,
    usedAt: Math.max(prefix.usedAt, now),
  })
  const byLength = new Map(kept.map((prefix) => [prefix.blocks, prefix]))
  const found = kept.findLast(({ blocks }) => findPrefixSize(sizes, blocks) === read)
  if (found !== undefined) byLength.set(found.blocks, markUsed({ ...found, isDoubtful: false }))
  for (const mark of request.markedPrefixes) {
    const there = byLength.get(mark.blocks) ?? createPrefix(asked, mark)
    if (there !== null) byLength.set(mark.blocks, markUsed(there))
  }
  return [...byLength.values()].sort((one, other) => one.blocks - other.blocks)
}

/** Null if it is too short to be cached. */
function createPrefix(
  { request, sizes, weigh, profile, now }: ForecastBasis,
  mark: MarkedPrefix,
): CachedPrefix | null {
  const minimum = profile.cache.minimumTokens ?? 0
  const { tokens, isKnown } = estimatePrefixSize(request, sizes, mark.blocks, weigh)
  const isDoubtful = !isKnown && isNear(tokens, minimum, USUAL_ESTIMATE_ERROR)
  return tokens < minimum && !isKnown && !isDoubtful ? null : { ...mark, tokens, isDoubtful, usedAt: now }
}

// What a reopened session knows of the cache: its newest response shows what its request left there, and when.
// Nothing older can still be alive, or be read off the log.

/** `question`: of the request that would be sent now. */
export function restoreCacheModel(question: AssembleRequestInput, view: ContextView): CacheModel {
  const newest = findNewestMeasuredResponse(view)
  const index = newest === null ? null : findMessageIndex(question.flat, newest.record.uuid)
  const usage = newest?.record.message.usage
  if (newest === null || index === null || usage === undefined) return EMPTY_CACHE_MODEL
  const request = assembleRequest({ ...question, flat: takeFirstMessages(question.flat, index) })
  const asked = { request, now: Date.parse(newest.sentAt), profile: question.profile }
  return Number.isNaN(asked.now)
    ? EMPTY_CACHE_MODEL
    : learnFromResponse(EMPTY_CACHE_MODEL, forecastCacheRead(EMPTY_CACHE_MODEL, asked), usage)
}

interface MeasuredResponse {
  readonly record: AssistantRecord
  /** Time of the newest record before the response: not after the request began, so no lifetime is overrated. */
  readonly sentAt: string
}

/** The newest record of the newest response that measured the present context: its figures are final. */
function findNewestMeasuredResponse(view: ContextView): MeasuredResponse | null {
  const anchor = findMeasuredResponse(view)
  if (anchor === null) return null
  const { entries } = view
  for (let place = entries.length - 1; place >= anchor.firstEntry; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type !== 'assistant' || record.message.id !== anchor.response) continue
    if (countContextTokens(record.message.usage) > 0)
      return { record, sentAt: findTimeBefore(entries, anchor.firstEntry) }
  }
  return null
}

/** Timestamp of the newest record before a place. */
function findTimeBefore(entries: ContextView['entries'], place: number): string {
  for (let at = place - 1; at >= 0; at -= 1) {
    const record = entries.at(at)?.record
    if (record !== undefined && record.type !== 'progress') return record.timestamp
  }
  return ''
}
