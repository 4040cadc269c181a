/** Whether the prompt cache is warm, and what a rewrite would cost: what clearing and planning need of the model. */

import type { ClearPolicy } from '../policy/policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import { totalsBeforeMessage } from '../request/block-index.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { findResultPlace, type MarkerKind, type MessagesWithCalls } from '../request/cache-markers.ts'
import { cacheLifetimes } from '../request/cache-ttl.ts'
import {
  type CachedPrefix,
  type CacheModel,
  cacheExpiry,
  findPrefixSize,
  isPrefixLive,
  isWithinReach,
} from './cache-model.ts'
import { toCacheableRequest } from './sent-request.ts'

export interface CacheTemperatureInput {
  readonly cacheModel: CacheModel
  /** The request that went out last; null before the first one. */
  readonly sent: AssembledRequest | null
  /** The messages as they would be sent now. */
  readonly flat: MessagesWithCalls
  readonly profile: ProviderProfile
  readonly policy: ClearPolicy
  /** The lifetime in force; null: caching is off. */
  readonly ttl: string | null
  /** Milliseconds since 1970. */
  readonly now: number
  /** Tokens of the next request. */
  readonly contextTokens: number
  /** Calls expected before the cache goes cold, if the host knows better than policy. */
  readonly expectedCalls?: number
}

export function measureCacheTemperature(question: CacheTemperatureInput): CacheTemperature {
  const { cacheModel, profile, ttl, now } = question
  const expiresAt = ttl === null ? null : cacheExpiry(cacheModel)
  const seconds =
    profile.cache.ttls.find(({ name }) => name === ttl)?.seconds ??
    cacheLifetimes(profile.cache).short.seconds
  return {
    isWarm: expiresAt !== null && now < expiresAt,
    expiresAt,
    ttlMs: seconds * 1000,
    expectedCalls: question.expectedCalls ?? findExpectedCalls(question, seconds),
    tokensBehind: (change) => countTokensBehind(question, change),
  }
}

function findExpectedCalls({ policy, profile }: CacheTemperatureInput, seconds: number): number {
  const { short } = cacheLifetimes(profile.cache)
  return seconds > short.seconds ? policy.expectedCallsOneHour : policy.expectedCallsFiveMinutes
}

/** What was added since the last request is written for the first time either way, and is not part of the price. */
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

/** These markers move with every request: what they could still reach is not counted on. */
const MOVING_MARKERS: ReadonlySet<MarkerKind> = new Set<MarkerKind>(['last-message', 'previous-last-message'])

/**
 * The longest live prefix before the change that a marker which stays in place can reach: prefixes end only where a
 * marker stood. Null if what changes has not been sent.
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
  const before = request.front.length + totalsBeforeMessage(sent.blockIndex, index).blocks + inside
  const prefix = cacheModel.chains[0]?.prefixes.findLast(
    (each) =>
      each.blocks <= before && isPrefixLive(each, now) && isWithinReach(request, each.blocks, profile),
  )
  return { prefix }
}

/** The first tool call or result that a rewrite would change. */
export interface FirstRewrittenPart {
  readonly toolUseId: string
  readonly part: 'call' | 'result'
}

export interface CacheTemperature {
  /** The prefix of the last request is still cached. */
  readonly isWarm: boolean
  /** When it expires unless it is read again, in milliseconds since 1970; null if nothing is known to be cached. */
  readonly expiresAt: number | null
  /** The lifetime in force. */
  readonly ttlMs: number
  /** Calls expected before it goes cold anyway. */
  readonly expectedCalls: number
  /**
   * Cached tokens that would be written again after a change there, the cleared text included: all behind the longest
   * prefix that a marker can still reach. What was never sent is not counted.
   */
  readonly tokensBehind: (change: FirstRewrittenPart) => number
}

/** Nothing is cached, so nothing can be lost. */
export const COLD_CACHE: CacheTemperature = {
  isWarm: false,
  expiresAt: null,
  ttlMs: 0,
  expectedCalls: 0,
  tokensBehind: () => 0,
}

// Calls before the cache goes cold: the policy's figure at first, then more and more the session's own.

export interface CallRuns {
  readonly calls: number
  /** Gaps longer than the cache lived. */
  readonly lapses: number
}

export const NO_CALL_RUNS: CallRuns = { calls: 0, lapses: 0 }

/** `gapMs`: since the previous call; null for the first. */
export function addCall({ calls, lapses }: CallRuns, gapMs: number | null, ttlMs: number): CallRuns {
  return { calls: calls + 1, lapses: lapses + (gapMs !== null && gapMs >= ttlMs ? 1 : 0) }
}

/** The policy's figure counts as one run of that length, every observed run as one more. */
export function estimateRemainingCalls({ calls, lapses }: CallRuns, byPolicy: number): number {
  return (byPolicy + calls) / (1 + lapses)
}
