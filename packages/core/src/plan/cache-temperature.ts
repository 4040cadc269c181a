/** The state of the prompt cache as clearing and planning need it: read off what is known of the requests so far. */
import type { CacheTemperature, FirstChange } from '../clear/temperature.ts'
import { List } from '../conversation/list.ts'
import type { ClearPolicy } from '../policy/groups/clear-policy.ts'
import type { Profile } from '../policy/profile.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import { countBefore } from '../prompt/count.ts'
import { lifetimes } from '../prompt/gaps.ts'
import { type CachedPrefix, cacheExpiry, type KnownSize, type Lineage } from '../prompt/lineage.ts'
import type { MarkerKind } from '../prompt/markers.ts'
import { type Mark, marksOf, positionAt } from '../prompt/marks.ts'
import { type CallPlaces, placeOfResult } from '../prompt/place.ts'
import { frontBlocks } from '../prompt/shared-blocks.ts'
import { knownSize } from '../prompt/size.ts'

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
