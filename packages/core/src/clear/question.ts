/** What a clearing is proposed from: the register, the rules in force, and the state of the cache, all as data. */
import type { Policy } from '../policy/policy.ts'
import type { Profile, ThinkingMode } from '../policy/profile.ts'
import type { ScaledPolicy } from '../policy/scale.ts'
import type { Prices } from './price-gate.ts'
import type { Register } from './register-state.ts'
import type { Retrieval } from './stub.ts'
import type { CacheTemperature } from './temperature.ts'

export interface ClearQuestion {
  readonly register: Register
  readonly policy: Policy
  /** The same policy seen through the model's window. */
  readonly scaled: ScaledPolicy
  readonly profile: Profile
  readonly pins: readonly string[]
  readonly cache: CacheTemperature
  readonly prices: Prices
  readonly retrieval: Retrieval
  /** Tokens of the next request: for reports, and for decisions. */
  readonly context: { readonly expected: number; readonly high: number }
  /** What the session's calibration makes of an estimate. */
  readonly scale: number
  /** Milliseconds since the newest answer; null where there is none. */
  readonly idleMs: number | null
  /** How the request asks for thinking; null for the model's own way. */
  readonly thinkingMode: ThinkingMode | null
  /** A person asked for it: clear until so many tokens of clearable results are left, whatever the lines say. */
  readonly target?: number
}

/** What came of looking: a proposal, or why there is none. */
export type ClearOutcome<P> =
  | { readonly proposal: P; readonly why: string }
  | { readonly proposal: null; readonly why: string }
