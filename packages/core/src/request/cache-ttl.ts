/**
 * Chooses the cache lifetime, 5 minutes or 1 hour. Switches, policy and account decide once for the session; otherwise
 * the session's gaps and the prices decide, once for each prefix snapshot. The choice is stored in the snapshot, since a
 * change in between would change the bytes.
 */

import type { TokenRates } from '../cost/prices.ts'
import { isKnownRecord, type KnownRecord, type SnapshotTtl, SYNTHETIC_MODEL } from '../log/record.ts'
import { recordAt, type SessionLog } from '../log/session.ts'
import type { CachePolicy } from '../policy/policy.ts'
import type { CacheRules, CacheTtl } from '../policy/provider-profile.ts'
import type { Switches, SwitchName } from '../policy/switches.ts'
import { countContextTokens } from '../tokens/usage.ts'

export interface TtlEntitlement {
  /** The account gets one hour at no extra price. */
  readonly isEntitled: boolean
  /** It has used up its entitlement. */
  readonly isOverage: boolean
}

export interface ChooseTtlInput {
  readonly policy: CachePolicy
  readonly cache: CacheRules
  readonly switches: Switches
  /** On Bedrock, which has an opt-in of its own. */
  readonly isBedrock?: boolean
  readonly entitlement?: TtlEntitlement
  /** The query source: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** The choice in the current snapshot. */
  readonly latched?: SnapshotTtl | undefined
  /** Called only if nothing else decides: it may read the log. */
  readonly readGaps: () => GapTally
  readonly rates: TokenRates | null
  /** A user answers: decides until enough gaps were observed. */
  readonly isInteractive: boolean
}

/** Decided by observation; any other choice holds for the session. */
const OBSERVED_REASONS: ReadonlySet<string> = new Set(['gaps', 'interactive', 'unattended'])
/** With fewer calls, gaps show nothing yet. */
const MIN_CALLS_FOR_GAPS = 20

/** The lifetime for a snapshot that starts now. */
export function chooseTtl(question: ChooseTtlInput): SnapshotTtl {
  const { latched } = question
  if (latched !== undefined && !OBSERVED_REASONS.has(latched.because)) return latched
  return chooseFixedTtl(question) ?? chooseObservedTtl(question)
}

/** Choices that hold for the session, the strongest first. */
function chooseFixedTtl(question: ChooseTtlInput): SnapshotTtl | null {
  const { policy, cache, entitlement } = question
  const { long, short } = cacheLifetimes(cache)
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
  const { long, short } = cacheLifetimes(cache)
  const saves = measureSavings(question)
  if (saves !== null) return { name: saves > 0 ? long.name : short.name, because: 'gaps' }
  return isInteractive
    ? { name: long.name, because: 'interactive' }
    : { name: short.name, because: 'unattended' }
}

function measureSavings({ readGaps, rates }: ChooseTtlInput): number | null {
  if (rates === null) return null
  const seen = readGaps()
  return seen.calls < MIN_CALLS_FOR_GAPS ? null : longTtlSavings(seen, rates)
}

/** The lifetime of one request's markers: short-lived sources never ask for more than they use. */
export function chooseRequestTtl(epoch: SnapshotTtl | undefined, source: string, rules: TtlRules): string {
  const { policy, cache } = rules
  const { short } = cacheLifetimes(cache)
  const isBrief = policy.fiveMinuteSources.some((pattern) => matchesSource(pattern, source))
  return isBrief || epoch === undefined ? short.name : epoch.name
}

interface TtlRules {
  readonly policy: CachePolicy
  readonly cache: CacheRules
}

/** A pattern is a whole source, or its beginning followed by `*`. */
function matchesSource(pattern: string, source: string): boolean {
  return pattern.endsWith('*') ? source.startsWith(pattern.slice(0, -1)) : source === pattern
}

// Whether one hour pays, by the session's own gaps. A longer lifetime costs more on every write; it saves writing the
// whole prefix again after each gap that outlasts the shorter one. With r, s and l the prices of a read, a short write
// and a long write, over the calls so far:
//
//   one hour pays if   lapsed · (s − r)  >  (added + lost) · (l − s)
//
// `lapsed`: prefixes met again after a gap that only the longer lifetime outlasts; `lost`: after a gap that outlasts
// both; `added`: what each call wrote besides.

/** Running sums in tokens, so that a call costs the same at any length. */
export interface GapTally {
  readonly calls: number
  readonly added: number
  readonly lapsed: number
  readonly lost: number
}

export const NO_GAPS: GapTally = { calls: 0, added: 0, lapsed: 0, lost: 0 }

export interface TimedCall {
  /** From the start of the previous call to the start of this one; null for the first. */
  readonly gapMs: number | null
  /** Tokens that the previous call left in the cache, or would have left. */
  readonly prefix: number
  /** Tokens of this call beyond that prefix. */
  readonly added: number
}

export function addGap(tally: GapTally, call: TimedCall, cache: CacheRules): GapTally {
  const { long, short } = cacheLifetimes(cache)
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

/** The default lifetime of a marker, and the longest. */
export function cacheLifetimes({ ttls, defaultTtl }: CacheRules): {
  readonly long: CacheTtl
  readonly short: CacheTtl
} {
  const none = { name: defaultTtl, seconds: 0 }
  return { long: ttls[0] ?? none, short: ttls.find(({ name }) => name === defaultTtl) ?? none }
}

/** Dollars, times a million, that the longer lifetime would have saved; null if a price is unknown. */
export function longTtlSavings(tally: GapTally, rates: TokenRates): number | null {
  const { cacheRead, write5m, write1h } = rates
  if (cacheRead === null || write5m === null || write1h === null) return null
  return tally.lapsed * (write5m - cacheRead) - (tally.added + tally.lost) * (write1h - write5m)
}

// The gaps of a reopened session, read off its log.

interface GapWalkState {
  readonly tally: GapTally
  /** Time of the newest record that is no response: a request does not start earlier. */
  readonly newestInputAt: number
  readonly response: string | null
  /** When the previous call started, and what it left. */
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
    const record = recordAt(session, index)
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
  const tally = addGap(walk.tally, { gapMs, prefix, added: Math.max(0, prompt - prefix) }, cache)
  return { ...walk, tally, response: id, previousCallAt: newestInputAt, prefix: prompt }
}
