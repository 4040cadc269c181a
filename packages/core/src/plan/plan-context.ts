/** What a plan is made from: the state of the session, of the cache and of earlier attempts, all as data. */
import type { Register } from '../clear/register-state.ts'
import type { Retrieval } from '../clear/stub.ts'
import type { CacheTemperature } from '../clear/temperature.ts'
import type { Calibration } from '../measure/calibration.ts'
import type { Rates } from '../measure/prices.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile, ThinkingMode } from '../policy/profile.ts'
import type { ScaledPolicy } from '../policy/scale.ts'
import type { Switches } from '../policy/switches.ts'
import type { Meter } from './meter.ts'
import type { CompactionOutlook } from './optimal-trigger.ts'

/**
 * Where in a turn the plan is made. `prompt`: the person has just spoken. `call`: before another request of the
 * same turn. `turn-end`, `todo-done`: good places to stop and think.
 */
export type Moment = 'prompt' | 'call' | 'turn-end' | 'todo-done'

export interface PlanContext {
  readonly register: Register
  readonly meter: Meter
  readonly pins: readonly string[]
  readonly policy: Policy
  /** Of the same policy: `scalePolicy(policy, model, switches)`. */
  readonly scaled: ScaledPolicy
  readonly switches?: Switches
  readonly profile: Profile
  readonly calibration: Calibration
  /** Estimate of system prompt and tools. */
  readonly prefixTokens: number
  /** Who asks. */
  readonly source: string
  readonly moment: Moment
  readonly cache: CacheTemperature
  readonly rates: Rates | null
  readonly write: 'write5m' | 'write1h'
  /** Milliseconds since the newest answer; null where there is none. */
  readonly idleMs: number | null
  readonly retrieval: Retrieval
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
  readonly thinks: boolean
  readonly thinkingMode: ThinkingMode | null
  /** The request names what the provider's own edits take; it does unless told otherwise. */
  readonly canEdit?: boolean
  readonly tracking: Tracking
  /** Tokens, as estimated, deleted from the provider's cache since the newest response; the register's own word where absent. */
  readonly deletedTokens?: number
  /** Tokens by which the context grows from call to call, where the host knows better than the meter. */
  readonly growthPerCall?: number
  /** What a compaction would leave; the usual where the session has had none. */
  readonly outlook?: CompactionOutlook
}

/** What happened before, carried through the loop by the engine. */
export interface Tracking {
  /** Automatic compactions that failed in a row. */
  readonly failures: number
  /** Calls of tools that have no answer yet: nothing is rewritten between a call and its answer. */
  readonly openCalls: number
  /** An act was undone: what starts by itself waits for the person's next prompt. */
  readonly waitsForPrompt: boolean
  /** An act was undone and nothing has been answered since: only what must be is done again. */
  readonly justUndone: boolean
  /** A compaction was made and nothing has come since: another one would do nothing. */
  readonly justCompacted: boolean
}

export const NO_TRACKING: Tracking = {
  failures: 0,
  openCalls: 0,
  waitsForPrompt: false,
  justUndone: false,
  justCompacted: false,
}
