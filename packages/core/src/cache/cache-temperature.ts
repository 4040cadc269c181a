/** The state of the prompt cache as clearing and planning need it: read off what is known of the requests so far. */
import { List } from '../log/append-list.ts'
import type { ClearPolicy } from '../policy/policy.ts'
import type { Profile } from '../policy/provider-profile.ts'
import { countBefore, frontBlocks } from '../request/block-index.ts'
import { type AssembledRequest, type Mark, marksOf, positionAt } from '../request/build-request.ts'
import { type CallPlaces, type MarkerKind, placeOfResult } from '../request/cache-markers.ts'
import { lifetimes } from '../request/cache-ttl.ts'
import { type CachedPrefix, cacheExpiry, type KnownSize, knownSize, type Lineage } from './cache-model.ts'

export interface TemperatureQuestion {
  readonly lineage: Lineage
  /** The request that went out last; null before the first one. */
  readonly sent: AssembledRequest | null
  /** The messages as they would be sent now. */
  readonly flat: CallPlaces
  readonly profile: Profile
  readonly policy: ClearPolicy
  /** The lifetime in force; null: caching is off. */
  readonly ttl: string | null
  /** Milliseconds since 1970. */
  readonly now: number
  /** Tokens of the next request. */
  readonly contextTokens: number
  /** Calls expected before the cache goes cold, where the host knows better. */
  readonly expectedCalls?: number
}

export function cacheTemperature(question: TemperatureQuestion): CacheTemperature {
  const { lineage, profile, ttl, now } = question
  const expiresAt = ttl === null ? null : cacheExpiry(lineage)
  const seconds =
    profile.cache.ttls.find(({ name }) => name === ttl)?.seconds ?? lifetimes(profile.cache).short.seconds
  return {
    isWarm: expiresAt !== null && now < expiresAt,
    expiresAt,
    ttlMs: seconds * 1000,
    expectedCalls: question.expectedCalls ?? expectedCalls(question, seconds),
    tokensBehind: (change) => tokensBehind(question, change),
  }
}

/** By the lifetime: the policy's word, unless the host knows better. */
function expectedCalls({ policy, profile }: TemperatureQuestion, seconds: number): number {
  const { short } = lifetimes(profile.cache)
  return seconds > short.seconds ? policy.expectedCallsOneHour : policy.expectedCallsFiveMinutes
}

/**
 * All that is kept where no prefix of it can be found again: entries exist only where a marker stood. What has come
 * since the last request is written for the first time either way, and is no part of the price.
 */
function tokensBehind(question: TemperatureQuestion, change: FirstChange): number {
  const { contextTokens, sent } = question
  const before = sent === null ? null : blocksBefore(question, sent, change)
  if (sent === null || before === null) return contextTokens
  const found = reachable(question, sent, before)
  return Math.max(0, keptTokens(question) - (found === null ? 0 : tokensOf(question, found)))
}

function keptTokens(question: TemperatureQuestion): number {
  const newest = question.lineage.strands[0]?.prefixes.at(-1)
  return newest === undefined
    ? question.contextTokens
    : Math.min(question.contextTokens, tokensOf(question, newest))
}

/** As usage told them, where it has. */
function tokensOf({ lineage }: TemperatureQuestion, { blocks, tokens }: CachedPrefix): number {
  return knownSize(lineage.strands[0]?.sizes ?? NO_SIZES, blocks) ?? tokens
}

const NO_SIZES: List<KnownSize> = List.of()

/** Blocks of the request in front of what changes; null where it has not been sent. */
function blocksBefore(
  { flat }: TemperatureQuestion,
  { front, counted }: AssembledRequest,
  { toolUseId, part }: FirstChange,
): number | null {
  const place = placeOfResult(flat, toolUseId)
  const index = part === 'call' ? (flat.calls.get(toolUseId) ?? null) : (place?.index ?? null)
  if (index === null) return null
  const inside = part === 'call' ? 0 : (place?.block ?? 0)
  return frontBlocks(front).length + countBefore(counted, index).blocks + inside
}

/** These move on with every request: what they could still reach is not to be counted on. */
const MOVING: ReadonlySet<MarkerKind> = new Set<MarkerKind>(['tail', 'lagging'])

/** The newest live prefix in front of the change that lies within reach of a marker that stays where it is. */
function reachable(
  { lineage, profile, now }: TemperatureQuestion,
  sent: AssembledRequest,
  before: number,
): CachedPrefix | null {
  const prefixes = lineage.strands[0]?.prefixes ?? []
  const live = prefixes.filter(({ blocks, expiresAt }) => blocks <= before && now < expiresAt)
  const marks = marksOf(
    { ...sent, markers: sent.markers.filter(({ kind }) => !MOVING.has(kind)) },
    profile.cache,
  )
  const position = (blocks: number): number => positionAt(sent, blocks, profile.thinking.stripsFinishedTurns)
  const reaches = (mark: Mark, prefix: CachedPrefix): boolean =>
    mark.blocks >= prefix.blocks && position(mark.blocks) - position(prefix.blocks) < profile.cache.lookBack
  return live.findLast((prefix) => marks.some((mark) => reaches(mark, prefix))) ?? null
}

// What clearing has to know of the prompt cache, as plain data: those who keep the books of it come later.

/** The first thing of a request that would no longer say what it said. */
export interface FirstChange {
  readonly toolUseId: string
  readonly part: 'call' | 'result'
}

export interface CacheTemperature {
  /** The prefix of the last request is still kept. */
  readonly isWarm: boolean
  /** When it lapses unless it is read again, in milliseconds since 1970; null where nothing is known to be kept. */
  readonly expiresAt: number | null
  /** The lifetime in force. */
  readonly ttlMs: number
  /** Calls to come before it goes cold anyway. */
  readonly expectedCalls: number
  /**
   * Tokens that are kept now, from the newest prefix on that a marker of the request can still reach when it is
   * changed there: what would be written again, the cleared text included. What was never sent is not among them.
   */
  readonly tokensBehind: (change: FirstChange) => number
}

/** Nothing is kept, so that nothing can be lost. */
export const COLD: CacheTemperature = {
  isWarm: false,
  expiresAt: null,
  ttlMs: 0,
  expectedCalls: 0,
  tokensBehind: () => 0,
}

// How many calls come before the cache goes cold: the policy's word at first, then more and more the session's own.

export interface CallRuns {
  readonly calls: number
  /** Gaps that outlasted the cache. */
  readonly lapses: number
}

export const NO_RUNS: CallRuns = { calls: 0, lapses: 0 }

/** `gapMs`: since the call before; null for the first. */
export function tallyCall({ calls, lapses }: CallRuns, gapMs: number | null, ttlMs: number): CallRuns {
  return { calls: calls + 1, lapses: lapses + (gapMs !== null && gapMs >= ttlMs ? 1 : 0) }
}

/** The policy's figure counts as one run of that length, and every run seen as one more. */
export function callsToCome({ calls, lapses }: CallRuns, byPolicy: number): number {
  return (byPolicy + calls) / (1 + lapses)
}
