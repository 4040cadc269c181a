/**
 * Chooses the cache lifetime, 5 minutes or 1 hour. Switches, policy and account decide once per session; otherwise the
 * gaps between model calls and the prices decide, once per prefix snapshot. The choice is stored in the snapshot, since
 * changing it in between would change the bytes sent.
 */

import type { TokenRates } from '../cost/prices.ts'
import { isKnownRecord, type KnownRecord, type SnapshotTtl, SYNTHETIC_MODEL } from '../log/record.ts'
import { readRecordAt, type SessionLog } from '../log/session-log.ts'
import type { CachePolicy } from '../policy/policy.ts'
import type { CacheRules, CacheTtl } from '../policy/provider-profile.ts'
import type { Switches, SwitchName } from '../policy/switches.ts'
import { countContextTokens } from '../tokens/usage.ts'

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
  /** The source of the model call: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** The lifetime stored in the current prefix snapshot; undefined before the first snapshot. */
  readonly latched?: SnapshotTtl | undefined
  /** Reads the gaps between model calls. Called only if nothing else decides, because it may read the whole log. */
  readonly readGaps: () => GapTally
  readonly rates: TokenRates | null
  /** True if a user answers. This decides the lifetime until enough gaps were observed. */
  readonly isInteractive: boolean
}

/**
 * Reasons for a lifetime that is chosen again for each prefix snapshot; a choice for any other reason holds for the
 * session.
 */
const OBSERVED_REASONS: ReadonlySet<string> = new Set(['gaps', 'interactive', 'unattended'])
/** Number of model calls below which the observed gaps are not used. */
const MIN_CALLS_FOR_GAPS = 20

/** Chooses the cache lifetime for a prefix snapshot that starts now. */
export function chooseTtl(question: ChooseTtlInput): SnapshotTtl {
  const { latched } = question
  if (latched !== undefined && !OBSERVED_REASONS.has(latched.because)) return latched
  return chooseFixedTtl(question) ?? chooseObservedTtl(question)
}

/** Returns the lifetime set by switches, policy or account, in this order of precedence; null if none of them decides. */
function chooseFixedTtl(question: ChooseTtlInput): SnapshotTtl | null {
  const { policy, cache, entitlement } = question
  const { long, short } = findCacheLifetimes(cache)
  const isSet = (name: SwitchName): boolean => question.switches.set.includes(name)
  if (isSet('FORCE_PROMPT_CACHING_5M')) return { name: short.name, because: 'FORCE_PROMPT_CACHING_5M' }
  if (isSet('ENABLE_PROMPT_CACHING_1H')) return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H' }
  if (question.isBedrock === true && isSet('ENABLE_PROMPT_CACHING_1H_BEDROCK'))
    return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H_BEDROCK' }
  if (policy.ttl !== 'auto')
    return { name: policy.ttl === '1h' ? long.name : short.name, because: 'cache.ttl' }
  const isGiven = entitlement?.isEntitled === true && !entitlement.isOverage
  const isListed = policy.oneHourSources.some((pattern) => matchesSource(pattern, question.source))
  return isGiven && isListed ? { name: long.name, because: 'entitled' } : null
}

function chooseObservedTtl(question: ChooseTtlInput): SnapshotTtl {
  const { cache, isInteractive } = question
  const { long, short } = findCacheLifetimes(cache)
  const saves = measureSavings(question)
  if (saves !== null) return { name: saves > 0 ? long.name : short.name, because: 'gaps' }
  return isInteractive
    ? { name: long.name, because: 'interactive' }
    : { name: short.name, because: 'unattended' }
}

function measureSavings({ readGaps, rates }: ChooseTtlInput): number | null {
  if (rates === null) return null
  const seen = readGaps()
  return seen.calls < MIN_CALLS_FOR_GAPS ? null : computeLongTtlSavings(seen, rates)
}

/** Returns the lifetime of the cache markers of one API request. Short-lived sources always use the shorter lifetime. */
export function chooseRequestTtl(epoch: SnapshotTtl | undefined, source: string, rules: TtlRules): string {
  const { policy, cache } = rules
  const { short } = findCacheLifetimes(cache)
  const isBrief = policy.fiveMinuteSources.some((pattern) => matchesSource(pattern, source))
  return isBrief || epoch === undefined ? short.name : epoch.name
}

interface TtlRules {
  readonly policy: CachePolicy
  readonly cache: CacheRules
}

