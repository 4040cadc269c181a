/**
 * Predicts how many tokens of an API request the provider will read from its cache. After the response, updates the
 * cache model (what the provider has cached) from the reported usage.
 */

import type { ContextView } from '../context/context-view.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { AssistantRecord } from '../log/record.ts'
import type { TokenUsage } from '../log/reply-report.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { PrefixPart } from '../policy/provider-spelling.ts'
import { findMessageIndexOfRecord } from '../request/block-index.ts'
import {
  type AssembledRequest,
  type AssembleRequestInput,
  assembleRequest,
} from '../request/build-request.ts'
import { takeFirstMessages } from '../request/cache-markers.ts'
import { findMeasuredResponse } from '../tokens/context-meter.ts'
import { readReportedContextTokens } from '../tokens/usage.ts'
import { toCacheTokenCounts } from './cache-break-types.ts'
import {
  addRequestChain,
  type CachedPrefix,
  type CacheModel,
  canReachPrefix,
  computePrefixExpiry,
  countBlocksBeforeStrippedThinking,
  countSharedRequestBlocks,
  EMPTY_CACHE_MODEL,
  estimatePrefixSize,
  findImplicitPrefix,
  findPrefixSize,
  hasCachedPrefix,
  isPrefixLive,
  type PrefixSize,
  type RequestChain,
} from './cache-model.ts'
import {
  type CacheableRequest,
  type CacheKey,
  type MarkedPrefix,
  type SentRequest,
  toCacheableRequest,
  toCacheableSentRequest,
} from './sent-request.ts'

interface ForecastOptions {
  /** When the API request starts, in milliseconds since 1970. */
  readonly now: number
  readonly profile: Pick<ProviderProfile, 'cache' | 'thinking' | 'spelling'>
}

/** Why the forecast expects this cache read. `warm`: everything that the previous API request cached is read. */
type ForecastReason =
  | 'warm'
  | 'first' // no API request was sent yet
  | 'off' // the API request has no cache marker
  | 'key' // the model, a parameter or a property of the messages changed
  | 'rewritten' // the API request no longer repeats the previous one
  | 'expired' // whatever else changed
  | 'out-of-reach' // the cached prefix ends further back than any cache marker looks

/** How much of a request will be read from the cache, and why not more. */
export interface CacheForecast {
  /** Tokens that are expected to be read from the cache. */
  readonly read: number
  /** True if an earlier response reported the size of the cached prefix; false if `read` is an estimate. */
  readonly isCertain: boolean
  readonly why: ForecastReason
  readonly hit: CachedPrefix | null
  /** The inputs of the forecast, from which the cache model is updated once the response is known. */
  readonly basis: ForecastBasis
}

interface ForecastBasis extends ForecastOptions {
  readonly request: CacheableRequest
  /** False if the log does not show all cache markers of the API request. More may then be read than forecast. */
  readonly knowsMarkers: boolean
  /** The cache model as it was when the forecast was made. */
  readonly model: CacheModel
  /** Cached prefixes that the API request repeats under the same cache key, including expired ones. */
  readonly prefixes: readonly CachedPrefix[]
  readonly sizes: AppendList<PrefixSize>
  /** True if the API request only adds to the newest API request in the cache model. */
  readonly follows: boolean
}

/** Forecasts the cache read of a request that is about to be sent. The model stays unchanged until the response is known. */
export function forecastCacheRead(
  model: CacheModel,
  { request, ...options }: ForecastOptions & { readonly request: AssembledRequest },
): CacheForecast {
  return forecastRequest(model, toCacheableRequest(request, options.profile), {
    ...options,
    knowsMarkers: true,
  })
}

/** Forecasts the cache read of an API request restored from a log, whose cache markers are not all known. */
export function forecastLoggedCacheRead(
  model: CacheModel,
  sent: SentRequest,
  profile: ForecastOptions['profile'],
): CacheForecast {
  const request = toCacheableSentRequest(sent, profile, model.chains[0]?.blockIndex)
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
      (prefix) =>
        isPrefixLive(prefix, options.now) && canReachPrefix(request, prefix.blocks, options.profile),
    ) ?? null
  const known = hit === null ? 0 : findPrefixSize(asked.sizes, hit.blocks)
  const isCertain = known !== null && hit?.isDoubtful !== true
  const tokens = known ?? hit?.tokens ?? 0
  const read = tokens - (tokens % options.profile.cache.stepTokens)
  return { read, isCertain, why: explainForecast(asked, hit), hit, basis: asked }
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

