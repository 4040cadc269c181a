/**
 * Chooses the cache lifetime: 5 minutes, 1 hour, or 1 hour with 5 minutes for the newest messages. Switches, policy or
 * account fix it for the session. Otherwise it is chosen once per prefix snapshot, from the pauses between model calls and
 * the prices. The choice is stored in the snapshot, because a changed lifetime changes the bytes sent.
 */

import type { TokenRates } from '../cost/prices.ts'
import { isKnownRecord, type KnownRecord, type SnapshotTtl, SYNTHETIC_MODEL } from '../log/record.ts'
import { requireRecordAt, type SessionLog } from '../log/session-log.ts'
import type { CachePolicy } from '../policy/cache-policy.ts'
import type { CacheRules, CacheTtl } from '../policy/provider-profile.ts'
import type { Switches, SwitchName } from '../policy/switches.ts'
import { readReportedContextTokens } from '../tokens/usage.ts'

/** What the account may use of the 1-hour lifetime. */
export interface TtlEntitlement {
  /** True if the account gets the 1-hour lifetime at no extra price. */
  readonly isEntitled: boolean
  /** True if the account has used up its entitlement to the 1-hour lifetime. */
  readonly isOverage: boolean
}

export interface ChooseTtlInput {
  readonly policy: CachePolicy
  readonly cache: CacheRules
  readonly switches: Switches
  /** True if the provider is Bedrock, which has its own switch for the 1-hour lifetime. */
  readonly isBedrock?: boolean
  readonly entitlement?: TtlEntitlement
  /** The lifetime that the host asked for in the cache markers of its own request. */
  readonly requested?: string
  /** The caller of the model (query source): `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** The cache lifetime stored in the current prefix snapshot; undefined before the first snapshot. */
  readonly latched?: SnapshotTtl | undefined
  /**
   * Returns token sums about the pauses between model calls. Called only if nothing else decides the lifetime, because
   * it may read the whole log.
   */
  readonly readGaps: () => GapTally
  readonly rates: TokenRates | null
  /** True if a user takes part in the session. This decides the lifetime until enough model calls were observed. */
  readonly isInteractive: boolean
}

/**
 * A cache lifetime chosen for one of these reasons is chosen again for each prefix snapshot. A choice for any other
 * reason holds for the session.
 */
const OBSERVED_REASONS: ReadonlySet<string> = new Set(['gaps', 'interactive', 'unattended'])
/** The pauses between model calls decide the lifetime only after at least this many calls. */
const MIN_CALLS_FOR_GAPS = 20

/** Chooses the cache lifetime for a new prefix snapshot. */
export function chooseSnapshotTtl(question: ChooseTtlInput): SnapshotTtl {
  const { latched } = question
  const isLatched = latched !== undefined && !OBSERVED_REASONS.has(latched.because)
  const fixed = isLatched ? latched : chooseFixedTtl(question)
  if (fixed === null) return chooseObservedTtl(question)
  const { long } = findCacheLifetimes(question.cache)
  // A switch, the host or the account asks for one lifetime. The policy has a setting of its own for the newest messages.
  if (fixed.because !== 'cache.ttl' || fixed.name !== long.name) return fixed
  const { tail: _, ...rest } = fixed
  return hasOwnTail(question) ? withTail(rest, question, readSavings(question)) : rest
}

/** Returns the cache lifetime set by switches, policy or account, in this order; null if none of them sets it. */
function chooseFixedTtl(question: ChooseTtlInput): SnapshotTtl | null {
  const { policy, cache, entitlement } = question
  const { long, short } = findCacheLifetimes(cache)
  const isSet = (name: SwitchName): boolean => question.switches.set.includes(name)
  if (isSet('FORCE_PROMPT_CACHING_5M')) return { name: short.name, because: 'FORCE_PROMPT_CACHING_5M' }
  if (isSet('ENABLE_PROMPT_CACHING_1H')) return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H' }
  if (question.isBedrock === true && isSet('ENABLE_PROMPT_CACHING_1H_BEDROCK'))
    return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H_BEDROCK' }
  const isLong = policy.ttl === 'long' || policy.ttl === '1h'
  if (policy.ttl !== 'auto') return { name: isLong ? long.name : short.name, because: 'cache.ttl' }
  const { requested } = question
  if (requested !== undefined && cache.ttls.some(({ name }) => name === requested))
    return { name: requested, because: 'host' }
  const isGiven = entitlement?.isEntitled === true && !entitlement.isOverage
  const isListed = policy.oneHourSources.some((pattern) => matchesSource(pattern, question.source))
  return isGiven && isListed ? { name: long.name, because: 'entitled' } : null
}