/** True if `source` matches a pattern: either the exact source, or its beginning followed by `*`. */
function matchesSource(pattern: string, source: string): boolean {
  return pattern.endsWith('*') ? source.startsWith(pattern.slice(0, -1)) : source === pattern
}

// The functions below decide from the session's own gaps if the 1-hour lifetime pays. It costs more on every cache
// write, and saves writing the whole prefix again after each gap longer than the shorter lifetime. With r, s and l as
// the prices of a cache read, a short-lived write and a long-lived write, over all calls so far:
//
//   1 hour pays if   lapsed · (s − r)  >  (added + lost) · (l − s)
//
// `lapsed`: tokens of prefixes used again after a gap that only the longer lifetime covers. `lost`: the same after a
// gap that neither lifetime covers. `added`: tokens that the calls wrote in addition.

/** Sums in tokens over all model calls so far; adding a call takes constant time. */
export interface GapTally {
  readonly calls: number
  readonly added: number
  readonly lapsed: number
  readonly lost: number
}

export const NO_GAPS: GapTally = { calls: 0, added: 0, lapsed: 0, lost: 0 }

export interface TimedCall {
  /** Milliseconds from the start of the previous model call to the start of this one; null for the first call. */
  readonly gapMs: number | null
  /** Tokens that the previous model call left in the cache, or would have left with caching on. */
  readonly prefix: number
  /** Tokens of this model call beyond the prefix of the previous one. */
  readonly added: number
}

export function addCallGap(tally: GapTally, call: TimedCall, cache: CacheRules): GapTally {
  const { long, short } = findCacheLifetimes(cache)
  const gap = call.gapMs ?? 0
  const outlasts = (ttl: CacheTtl): boolean => gap < ttl.seconds * 1000
  const isLapsed = !outlasts(short) && outlasts(long)
  return {
    calls: tally.calls + 1,
    added: tally.added + call.added,
    lapsed: tally.lapsed + (isLapsed ? call.prefix : 0),
    lost: tally.lost + (outlasts(long) ? 0 : call.prefix),
  }
}

/** Returns the provider's default cache lifetime as `short` and its longest as `long`. */
export function findCacheLifetimes({ ttls, defaultTtl }: CacheRules): {
  readonly long: CacheTtl
  readonly short: CacheTtl
} {
  const none = { name: defaultTtl, seconds: 0 }
  return { long: ttls[0] ?? none, short: ttls.find(({ name }) => name === defaultTtl) ?? none }
}

/** Returns millionths of a dollar that the longer lifetime would have saved; null if a price is unknown. */
export function computeLongTtlSavings(tally: GapTally, rates: TokenRates): number | null {
  const { cacheRead, write5m, write1h } = rates
  if (cacheRead === null || write5m === null || write1h === null) return null
  return tally.lapsed * (write5m - cacheRead) - (tally.added + tally.lost) * (write1h - write5m)
}

// The functions below read the gaps between model calls of a reopened session from its log.

interface GapWalkState {
  readonly tally: GapTally
  /** Time of the newest record that is not a response; the next model call does not start before it. */
  readonly newestInputAt: number
  readonly response: string | null
  /** Start time of the previous model call (null before the first), and the tokens it left in the cache. */
  readonly previousCallAt: number | null
  readonly prefix: number
}

export function readGapsFromLog(session: SessionLog, cache: CacheRules): GapTally {
  let walk: GapWalkState = {
    tally: NO_GAPS,
    newestInputAt: Number.NaN,
    response: null,
    previousCallAt: null,
    prefix: 0,
  }
  for (const index of session.branch) {
    const record = readRecordAt(session, index)
    if (isKnownRecord(record)) walk = addRecordToWalk(walk, record, cache)
  }
  return walk.tally
}

function addRecordToWalk(walk: GapWalkState, record: KnownRecord, cache: CacheRules): GapWalkState {
  if (record.type !== 'assistant') return { ...walk, newestInputAt: Date.parse(record.timestamp) }
  const { id, model, usage } = record.message
  const prompt = countContextTokens(usage)
  if (id === walk.response || model === SYNTHETIC_MODEL || prompt === 0 || Number.isNaN(walk.newestInputAt))
    return walk
  const { previousCallAt, newestInputAt, prefix } = walk
  const gapMs = previousCallAt === null ? null : newestInputAt - previousCallAt
  const tally = addCallGap(walk.tally, { gapMs, prefix, added: Math.max(0, prompt - prefix) }, cache)
  return { ...walk, tally, response: id, previousCallAt: newestInputAt, prefix: prompt }
}
