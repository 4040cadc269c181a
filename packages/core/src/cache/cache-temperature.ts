/**
 * Tells whether the prompt cache is still warm (not expired) and how many cached tokens a rewrite of the conversation
 * would lose. Clearing and the planner use it.
 */

import { isKnownRecord, type SessionRecord, SYNTHETIC_MODEL } from '../log/record.ts'
import type { SessionLog } from '../log/session-log.ts'
import type { ClearPolicy } from '../policy/clear-policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { readTotalsBeforeMessage } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { findResultPlace, type MessagesWithCalls, MOVING_MARKERS } from '../request/cache-markers.ts'
import { findCacheLifetimes } from '../request/cache-ttl.ts'
import {
  type CachedPrefix,
  type CacheModel,
  cacheExpiry,
  canReachPrefix,
  findPrefixSize,
  isPrefixLive,
} from './cache-model.ts'
import { toCacheableRequest } from './sent-request.ts'

interface CacheTemperatureInput {
  readonly cacheModel: CacheModel
  /** The last API request that was sent; null before the first one. */
  readonly sent: AssembledRequest | null
  /** The messages that would be sent now. */
  readonly flat: MessagesWithCalls
  readonly profile: ProviderProfile
  readonly policy: ClearPolicy
  /** Name of the cache lifetime in force, such as `5m`; null if caching is off. */
  readonly ttl: string | null
  /** The current time, in milliseconds since 1970. */
  readonly now: number
  /** Tokens of the next API request. */
  readonly contextTokens: number
}

export function measureCacheTemperature(question: CacheTemperatureInput): CacheTemperature {
  const { cacheModel, profile, ttl, now } = question
  const expiresAt = ttl === null ? null : cacheExpiry(cacheModel)
  const seconds =
    profile.cache.ttls.find(({ name }) => name === ttl)?.seconds ??
    findCacheLifetimes(profile.cache).short.seconds
  return {
    isWarm: expiresAt !== null && now < expiresAt,
    expiresAt,
    ttlMs: seconds * 1000,
    expectedCalls: findExpectedCalls(question, seconds),
    tokensBehind: (change) => countTokensBehind(question, change),
  }
}

/** Returns true if something was cached and has expired, so that the next request writes it again. */
export function hasExpired({ expiresAt, isWarm }: CacheTemperature): boolean {
  return expiresAt !== null && !isWarm
}

function findExpectedCalls({ policy, profile }: CacheTemperatureInput, seconds: number): number {
  const { short } = findCacheLifetimes(profile.cache)
  return seconds > short.seconds ? policy.expectedCallsOneHour : policy.expectedCallsFiveMinutes
}

/**
 * Counts the cached tokens that must be written again if the given part of the messages changes. Content added since
 * the last API request is not counted, because it must be written in any case.
 */
function countTokensBehind(question: CacheTemperatureInput, change: FirstRewrittenPart): number {
  const { contextTokens, sent, cacheModel } = question
  const [chain] = cacheModel.chains
  const found = sent === null ? null : findReadablePrefix(question, sent, change)
  if (found === null) return contextTokens
  const countTokensIn = (prefix: CachedPrefix | undefined): number | null =>
    chain === undefined || prefix === undefined
      ? null
      : (findPrefixSize(chain.sizes, prefix.blocks) ?? prefix.tokens)
  const kept = Math.min(contextTokens, countTokensIn(chain?.prefixes.at(-1)) ?? contextTokens)
  return Math.max(0, kept - (countTokensIn(found.prefix) ?? 0))
}

/**
 * Finds the longest unexpired cached prefix that ends before the changed part and that a marker with a fixed position
 * can find: one that only a moving marker can find is not counted as kept. Returns null if the messages do not contain
 * the changed part.
 */
