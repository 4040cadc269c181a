/** One turn: compacting by itself, recovering from refusals, retrying the network, running hooks. Last, the switches. */
import { count, flag, percent } from '../check.ts'
import { type Fields, field } from '../field.ts'

export interface AutoPolicy {
  /** Failures in a row after which the session stops trying. */
  readonly breakerFailures: number
  /** Turns between two compactions below which the chain is reported. */
  readonly closeTurns: number
}

/** The provider refused a request as too long all the same. */
export interface ReactivePolicy {
  readonly enabled: boolean
  /** Compact and try again, this often. */
  readonly retries: number
  /** Strip media and try again, this often. */
  readonly mediaRetries: number
}

export interface NetworkPolicy {
  /** Further attempts after a network fault, 429, 529 or 5xx. */
  readonly retries: number
  /** Milliseconds before the first retry; doubled each time … */
  readonly firstDelayMs: number
  /** … up to this. */
  readonly maximumDelayMs: number
  /** Per cent of a delay that chance may take off. */
  readonly jitterPercent: number
  /** Seconds: a longer `retry-after` is told to the person and not waited for. */
  readonly longestRetryAfterSeconds: number
}

export interface HooksPolicy {
  /** Seconds, where a hook names no time of its own. */
  readonly timeoutSeconds: number
  /** Characters that one hook may add. */
  readonly outputCharacters: number
}

export interface TurnPolicy {
  readonly auto: AutoPolicy
  readonly reactive: ReactivePolicy
  readonly network: NetworkPolicy
  readonly hooks: HooksPolicy
}

/** The settings' side of the off switches; an environment variable that switches off wins. */
export interface SwitchPolicy {
  /** Every tier, the manual, reactive and provider's own ways included. */
  readonly compactEnabled: boolean
  /** Compaction that starts by itself; the manual one still works. */
  readonly autoCompactEnabled: boolean
  /** Tier 1. */
  readonly microcompactEnabled: boolean
  readonly promptCachingEnabled: boolean
}

export const turnFields: Fields<TurnPolicy> = {
  auto: { breakerFailures: field(3, count(1)), closeTurns: field(3, count()) },
  reactive: {
    enabled: field(true, flag()),
    retries: field(1, count(0, 10)),
    mediaRetries: field(1, count(0, 10)),
  },
  network: {
    retries: field(8, count(0, 100)),
    firstDelayMs: field(500, count(1)),
    maximumDelayMs: field(8_000, count(1)),
    jitterPercent: field(25, percent(0, 100)),
    longestRetryAfterSeconds: field(300, count()),
  },
  hooks: { timeoutSeconds: field(600, count(1)), outputCharacters: field(10_000, count()) },
}

export const switchFields: Fields<SwitchPolicy> = {
  compactEnabled: field(true, flag()),
  autoCompactEnabled: field(true, flag()),
  microcompactEnabled: field(true, flag()),
  promptCachingEnabled: field(true, flag()),
}
