/** What a plan is made from: the state of the session, of the cache and of earlier attempts, all as data. */

import type { CacheTemperature } from '../cache/cache-temperature.ts'
import { deletedTokens } from '../clearing/cached-clearing.ts'
import type { Retrieval } from '../clearing/placeholder.ts'
import type { Register } from '../clearing/tool-result-index.ts'
import type { Rates } from '../cost/prices.ts'
import type { ScaledPolicy } from '../policy/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { Profile, ThinkingMode } from '../policy/provider-profile.ts'
import type { Switches } from '../policy/switches.ts'
import { type Meter, readMeter } from '../tokens/context-meter.ts'
import type { Calibration, ContextTokens } from '../tokens/usage.ts'

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
interface Tracking {
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

// When a compaction pays best where nothing forces it: the size at which the saving of smaller requests has paid
// for it, C′ + √(2·d·F/r), with C′ the size after, d the growth per call, F the cost of one compaction and r the
// price of reading.

export interface CompactionOutlook {
  /** Tokens of a request right after: prefix, summary and what comes back. */
  readonly after: number
  /** Tokens of the summary. */
  readonly summary: number
  /** Tokens of what is brought back or kept behind it. */
  readonly carried: number
}

/** What real compactions come to, until a session has one of its own to go by. */
const USUAL = { summary: 3_000, carried: 20_000 }

/** `most`: tokens that a compaction aims at; null where the window is not known. */
export function usualOutlook(prefixTokens: number, most: number | null = null): CompactionOutlook {
  const room = most === null ? Number.POSITIVE_INFINITY : Math.max(0, most - prefixTokens)
  const summary = Math.min(USUAL.summary, room)
  const carried = Math.min(USUAL.carried, room - summary)
  return { after: prefixTokens + summary + carried, summary, carried }
}

interface TriggerQuestion {
  /** Tokens now. */
  readonly context: number
  readonly outlook: CompactionOutlook
  readonly growthPerCall: number
  readonly rates: Rates
  readonly write: 'write5m' | 'write1h'
  /** The summary is asked for on a prefix that is still cached. */
  readonly isWarm: boolean
  /** A model is paid for the summary; it is unless told otherwise. */
  readonly isAsked?: boolean
}

export interface OptimalTrigger {
  /** Tokens from which a compaction costs less than going on. */
  readonly tokens: number
  /** Dollars of one compaction now. */
  readonly cost: number
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
}

/** Null where a price is not known, or nothing grows. */
export function optimalTrigger(question: TriggerQuestion): OptimalTrigger | null {
  const { outlook, growthPerCall, rates, context } = question
  const { cacheRead: read, output, input } = rates
  const write = rates[question.write]
  if (read === null || output === null || write === null || input === null) return null
  if (read <= 0 || growthPerCall <= 0) return null
  const { isWarm, isAsked = true } = question
  const asked = isAsked ? (isWarm ? read : input) : 0
  const spoken = isAsked ? output * outlook.summary : 0
  const written = spoken + write * (outlook.summary + outlook.carried)
  const fixed = Math.max(0, written + read * outlook.after + (asked - read) * context)
  const cost = (written + asked * context) / 1_000_000
  return {
    tokens: Math.round(outlook.after + Math.sqrt((2 * growthPerCall * fixed) / read)),
    cost,
    breakEvenCalls: breakEven(cost, (read * (context - outlook.after)) / 1_000_000),
  }
}

function breakEven(cost: number, savedPerCall: number): number | null {
  return savedPerCall <= 0 ? null : cost / savedPerCall
}

// How full the window is, off the meter and the register: one reading for those who decide and those who report.

interface SizeQuestion {
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
    deleted: question.deleted ?? deletedTokens(register, { sinceResponse: meter.anchor !== null }),
  })
}
