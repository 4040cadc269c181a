/** Everything a plan is made from, as data: session, cache, earlier attempts, and what a compaction is expected to leave. */

import type { CacheTemperature } from '../cache/cache-temperature.ts'
import { countDeletedTokens } from '../clearing/cached-clearing.ts'
import type { RetrievalPaths } from '../clearing/select-results.ts'
import type { ToolResultIndex } from '../clearing/tool-result-index.ts'
import type { TokenRates } from '../cost/prices.ts'
import type { ScaledPolicy } from '../policy/limits.ts'
import type { Policy } from '../policy/policy.ts'
import type { ProviderProfile, ThinkingMode } from '../policy/provider-profile.ts'
import type { Switches } from '../policy/switches.ts'
import { type ContextMeter, readMeter } from '../tokens/context-meter.ts'
import type { Calibration, ContextTokens } from '../tokens/usage.ts'

/**
 * The point of a turn at which the plan is made. `prompt`: a user prompt was just appended. `call`: before another
 * request of the same turn. `turn-end`, `todo-done`: natural breaks, good for a compaction.
 */
export type TurnMoment = 'prompt' | 'call' | 'turn-end' | 'todo-done'

export interface PlanContext {
  readonly register: ToolResultIndex
  readonly meter: ContextMeter
  readonly pins: readonly string[]
  readonly policy: Policy
  /** Thresholds and budgets of `policy` for the model's window. */
  readonly scaled: ScaledPolicy
  readonly switches?: Switches
  readonly profile: ProviderProfile
  readonly calibration: Calibration
  /** Estimate of system prompt and tools. */
  readonly prefixTokens: number
  /** The query source. */
  readonly source: string
  readonly moment: TurnMoment
  readonly cache: CacheTemperature
  readonly rates: TokenRates | null
  readonly write: 'write5m' | 'write1h'
  /** Milliseconds since the newest response; null before the first. */
  readonly idleMs: number | null
  readonly retrieval: RetrievalPaths
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
  readonly thinks: boolean
  readonly thinkingMode: ThinkingMode | null
  /** The request names the betas that the provider's context edits need; default true. */
  readonly canEdit?: boolean
  readonly tracking: PlanTracking
  /** Estimated tokens deleted from the provider's cache since the newest response; default: as the index counts them. */
  readonly deletedTokens?: number
  /** Tokens by which the context grows per call; default: as the meter measured it. */
  readonly growthPerCall?: number
  /** What a compaction would leave; default: a typical result. */
  readonly expectedResult?: ExpectedResult
}

/** Earlier attempts and undos, carried through the loop by the engine. */
interface PlanTracking {
  /** Consecutive failures of automatic compaction. */
  readonly failures: number
  /** Tool calls without a result: nothing is rewritten between a call and its result. */
  readonly openCalls: number
  /** A rewrite was undone: automatic ones wait for the user's next prompt. */
  readonly waitsForPrompt: boolean
  /** A rewrite was undone and the model has not responded since: only an unavoidable one starts. */
  readonly justUndone: boolean
  /** Nothing was appended since the last compaction, so another one would change nothing. */
  readonly justCompacted: boolean
}

export const EMPTY_PLAN_TRACKING: PlanTracking = {
  failures: 0,
  openCalls: 0,
  waitsForPrompt: false,
  justUndone: false,
  justCompacted: false,
}

/** The result of a compaction, as expected before it or as the last one left it. */
export interface ExpectedResult {
  /** Tokens of the first request after it: prefix, summary and re-attached context. */
  readonly after: number
  /** Tokens of the summary. */
  readonly summary: number
  /** Tokens re-attached or kept after the summary. */
  readonly reattached: number
}

/** Averages of real compactions, used until the session has had one. */
const TYPICAL_TOKENS = { summary: 3_000, carried: 20_000 }

/** `target`: tokens that a compaction aims at; null if the window is unknown. */
export function typicalResult(prefixTokens: number, target: number | null = null): ExpectedResult {
  const available = target === null ? Number.POSITIVE_INFINITY : Math.max(0, target - prefixTokens)
  const summary = Math.min(TYPICAL_TOKENS.summary, available)
  const carried = Math.min(TYPICAL_TOKENS.carried, available - summary)
  return { after: prefixTokens + summary + carried, summary, reattached: carried }
}

export interface TriggerInput {
  /** Tokens now. */
  readonly context: number
  readonly expectedResult: ExpectedResult
  readonly growthPerCall: number
  readonly rates: TokenRates
  readonly write: 'write5m' | 'write1h'
  /** The request for the summary reads a prefix that is still cached. */
  readonly isWarm: boolean
  /** A model writes the summary, which costs a call; default true. */
  readonly usesModel?: boolean
}

export interface OptimalTrigger {
  /** Context size from which compacting costs less than continuing. */
  readonly tokens: number
  /** Cost of one compaction now, in dollars. */
  readonly cost: number
  /** Calls until it has paid for itself; null if it never does. */
  readonly breakEvenCalls: number | null
}

/**
 * The context size at which the saving of smaller requests has paid for a compaction: C′ + √(2·d·F/r), with C′ the size
 * after, d the growth per call, F the cost of one compaction and r the price of a cache read. Null if a price is
 * unknown or nothing grows.
 */
export function findOptimalTrigger(input: TriggerInput): OptimalTrigger | null {
  const { expectedResult, growthPerCall, rates, context, isWarm, usesModel = true } = input
  const { cacheRead, output } = rates
  const write = rates[input.write]
  if (cacheRead === null || output === null || write === null || rates.input === null) return null
  if (cacheRead <= 0 || growthPerCall <= 0) return null
  const promptRate = usesModel ? (isWarm ? cacheRead : rates.input) : 0
  const outputCost = usesModel ? output * expectedResult.summary : 0
  const written = outputCost + write * (expectedResult.summary + expectedResult.reattached)
  const fixed = Math.max(0, written + cacheRead * expectedResult.after + (promptRate - cacheRead) * context)
  const cost = (written + promptRate * context) / 1_000_000
  const savedPerCall = (cacheRead * (context - expectedResult.after)) / 1_000_000
  return {
    tokens: Math.round(expectedResult.after + Math.sqrt((2 * growthPerCall * fixed) / cacheRead)),
    cost,
    breakEvenCalls: savedPerCall <= 0 ? null : cost / savedPerCall,
  }
}

interface SizeInput {
  readonly meter: ContextMeter
  readonly register: ToolResultIndex
  readonly calibration: Calibration
  readonly policy: Policy
  readonly profile: ProviderProfile
  /** Estimate of system prompt and tools; only called if no response has reported usage yet. */
  readonly prefix: () => number
  /** Tokens deleted from the provider's cache; default: as the index counts them. */
  readonly deleted?: number | undefined
}

/** How full the context window is: the one figure for plans, status and receipts. */
export function readContextSize(input: SizeInput): ContextTokens {
  const { meter, register, calibration, policy, profile, prefix } = input
  return readMeter(meter, {
    calibration,
    policy: policy.estimate,
    stripsThinking: profile.thinking.stripsFinishedTurns,
    prefix,
    deleted:
      input.deleted ?? countDeletedTokens(register, { sinceResponse: meter.measuredResponse !== null }),
  })
}