function chooseObservedTtl(question: ChooseTtlInput): SnapshotTtl {
  const { cache, isInteractive } = question
  const { long, short } = findCacheLifetimes(cache)
  const savings = readSavings(question)
  if (savings === null) {
    const [name, because] = isInteractive ? [long.name, 'interactive'] : [short.name, 'unattended']
    return name === long.name ? withTail({ name, because }, question, null) : { name, because }
  }
  const tail = hasOwnTail(question) ? Math.max(0, savings.byShortTail) : 0
  if (savings.byLong + tail <= 0) return { name: short.name, because: 'gaps' }
  return withTail({ name: long.name, because: 'gaps' }, question, savings)
}

/** What a lifetime would have saved, judged by the pauses so far, in millionths of a dollar. */
interface TtlSavings {
  /** Saved by the longer lifetime, against the shorter one. */
  readonly byLong: number
  /** Saved by the shorter lifetime for the newest messages, against the longer one for all. */
  readonly byShortTail: number
}

/** Returns null if there are too few calls to tell, or if a price is not known. */
function readSavings({ readGaps, rates }: ChooseTtlInput): TtlSavings | null {
  if (rates === null) return null
  const seen = readGaps()
  if (seen.calls < MIN_CALLS_FOR_GAPS) return null
  const [byLong, byLongTail] = [computeLongTtlSavings(seen, rates), computeLongTtlSavings(seen.tail, rates)]
  return byLong === null || byLongTail === null ? null : { byLong, byShortTail: -byLongTail }
}

/**
 * Adds the shorter lifetime for the newest messages if that saves money, or, before there were pauses, if its writes cost
 * less.
 */
function withTail(ttl: SnapshotTtl, question: ChooseTtlInput, savings: TtlSavings | null): SnapshotTtl {
  const { writeShort, writeLong } = question.rates ?? { writeShort: null, writeLong: null }
  const isCheaper = writeShort !== null && writeLong !== null && writeShort < writeLong
  const isWorth = savings === null ? isCheaper : savings.byShortTail > 0
  return isWorth && hasOwnTail(question)
    ? { ...ttl, tail: findCacheLifetimes(question.cache).short.name }
    : ttl
}

/** False if `idle` is on: each renewal of an idle cache would then be due every five minutes instead of every hour. */
function hasOwnTail({ policy, cache }: ChooseTtlInput): boolean {
  const { long, short } = findCacheLifetimes(cache)
  return policy.tailTtl === 'auto' && policy.idle === 'off' && short.seconds < long.seconds
}

/**
 * Returns the cache lifetime of one API request, and that of its newest messages; undefined if it is the same. Short-lived
 * callers always use the shorter lifetime.
 */
export function chooseRequestTtl(
  epoch: SnapshotTtl | undefined,
  source: string,
  { policy, cache }: TtlRules,
): { readonly name: string; readonly tail: string | undefined } {
  const { short } = findCacheLifetimes(cache)
  const isBrief = policy.fiveMinuteSources.some((pattern) => matchesSource(pattern, source))
  const name = isBrief || epoch === undefined ? short.name : epoch.name
  return { name, tail: name === epoch?.name ? epoch.tail : undefined }
}

interface TtlRules {
  readonly policy: CachePolicy
  readonly cache: CacheRules
}

/** True if `source` equals the pattern. A pattern that ends in `*` matches every source with that beginning. */
function matchesSource(pattern: string, source: string): boolean {
  return pattern.endsWith('*') ? source.startsWith(pattern.slice(0, -1)) : source === pattern
}

// The functions below decide from the pauses between model calls whether the 1-hour lifetime saves money. It makes
// every cache write more expensive, but after a pause that only the longer lifetime covers, the prefix need not be
// written again. With r, s and l as the prices of a cache read, a short-lived write and a long-lived write:
//
//   1 hour pays if   lapsed · (s − r)  >  (added + lost) · (l − s)
//
// The sums are over all calls so far. `lapsed`: prefix tokens of calls after a pause that only the longer lifetime
// covers. `lost`: prefix tokens of calls after a pause that neither lifetime covers. `added`: new tokens of each call.
//
// For the tail alone, which is what came after the last rewrite, the shorter lifetime pays if `<` holds for its sums.

interface GapSums {
  readonly added: number
  readonly lapsed: number
  readonly lost: number
}

/** Token sums over all model calls so far. Adding a call takes constant time. */
export interface GapTally extends GapSums {
  readonly calls: number
  /** The part of each sum that came after the last rewrite of the conversation, or after its first call. */
  readonly tail: GapSums
}

const NO_SUMS: GapSums = { added: 0, lapsed: 0, lost: 0 }
export const EMPTY_GAP_TALLY: GapTally = { calls: 0, ...NO_SUMS, tail: NO_SUMS }

/** A model call, with the pause before it and the tokens that it could have read from the cache. */
export interface TimedCall {
  /** Milliseconds from the start of the previous model call to the start of this one; null for the first call. */
  readonly gapMs: number | null
  /** Tokens that the previous model call left in the cache, or would have left with caching on. */
  readonly prefix: number
  /** Tokens that this model call sent in addition to the prefix left by the previous call. */
  readonly added: number
  /** Tokens of the prefix that came after the last rewrite of the conversation. */
  readonly tail: number
  /** True for the first call, and for the first after a rewrite: the tokens that it adds do not belong to the tail. */
  readonly isFirst: boolean
}