function findReadablePrefix(
  { cacheModel, flat, profile, now }: CacheTemperatureInput,
  sent: AssembledRequest,
  { toolUseId, part }: FirstRewrittenPart,
): { readonly prefix: CachedPrefix | undefined } | null {
  const place = findResultPlace(flat, toolUseId)
  const index = part === 'call' ? flat.calls.get(toolUseId) : place?.index
  if (index === undefined) return null
  const staying = sent.markers.filter(({ kind }) => !MOVING_MARKERS.has(kind))
  const request = toCacheableRequest({ ...sent, markers: staying }, profile.cache)
  const inside = part === 'call' ? 0 : (place?.block ?? 0)
  const before = request.front.length + readTotalsBeforeMessage(sent.blockIndex, index).blocks + inside
  const prefix = cacheModel.chains[0]?.prefixes.findLast(
    (each) =>
      each.blocks <= before && isPrefixLive(each, now) && canReachPrefix(request, each.blocks, profile),
  )
  return { prefix }
}

/** The first tool call or tool result that a rewrite would change. */
export interface FirstRewrittenPart {
  readonly toolUseId: string
  readonly part: 'call' | 'result'
}

export interface CacheTemperature {
  /** True if the prefix of the last API request has not expired from the cache. */
  readonly isWarm: boolean
  /**
   * When the cached prefix expires unless it is read again, in milliseconds since 1970; null if nothing is known to be
   * cached.
   */
  readonly expiresAt: number | null
  /** The cache lifetime in force, in milliseconds. */
  readonly ttlMs: number
  /** Number of model calls expected before the cache expires. */
  readonly expectedCalls: number
  /**
   * Returns how many cached tokens must be written again if the given tool call or result changes. These are all cached
   * tokens after the longest prefix that can still be read, including the text that is being cleared.
   */
  readonly tokensBehind: (change: FirstRewrittenPart) => number
}

// The number of calls before the cache expires starts as the policy's number and approaches the session's own
// average.

export interface CacheLapseCounts {
  readonly calls: number
  /** Number of pauses between model calls that were longer than the cache lifetime. */
  readonly lapses: number
}

export const NO_CACHE_LAPSES: CacheLapseCounts = { calls: 0, lapses: 0 }

/** Counts one more model call. `gapMs`: time since the previous call; null for the first one. */
export function countCallGap(
  { calls, lapses }: CacheLapseCounts,
  gapMs: number | null,
  ttlMs: number,
): CacheLapseCounts {
  return { calls: calls + 1, lapses: lapses + (gapMs !== null && gapMs >= ttlMs ? 1 : 0) }
}

/**
 * Estimates how many calls are made before the cache expires. Returns the average number of calls between expiries in
 * this session, with the policy's number counted as one more observation.
 */
export function estimateRemainingCalls({ calls, lapses }: CacheLapseCounts, byPolicy: number): number {
  return (byPolicy + calls) / (1 + lapses)
}

/** Number of model calls in a log, and of pauses between them that were longer than the cache lifetime. */
export interface CallTally {
  /** Cache entry lifetime in milliseconds. After a longer pause between calls the cache has expired. */
  readonly ttlMs: number
  /** The log records counted so far; null before the first count. */
  readonly records: SessionLog['records'] | null
  readonly runs: CacheLapseCounts
  readonly response: string | null
  /** Time of the newest response in milliseconds since 1970; null before the first. */
  readonly at: number | null
}

export const EMPTY_CALL_TALLY: CallTally = {
  ttlMs: 0,
  records: null,
  runs: NO_CACHE_LAPSES,
  response: null,
  at: null,
}

/** Counts the responses appended since the last update. Counts all responses again if the cache lifetime changed. */
export function updateCallTally(tally: CallTally, { records }: SessionLog, ttlMs: number): CallTally {
  const follows = tally.records !== null && tally.ttlMs === ttlMs && records.extends(tally.records)
  let next = follows ? tally : { ...EMPTY_CALL_TALLY, ttlMs }
  for (const record of records.toArray(next.records?.length ?? 0)) next = countResponse(next, record)
  return { ...next, records }
}

function countResponse(tally: CallTally, record: SessionRecord): CallTally {
  if (!isKnownRecord(record) || record.type !== 'assistant' || record.isSidechain === true) return tally
  const { id, model } = record.message
  const at = Date.parse(record.timestamp)
  if (id === tally.response || model === SYNTHETIC_MODEL || Number.isNaN(at)) return tally
  const gap = tally.at === null ? null : at - tally.at
  return { ...tally, runs: countCallGap(tally.runs, gap, tally.ttlMs), response: id, at }
}
