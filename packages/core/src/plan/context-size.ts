/** How full the window is, off the meter and the register: one reading for those who decide and those who report. */
import { allDeletedTokens, deletedTokens } from '../clear/cached.ts'
import type { Register } from '../clear/register-state.ts'
import type { Calibration } from '../measure/calibration.ts'
import type { ContextTokens } from '../measure/usage.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile } from '../policy/profile.ts'
import { type Meter, readMeter } from './meter.ts'

export interface SizeQuestion {
  readonly meter: Meter
  readonly register: Register
  readonly calibration: Calibration
  readonly policy: Policy
  readonly profile: Profile
  /** Estimate of system prompt and tools; asked for only where nothing has been measured. */
  readonly prefix: () => number
  /** Tokens that the provider has deleted, where the caller knows better than the register. */
  readonly deleted?: number | undefined
}

export function contextSize(question: SizeQuestion): ContextTokens {
  const { meter, register, calibration, policy, profile, prefix } = question
  return readMeter(meter, {
    calibration,
    policy: policy.estimate,
    stripsThinking: profile.thinking.stripsFinishedTurns,
    prefix,
    deleted: question.deleted ?? deletedNow(meter, register),
  })
}

/** Where nothing was measured, all that was deleted is in the estimate; else only what was since. */
function deletedNow(meter: Meter, register: Register): number {
  return meter.anchor === null ? allDeletedTokens(register) : deletedTokens(register)
}