/** The cached prefixes and sizes of a chain that a request can still use. */
interface UsablePart extends Pick<RequestChain, 'prefixes' | 'sizes'> {
  /** True if the API request begins with all blocks of the chain's newest request and has the same cache key. */
  readonly isWhole: boolean
}

function findUsablePart(
  chain: RequestChain,
  request: CacheableRequest,
  { thinking, cache }: ForecastOptions['profile'],
): UsablePart {
  const stripped = thinking.stripsFinishedTurns
    ? countBlocksBeforeStrippedThinking(chain.blockIndex, request.blockIndex)
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
  const ending = chain.prefixes.filter(({ blocks }) => blocks <= shared)
  const common = cache.kind === 'prefix' ? findImplicitPrefix(chain, shared, cache) : null
  return {
    prefixes: [...ending, ...(common === null ? [] : [common])].filter(({ level }) =>
      hasSameCacheKey(chain.key, request.key, level),
    ),
    sizes: isSameModel
      ? AppendList.of([...chain.sizes].filter(({ blocks }) => blocks <= shared))
      : AppendList.of(),
    isWhole,
  }
}

/** Removes all but the first size for each prefix length. The list must start with the newest sizes. */
function keepNewestSizes(sizes: readonly PrefixSize[]): AppendList<PrefixSize> {
  const byLength = new Map<number, PrefixSize>()
  for (const size of sizes) if (!byLength.has(size.blocks)) byLength.set(size.blocks, size)
  return AppendList.of(byLength.values())
}

