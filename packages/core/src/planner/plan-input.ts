/**
 * Input of the planner: the session, its cache, earlier compaction attempts, and the expected size after a compaction.
 * Also computes the context size from which a compaction saves money.
 */

import type { CacheTemperature } from '../cache/cache-model.ts'
import { countProviderRemovedTokens } from '../clearing/cached-clearing.ts'
import type { RetrievalMethods } from '../clearing/clear-candidates.ts'
import type { ProviderEditPlan } from '../clearing/provider-clearing.ts'
import type { ToolResultIndex } from '../clearing/tool-result-index.ts'
import type { TokenRates } from '../cost/prices.ts'
import type { Policy } from '../policy/policy.ts'
import type { ProviderProfile, ThinkingMode } from '../policy/provider-profile.ts'
import type { ScaledLimits } from '../policy/scale-policy.ts'
import type { Switches } from '../policy/switches.ts'
import { type ContextMeter, measureContextTokens } from '../tokens/context-meter.ts'
import type { Calibration, ContextTokens } from '../tokens/usage.ts'

/**
 * When in a turn the planner runs. `prompt`: a user prompt was just appended. `call`: before another API request of the
 * same turn. `turn-end`, `todo-done`: natural breaks, well suited for a compaction.
 */
export type PlanningMoment = 'prompt' | 'call' | 'turn-end' | 'todo-done'

/** Everything that a plan depends on. */
export interface ContextPlanInput {
  readonly register: ToolResultIndex
  readonly meter: ContextMeter
  readonly pins: readonly string[]
  readonly policy: Policy
  /** Thresholds and budgets of `policy`, computed for the model's context window. */
  readonly scaled: ScaledLimits
  readonly switches?: Switches
  readonly profile: ProviderProfile
  readonly calibration: Calibration
  /** Tokens of system prompt and tools: estimated; under a client that is rewritten when full, as reported, if known. */
  readonly prefixTokens: number
  /** The caller of the next API request (query source), such as `repl_main_thread`. */
  readonly source: string
  readonly moment: PlanningMoment
  readonly cache: CacheTemperature
  /** Dollars per million tokens; null if prices are unknown. */
  readonly rates: TokenRates | null
  /** Which of the two cache-write prices applies; it depends on the cache lifetime in use. */
  readonly write: 'writeShort' | 'writeLong'
  /** Milliseconds since the newest response; null if there is no response yet. */
  readonly idleMs: number | null
  readonly retrieval: RetrievalMethods
  /** Names of the tools that the API request declares. */
  readonly tools: readonly string[]
  readonly thinks: boolean
  readonly thinkingMode: ThinkingMode | null
  /** True if the API request names the beta features that the provider's context edits require. Default: true. */
  readonly canEdit?: boolean
  /** Context edits that the last API request asked the provider to make; null or absent if there were none. */
  readonly lastEdits?: ProviderEditPlan | null
  readonly tracking: PlanTracking
  /** True if a summary of the conversation is already prepared; default false. */
  readonly hasPreparedSummary?: boolean
  /** True if the notes of the session can take the place of a summary; default false. */
  readonly hasNotes?: boolean
  /** True if a summary of the conversation is being prepared beside the turn; default false. */
  readonly isPreparing?: boolean
  /** Tokens that each model call adds to the context. Default: the average measured in this session. */
  readonly growthPerCall?: number
  /** Given for a client whose requests are rewritten only when they must be. Default: the thresholds of `scaled` decide. */
  readonly clientLimit?: {
    /** Largest prompt, in tokens, that the provider takes. Up to it, nothing is cleared or compacted. */
    readonly tokens: number
    /**
     * True to compare the upper bound of the size, else the lower one: the context was rewritten before, or the server
     * drops the beginning of long prompts.
     */
    readonly isPassed: boolean
    /** Context size, in tokens, from which a compaction that costs nothing may be tried (again). Default: the threshold. */
    readonly freeFrom?: number
    /** Dollars that the conversation has cost so far. Default: unknown. */
    readonly spent?: number
  }
  /** Expected context size after a compaction, in tokens. Default: averages of real compactions. */
  readonly expectedResult?: CompactionResultSizes
}

/** Earlier compaction attempts and undos. The engine updates this state each time before it plans. */
interface PlanTracking {
  /** Number of consecutive failures of automatic compaction. */
  readonly failures: number
  /** Number of tool calls without a result; while there are any, nothing is rewritten. */
  readonly openCalls: number
  /** True if the user undid a clearing or compaction. No automatic one starts before the user's next prompt. */
  readonly waitsForPrompt: boolean
  /** True if the user undid a rewrite and the model has not responded since. Another one starts only in a nearly full context. */
  readonly justUndone: boolean
  /** True if nothing was appended since the last compaction, so another one would change nothing. */
  readonly justCompacted: boolean
  /** Tokens of the context before the newest compaction that was made to save money; null if there was none. */
  readonly priceCompactedAt: number | null
}