/** Adds a model call to the sums. */
export function addCallGap(tally: GapTally, call: TimedCall, cache: CacheRules): GapTally {
  const { long, short } = findCacheLifetimes(cache)
  const gap = call.gapMs ?? 0
  const outlasts = (ttl: CacheTtl): boolean => gap < ttl.seconds * 1000
  const isLapsed = !outlasts(short) && outlasts(long)
  const addTo = (sums: GapSums, prefix: number, added: number): GapSums => ({
    added: sums.added + added,
    lapsed: sums.lapsed + (isLapsed ? prefix : 0),
    lost: sums.lost + (outlasts(long) ? 0 : prefix),
  })
  const tail = addTo(tally.tail, call.tail, call.isFirst ? 0 : call.added)
  return { calls: tally.calls + 1, ...addTo(tally, call.prefix, call.added), tail }
}

/** Returns the provider's default cache lifetime as `short` and its longest as `long`. */
export function findCacheLifetimes({ ttls, defaultTtl }: CacheRules): {
  readonly long: CacheTtl
  readonly short: CacheTtl
} {
  const none = { name: defaultTtl, seconds: 0 }
  return { long: ttls[0] ?? none, short: ttls.find(({ name }) => name === defaultTtl) ?? none }
}

/** Returns the price class of a cache write with this lifetime: whether it is longer than the provider's default one. */
export function findWritePriceClass(ttl: string | null, cache: CacheRules): 'writeShort' | 'writeLong' {
  const seconds = cache.ttls.find(({ name }) => name === ttl)?.seconds ?? 0
  return seconds > findCacheLifetimes(cache).short.seconds ? 'writeLong' : 'writeShort'
}

/**
 * Returns what the longer lifetime would have saved, in millionths of a dollar: negative if it costs more, null if a price is
 * unknown.
 */
export function computeLongTtlSavings(tally: GapSums, rates: TokenRates): number | null {
  const { cacheRead, writeShort, writeLong } = rates
  if (cacheRead === null || writeShort === null || writeLong === null) return null
  return tally.lapsed * (writeShort - cacheRead) - (tally.added + tally.lost) * (writeLong - writeShort)
}

// The functions below read the pauses between model calls of a reopened session from its log.

interface GapWalkState {
  readonly tally: GapTally
  /** Time of the newest record that is not a response. It is taken as the start time of the next model call. */
  readonly newestInputAt: number
  readonly response: string | null
  /** Start time of the previous model call; null before the first. */
  readonly previousCallAt: number | null
  /** Tokens that the previous call left in the cache. */
  readonly prefix: number
  /** Tokens of the session's first call; 0 before it. */
  readonly front: number
  /** Tokens of the first call after the last rewrite; 0 before the first call. */
  readonly floor: number
}

/** Sums the pauses between the calls of the active branch of a log. Reads the whole branch. */
export function tallyLoggedGaps(session: SessionLog, cache: CacheRules): GapTally {
  let walk: GapWalkState = {
    tally: EMPTY_GAP_TALLY,
    newestInputAt: Number.NaN,
    response: null,
    previousCallAt: null,
    prefix: 0,
    front: 0,
    floor: 0,
  }
  for (const index of session.branch) {
    const record = requireRecordAt(session, index)
    if (isKnownRecord(record)) walk = addRecordToWalk(walk, record, cache)
  }
  return walk.tally
}

function addRecordToWalk(walk: GapWalkState, record: KnownRecord, cache: CacheRules): GapWalkState {
  if (record.type !== 'assistant') return { ...walk, newestInputAt: Date.parse(record.timestamp) }
  const { id, model } = record.message
  const prompt = readReportedContextTokens(record.usage)
  if (id === walk.response || model === SYNTHETIC_MODEL || prompt === 0 || Number.isNaN(walk.newestInputAt))
    return walk
  const { previousCallAt, newestInputAt, prefix } = walk
  const gapMs = previousCallAt === null ? null : newestInputAt - previousCallAt
  // A rewrite makes the prompt smaller. At least as much of it as the session began with stays as it was.
  const isFirst = gapMs === null || prompt < prefix
  const repeated = isFirst ? Math.min(prompt, walk.front) : prefix
  const tail = isFirst ? 0 : prefix - walk.floor
  const call = { gapMs, prefix: repeated, added: prompt - repeated, tail, isFirst }
  return {
    tally: addCallGap(walk.tally, call, cache),
    newestInputAt,
    response: id,
    previousCallAt: newestInputAt,
    prefix: prompt,
    front: gapMs === null ? prompt : walk.front,
    floor: isFirst ? prompt : walk.floor,
  }
}
