/**
 * How long the cache is asked to live. Switches, the policy and the account answer once for the session; where
 * none does, the session's own gaps and the prices decide, once for each epoch. The answer is written into the
 * epoch: a change in the middle would change the bytes.
 */
import type { EpochTtl } from '../conversation/record.ts'
import type { Rates } from '../measure/prices.ts'
import type { CachePolicy } from '../policy/groups/cache-policy.ts'
import type { CacheRules } from '../policy/profile.ts'
import type { Switches, SwitchName } from '../policy/switches.ts'
import { type GapTally, lifetimes, longLifeSaves } from './gaps.ts'

export interface Entitlement {
  /** The account gets an hour at no extra price. */
  readonly isEntitled: boolean
  /** It has used up what it is entitled to. */
  readonly isOverage: boolean
}

export interface TtlQuestion {
  readonly policy: CachePolicy
  readonly cache: CacheRules
  readonly switches: Switches
  /** The platform whose own opt-in counts. */
  readonly isBedrock?: boolean
  readonly entitlement?: Entitlement
  /** Who asks: `repl_main_thread`, `sdk`, `agent:review` … */
  readonly source: string
  /** The last word in this session, from the epoch that stands. */
  readonly latched?: EpochTtl | undefined
  /** Asked for only where nothing stronger answers: it may take reading the log. */
  readonly gaps: () => GapTally
  readonly rates: Rates | null
  /** A person answers: what counts before enough gaps were seen. */
  readonly isInteractive: boolean
}

/** Decided by what was seen; anything else holds for the life of the session. */
const SEEN: ReadonlySet<string> = new Set(['gaps', 'interactive', 'unattended'])
/** Calls below which gaps say nothing yet. */
const ENOUGH_CALLS = 20

/** The lifetime for the epoch that begins. */
export function chooseTtl(question: TtlQuestion): EpochTtl {
  const { latched } = question
  if (latched !== undefined && !SEEN.has(latched.because)) return latched
  return fixed(question) ?? fromSeen(question)
}

/** The answers that hold for the session, the strongest first. */
function fixed(question: TtlQuestion): EpochTtl | null {
  const { policy, cache, entitlement } = question
  const { long, short } = lifetimes(cache)
  const isSet = (name: SwitchName): boolean => question.switches.set.includes(name)
  if (isSet('FORCE_PROMPT_CACHING_5M')) return { name: short.name, because: 'FORCE_PROMPT_CACHING_5M' }
  if (isSet('ENABLE_PROMPT_CACHING_1H')) return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H' }
  if (question.isBedrock === true && isSet('ENABLE_PROMPT_CACHING_1H_BEDROCK'))
    return { name: long.name, because: 'ENABLE_PROMPT_CACHING_1H_BEDROCK' }
  if (policy.ttl !== 'auto')
    return { name: policy.ttl === '1h' ? long.name : short.name, because: 'cache.ttl' }
  const isGiven = entitlement?.isEntitled === true && !entitlement.isOverage
  const isListed = policy.oneHourSources.some((pattern) => matches(pattern, question.source))
  return isGiven && isListed ? { name: long.name, because: 'entitled' } : null
}

function fromSeen(question: TtlQuestion): EpochTtl {
  const { cache, isInteractive } = question
  const { long, short } = lifetimes(cache)
  const saves = savedSoFar(question)
  if (saves !== null) return { name: saves > 0 ? long.name : short.name, because: 'gaps' }
  return isInteractive
    ? { name: long.name, because: 'interactive' }
    : { name: short.name, because: 'unattended' }
}

function savedSoFar({ gaps, rates }: TtlQuestion): number | null {
  if (rates === null) return null
  const seen = gaps()
  return seen.calls < ENOUGH_CALLS ? null : longLifeSaves(seen, rates)
}

/** The lifetime of the markers of one request: short-lived sources never ask for more than they use. */
export function ttlFor(epoch: EpochTtl | undefined, source: string, rules: TtlRules): string {
  const { policy, cache } = rules
  const { short } = lifetimes(cache)
  const isBrief = policy.fiveMinuteSources.some((pattern) => matches(pattern, source))
  return isBrief || epoch === undefined ? short.name : epoch.name
}

export interface TtlRules {
  readonly policy: CachePolicy
  readonly cache: CacheRules
}

/** A pattern is the whole of a source, or its beginning where it ends in a star. */
function matches(pattern: string, source: string): boolean {
  return pattern.endsWith('*') ? source.startsWith(pattern.slice(0, -1)) : source === pattern
}