/** Token counts after a compaction: expected ones, or those of the last compaction. */
export interface CompactionResultSizes {
  /** Tokens of the first API request after the compaction: system prompt, tools, summary and re-attached context. */
  readonly after: number
  /** Tokens of the summary. */
  readonly summary: number
  /** Tokens of messages and attachments that follow the summary. */
  readonly reattached: number
}

/** What the size from which a compaction saves money depends on. */
export interface CompactionBreakEvenInput {
  /** Tokens in the context now. */
  readonly context: number
  readonly expectedResult: CompactionResultSizes
  /** Tokens that each model call adds to the context. */
  readonly growthPerCall: number
  readonly rates: TokenRates
  readonly write: 'writeShort' | 'writeLong'
  /** True if the API request for the summary can read the conversation from the cache. */
  readonly isWarm: boolean
  /** True if a model writes the summary, which costs a model call; default true. */
  readonly usesModel?: boolean
}

/** From which size a compaction saves money, what it costs now, and what it saves. */
export interface CompactionBreakEven {
  /** Context size, in tokens, from which compacting costs less than continuing. */
  readonly tokens: number
  /** Cost of one compaction now, in dollars. */
  readonly cost: number
  /** Model calls until the compaction has paid for itself; null if it never does. */
  readonly breakEvenCalls: number | null
  /** Dollars that each later call costs less; negative if the compaction makes the context larger. */
  readonly savedPerCall: number
}

/**
 * Returns the context size from which a compaction saves money: C′ + √(2·d·F/r). C′ is the size after the compaction, d
 * the growth per call, F the cost of one compaction and r the price of a cache read. Null if a price is unknown or the
 * context does not grow.
 */
export function findCompactionBreakEven(input: CompactionBreakEvenInput): CompactionBreakEven | null {
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
    savedPerCall,
  }
}

interface NewContextInput {
  /** Tokens of the context now. */
  readonly before: number
  /** Tokens of the context after the rewrite. */
  readonly after: number
  /** Tokens at the start of the context that the rewrite leaves as they are, so that they stay cached. */
  readonly unchanged: number
  readonly rates: TokenRates
  readonly write: 'writeShort' | 'writeLong'
  /** False if the cache has expired: the next call then writes the whole context, whatever is done. */
  readonly isWarm: boolean
}

/** What a rewrite that is ready costs to commit, and what it saves. */
export interface RewrittenContextPrice {
  /** Dollars for writing what is new in the context to the cache. */
  readonly cost: number
  /** Dollars that each later call costs less; negative if the context becomes larger. */
  readonly savedPerCall: number
  /** Model calls until the rewrite has paid for itself; null if it never does. */
  readonly breakEvenCalls: number | null
}

/**
 * Prices a rewritten context that is ready to be used, by its own size. What it cost to write the summary in it is not
 * counted. Null if a price is unknown.
 */
export function priceRewrittenContext(input: NewContextInput): RewrittenContextPrice | null {
  const { before, after, unchanged, rates, isWarm } = input
  const write = rates[input.write]
  if (rates.cacheRead === null || write === null) return null
  const written = isWarm ? Math.max(0, after - unchanged) : 0
  const [cost, savedPerCall] = [written * write, (before - after) * rates.cacheRead]
  const breakEvenCalls = savedPerCall <= 0 ? null : Math.ceil(cost / savedPerCall)
  return { cost: cost / 1_000_000, savedPerCall: savedPerCall / 1_000_000, breakEvenCalls }
}

interface SizeInput {
  readonly meter: ContextMeter
  readonly register: ToolResultIndex
  readonly calibration: Calibration
  readonly policy: Policy
  readonly profile: ProviderProfile
  /** Estimates the tokens of system prompt and tools; called only if no response has reported usage yet. */
  readonly prefix: () => number
}

/**
 * Returns the size of the context in tokens, without what the provider has removed from it. Plans, status displays and
 * receipts all use this number.
 */
export function computeContextSize(input: SizeInput): ContextTokens {
  const { meter, register, calibration, policy, profile, prefix } = input
  return measureContextTokens(meter, {
    calibration,
    policy: policy.estimate,
    stripsThinking: profile.thinking.stripsFinishedTurns,
    prefix,
    deleted: countProviderRemovedTokens(register, meter.measuredResponse !== null),
  })
}