/** Keeps one cached prefix per length, the one that expires last. Returns the shortest prefix first. */
function keepLongestLived(prefixes: readonly CachedPrefix[]): readonly CachedPrefix[] {
  const byLength = prefixes.toSorted(
    (one, other) => one.blocks - other.blocks || computePrefixExpiry(one) - computePrefixExpiry(other),
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
  const there = prefixes.find(({ blocks }) => blocks === left.blocks)
  if (!isPrefixLive(there ?? left, now)) return 'expired'
  if (!hasSameCacheKey(newest.key, request.key, left.level)) return 'key'
  return there === undefined ? 'rewritten' : 'out-of-reach'
}

const LEVEL_ORDER: readonly PrefixPart[] = ['tools', 'system', 'messages']

/**
 * Checks whether two API requests have the same cache key up to `level` (tools, system or messages), so that a prefix
 * ending there can be shared.
 */
function hasSameCacheKey(one: CacheKey, other: CacheKey, level: PrefixPart): boolean {
  const levels = LEVEL_ORDER.slice(0, LEVEL_ORDER.indexOf(level) + 1)
  return levels.every((each) => one[each] === other[each])
}

// The following functions update the cache model from usage: which prefixes are cached, their sizes and lifetimes.

/** Tokens that a response read from the cache and wrote to the cache, from the last run of the call. */
interface CacheUse {
  readonly read: number
  readonly written: number
}

/**
 * Returns the cache model after a response. `isEdited`: the provider edited the messages before processing them, so
 * message prefixes in the forecast are no longer valid and are dropped.
 */
export function updateCacheModelFromResponse(
  model: CacheModel,
  forecast: CacheForecast,
  usage: TokenUsage,
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
  return addRequestChain(
    model,
    learnChain({ ...forecast, basis: kept }, toCacheUse(usage, forecast)),
    basis.follows,
  )
}

/**
 * Returns the cache model after a fork call. A fork reads the parent's last cached prefix, or writes the prefix again
 * if it was lost. The parent's requests stay the newest in the model, also one that was answered while the fork ran.
 */
export function updateCacheModelFromFork(
  model: CacheModel,
  forecast: CacheForecast,
  usage: TokenUsage,
): CacheModel {
  const [newest, ...older] = model.chains
  const { request, model: known } = forecast.basis
  const use = toCacheUse(usage, forecast)
  const end = request.markedPrefixes.at(-1)?.blocks
  if (newest === undefined || end === undefined || use.read + use.written === 0) return model
  const learnt = learnChain(forecast, use)
  const shared = hasSameCacheKey(newest.key, request.key, 'messages')
    ? countSharedRequestBlocks(newest, request)
    : 0
  const usedSince = newest.prefixes.filter(
    (prefix) => prefix.blocks > shared || !hasCachedPrefix(known, prefix),
  )
  const prefixes = [...learnt.prefixes.filter(({ blocks }) => blocks <= shared), ...usedSince]
  const others = shared >= end ? older : addRequestChain({ chains: older }, learnt, false).chains
  return { chains: [{ ...newest, prefixes: keepLongestLived(prefixes) }, ...others] }
}

function learnChain(forecast: CacheForecast, use: CacheUse): RequestChain {
  const { basis } = forecast
  const sizes = learnSizes(forecast, use)
  const kept = keepCachedPrefixes(forecast, use)
  return { ...basis.request, prefixes: refreshPrefixes({ ...basis, sizes }, kept, use), sizes }
}

/** A provider that caches any prefix by itself reports no writes: all other tokens of the prompt are cached now. */
function toCacheUse(usage: TokenUsage, { basis }: CacheForecast): CacheUse {
  const { lastRead, cached } = toCacheTokenCounts(usage)
  const end = basis.profile.cache.kind === 'prefix' ? readReportedContextTokens(usage) : cached
  return { read: lastRead, written: Math.max(0, end - lastRead) }
}

/** Adds the sizes that usage shows: of the prefix that was read, and of the prefix up to the last cache marker. */
function learnSizes(forecast: CacheForecast, { read, written }: CacheUse): AppendList<PrefixSize> {
  const { request, sizes } = forecast.basis
  const last = request.markedPrefixes.at(-1)
  if (last === undefined || read + written === 0) return sizes
  const all = withPrefixSize(sizes, { blocks: last.blocks, tokens: read + written })
  // If the provider reads its cache in steps of several tokens, the read does not show the exact size of a prefix.
  const isExact = forecast.basis.profile.cache.stepTokens === 1
  const found = read === 0 || written === 0 || !isExact ? null : findReadPrefix(forecast, all, read)
  return found === null ? all : withPrefixSize(all, { blocks: found, tokens: read })
}

function withPrefixSize(sizes: AppendList<PrefixSize>, size: PrefixSize): AppendList<PrefixSize> {
  return findPrefixSize(sizes, size.blocks) === size.tokens ? sizes : sizes.push(size)
}

/** Returns the block count of the prefix whose size is closest to the tokens read; null if none is close. */
function findReadPrefix(
  { basis, hit, read: expected }: CacheForecast,
  sizes: AppendList<PrefixSize>,
  read: number,
): number | null {
  if (hit !== null && isNear(read, expected, MAX_ESTIMATE_ERROR)) return hit.blocks
  const { request } = basis
  const nearest = request.markedPrefixes
    .slice(0, -1)
    .map(({ blocks }) => ({ blocks, ...estimatePrefixSize(request, sizes, blocks) }))
    .filter(({ tokens, isKnown }) => !isKnown && isNear(read, tokens, MAX_ESTIMATE_ERROR))
    .toSorted((one, other) => Math.abs(one.tokens - read) - Math.abs(other.tokens - read))[0]
  return nearest?.blocks ?? null
}

/** Largest relative error of an estimated prefix size: 0.5 means 50% off. */
const MAX_ESTIMATE_ERROR = 0.5
/** Usual relative error of an estimated prefix size. */
const USUAL_ESTIMATE_ERROR = 0.25

function isNear(one: number, other: number, within: number): boolean {
  return Math.abs(one - other) <= within * Math.max(one, other)
}

/** Returns the prefixes still cached. If less was read than forecast, prefixes longer than the read count as lost. */
function keepCachedPrefixes(
  { basis, isCertain, read: expected }: CacheForecast,
  { read }: CacheUse,
): readonly CachedPrefix[] {
  const live = basis.prefixes.filter((prefix) => isPrefixLive(prefix, basis.now))
  const { cache } = basis.profile
  const isForeseen =
    read > expected - cache.stepTokens || (!isCertain && isNear(read, expected, MAX_ESTIMATE_ERROR))
  if (isForeseen) return live
  return live.filter(({ blocks, tokens }) => {
    const size = findPrefixSize(basis.sizes, blocks) ?? tokens
    return size - (size % cache.stepTokens) <= read
  })
}

/** Restarts the lifetime of the prefix that was read and of all prefixes at a marker, and adds new ones. */
function refreshPrefixes(
  asked: ForecastBasis,
  kept: readonly CachedPrefix[],
  { read, written }: CacheUse,
): readonly CachedPrefix[] {
  const { request, sizes, now, profile } = asked
  if (request.markedPrefixes.length === 0) return kept
  if (read + written === 0) return []
  const refreshed = [...kept]
  const refresh = (prefix: CachedPrefix): void => {
    const at = refreshed.findLastIndex(({ blocks }) => blocks === prefix.blocks)
    const used = { ...prefix, usedAt: Math.max(prefix.usedAt, now) }
    refreshed[at === -1 ? refreshed.length : at] = used
  }
  const found = kept.findLast(({ blocks }) => {
    const size = findPrefixSize(sizes, blocks)
    return size !== null && size - (size % profile.cache.stepTokens) === read
  })
  if (found !== undefined) refresh({ ...found, isDoubtful: false })
  for (const mark of request.markedPrefixes) {
    const there = refreshed.findLast(({ blocks }) => blocks === mark.blocks) ?? createPrefix(asked, mark)
    if (there !== null) refresh(there)
  }
  return refreshed.sort((one, other) => one.blocks - other.blocks)
}

/** Creates a cached prefix. Returns null if its estimated size is clearly below the provider's minimum for caching. */
function createPrefix(
  { request, sizes, profile, now }: ForecastBasis,
  mark: MarkedPrefix,
): CachedPrefix | null {
  const minimum = profile.cache.minimumTokens ?? 0
  const { tokens, isKnown } = estimatePrefixSize(request, sizes, mark.blocks)
  const isDoubtful = !isKnown && isNear(tokens, minimum, USUAL_ESTIMATE_ERROR)
  return tokens < minimum && !isKnown && !isDoubtful ? null : { ...mark, tokens, isDoubtful, usedAt: now }
}

// A reopened session restores its cache model from its newest response. Prefixes that only older API requests cached
// are not restored, because the log does not show them.

/** Restores the cache model from the log. `question`: input for assembling the API request as of now. */
export function restoreCacheModel(question: AssembleRequestInput, view: ContextView): CacheModel {
  const newest = findNewestMeasuredResponse(view)
  const index = newest === null ? null : findMessageIndexOfRecord(question.flat, newest.record.uuid)
  const usage = newest?.record.usage
  if (newest === null || index === null || usage === undefined) return EMPTY_CACHE_MODEL
  const request = assembleRequest({ ...question, flat: takeFirstMessages(question.flat, index) })
  const asked = { request, now: Date.parse(newest.sentAt), profile: question.profile }
  return Number.isNaN(asked.now)
    ? EMPTY_CACHE_MODEL
    : updateCacheModelFromResponse(EMPTY_CACHE_MODEL, forecastCacheRead(EMPTY_CACHE_MODEL, asked), usage)
}

interface MeasuredResponse {
  readonly record: AssistantRecord
  /** Time of the newest record before the response, used as the send time. It is never later than the real one. */
  readonly sentAt: string
}

/** Finds the newest response with valid usage. Of its records, returns the last, whose usage is final. */
function findNewestMeasuredResponse(view: ContextView): MeasuredResponse | null {
  const anchor = findMeasuredResponse(view)
  if (anchor === null) return null
  const { entries } = view
  for (let place = entries.length - 1; place >= anchor.firstEntry; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type !== 'assistant' || record.message.id !== anchor.response) continue
    if (readReportedContextTokens(record.usage) > 0)
      return { record, sentAt: findTimeBefore(entries, anchor.firstEntry) }
  }
  return null
}

/** Returns the timestamp of the newest record before the entry at index `place`; empty if there is none. */
function findTimeBefore(entries: ContextView['entries'], place: number): string {
  for (let at = place - 1; at >= 0; at -= 1) {
    const record = entries.at(at)?.record
    if (record !== undefined && record.type !== 'progress') return record.timestamp
  }
  return ''
}
