/**
 * The report of `tidemark inspect`, as plain JSON. Field names are a contract: programs read them.
 * Tokens in `usage` and `context` are reported by the provider; those of classes, tools and items are estimates.
 */
import type { Damage, PriceClass } from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'

export interface SessionReport extends CacheReport {
  readonly file: string
  readonly format: LogFormat
  readonly sessionId: string | null
  /** The folder the session ran in. */
  readonly project: string | null
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly durationMs: number | null
  /** Why the log could not be read to its end (all figures are then of the readable part); null when it could. */
  readonly brokenOff: string | null
  /** Lines with at least one record, of any kind. */
  readonly records: number
  /** Answered requests, including those of side agents. */
  readonly apiCalls: number
  /** Answered calls without usage in the log: their cost is unknown. */
  readonly callsWithoutUsage: number
  /** Calls left out because a file given earlier contains them as well. */
  readonly copiedCalls: number
  readonly toolCalls: number
  /** Messages that the user typed. */
  readonly userMessages: number
  readonly firstPrompt: string | null
  readonly models: readonly string[]
  readonly usage: UsageTotals
  /** Cache reads as a share of all prompt tokens; null when nothing was sent. */
  readonly hitRate: number | null
  readonly peakContextTokens: number
  readonly context: ContextCurve
  readonly compactions: readonly LoggedCompaction[]
  readonly clearings: readonly LoggedClearing[]
  readonly tokensByClass: ContentTokens
  readonly byTool: readonly ToolTokens[]
  readonly largest: readonly LargeBlock[]
  readonly duplicateReads: readonly RepeatedRead[]
  readonly estimator: EstimatorReport
  /** Dollars; null when the price of anything used is unknown. */
  readonly costUsd: number | null
  readonly money: CostReport
  /** For some calls the log has too few output tokens, and their cost is based on an estimate. */
  readonly outputEstimated: boolean
  /** Number of those calls. */
  readonly outputEstimatedCalls: number
  /** Output tokens that were priced: as logged where plausible, otherwise estimated. */
  readonly outputTokensEstimated: number
  /** The whole session by day and model. */
  readonly spending: readonly DailySpending[]
  /** Side agents, each with a context of its own. Their calls and costs are included in the totals above. */
  readonly agents: readonly AgentReport[]
  readonly damaged: readonly LogDamage[]
}

/** `input`: uncached input tokens, in every log format. */
export interface UsageTotals {
  readonly input: number
  readonly cacheRead: number
  readonly cacheCreation: number
  readonly output: number
}

export interface ContextCurve {
  readonly window: number | null
  /** `log`: recorded in the log. `compactions`: smaller than the model's, inferred from where the host compacted. */
  readonly windowFrom: 'log' | 'catalogue' | 'compactions' | null
  /** Tokens at which automatic compaction would begin; null when the window is unknown. */
  readonly autoCompact: number | null
  /** One for each request of the main conversation. */
  readonly points: readonly ContextPoint[]
}

export interface ContextPoint {
  readonly at: string
  /** Prompt tokens of the request. */
  readonly tokens: number
}

export interface LoggedCompaction {
  readonly trigger: string | null
  readonly preTokens: number | null
  /** Prompt tokens of the next request; null when there was none. */
  readonly postTokens: number | null
  readonly at: string | null
  /** Number of points of the context curve before it. */
  readonly afterCall: number
}

export interface LoggedClearing {
  readonly preTokens: number | null
  readonly savedTokens: number | null
  readonly trigger: string | null
  readonly results: number
  readonly at: string | null
  readonly afterCall: number
}

/** Each block of the main conversation counts once, however often it was sent. */
export interface ContentTokens {
  readonly human: number
  readonly assistantText: number
  readonly thinking: number
  readonly toolRequests: number
  readonly toolResults: number
  readonly localCommandOutput: number
  readonly attachments: number
  readonly media: number
  readonly summaries: number
  readonly other: number
  readonly total: number
}

export interface ToolTokens {
  readonly tool: string
  readonly calls: number
  readonly requestTokens: number
  readonly resultTokens: number
}

export interface LargeBlock {
  readonly kind: 'result' | 'request' | 'prompt' | 'text' | 'thinking' | 'summary' | 'attachment' | 'other'
  readonly tool: string | null
  /** The path, command or beginning of the text, with secrets removed. */
  readonly what: string
  readonly tokens: number
  readonly line: number
}

export interface RepeatedRead {
  readonly path: string
  readonly count: number
  /** Tokens that reading the file once would have saved. */
  readonly tokens: number
}

export interface EstimatorReport {
  readonly turns: number
  readonly medianAbsError: number | null
  /** Σ(predicted − reported) / Σ reported. */
  readonly bias: number | null
  readonly excluded: readonly { readonly reason: string; readonly count: number }[]
}

export interface CostReport extends CostSummary, CacheLossCosts {
  /** Cost of the calls that wrote summaries, a part of `spent`. Only our own logs record them. */
  readonly spentOnCompaction: number | null
}

export interface CostSummary {
  /** Dollars, the same as `costUsd`: null when the price of anything used is unknown. */
  readonly spent: number | null
  /** Sum of the known costs: equal to `costUsd`, or a lower bound when that is null. */
  readonly pricedUsd: number
  readonly byClass: { readonly [Class in PriceClass]: TokenClassCost }
  /** Charges per request instead of per token. */
  readonly feesUsd: number | null
  /** Cost of the same calls without a cache, less their actual cost; null when unknown. */
  readonly savedByCache: number | null
  /** Which prices are missing, and what was assumed, as sentences. */
  readonly missing: readonly string[]
  readonly assumed: readonly string[]
}

/** Dollars paid above the cache-read price for tokens that had to be cached again; null when a price is unknown. */
export interface CacheLossCosts {
  readonly lostToBreaks: number | null
  /** Share of the total cost, to four places. */
  readonly shareLostToBreaks: number | null
  /** Cost of re-caching after clearings that the log records: done by the host itself, so not cache breaks. */
  readonly spentOnClearings: number | null
}

export interface TokenClassCost {
  readonly tokens: number
  readonly usd: number | null
}

export interface DailySpending {
  readonly day: string | null
  readonly model: string
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly costUsd: number | null
  readonly cacheBreaks: number
  readonly lostToBreaks: number | null
  readonly spentOnClearings: number | null
}

export interface AgentReport {
  readonly id: string
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly costUsd: number | null
}

export interface LogDamage extends Damage {
  /** The file of a side agent; absent for the session's own file. */
  readonly file?: string
}

/** How the prompt cache of a session did. */
export interface CacheReport {
  readonly cacheBreaks: readonly LoggedCacheBreak[]
  /** Cost of re-caching after clearings that the log records. These are not cache breaks. */
  readonly clearingCosts: readonly ClearingCost[]
  /**
   * Dollars that a TTL of one hour would have saved where five minutes were used, by the gaps between the requests;
   * negative when it would have cost more. Null when no call used five minutes or a price is unknown.
   */
  readonly hourWouldSave: number | null
}

export interface LoggedCacheBreak {
  /** Time of the response. */
  readonly at: string
  /** Tokens that should have been read from the cache and were cached again. */
  readonly tokensRewritten: number
  /** Dollars above the price of reading them; null when a price is unknown. */
  readonly costUsd: number | null
  /** The most likely cause. */
  readonly cause: BreakCause
  /** What in the log supports that cause, with secrets removed. */
  readonly evidence: string
  /** Line of the response. */
  readonly line: number
  readonly model: string
  /** The side agent that sent the request; absent for the main conversation. */
  readonly agent?: string
  /** Purpose of a call beside the conversation (`compact`, the name of a fork …); absent for the conversation itself. */
  readonly source?: string
}

/** What one clearing cost. `tokensRewritten` and `costUsd` mean the same as for a cache break. */
export interface ClearingCost {
  readonly at: string
  readonly tokensRewritten: number
  readonly costUsd: number | null
  /** Calls until the freed tokens have paid for it; null when unknown. */
  readonly breakEvenCalls: number | null
  readonly model: string
}

/**
 * `server-side`: nothing in the log changed and the cache entry should not have expired yet. `not-known`: nothing in
 * the log changed, and it does not show how much time passed.
 */
export type BreakCause =
  | 'model-changed'
  | 'speed-changed'
  | 'effort-changed'
  | 'thinking-changed'
  | 'skill-loaded'
  | 'tools-changed'
  | 'system-changed'
  | 'memory-changed'
  | 'messages-changed'
  | 'settings-changed'
  | 'account-changed'
  | 'lifetime-changed'
  | 'image-added'
  | 'image-removed'
  | 'expired'
  | 'restarted'
  | 'not-streamed'
  | 'look-back-outrun'
  | 'server-side'
  | 'not-known'

/** A cause, and the evidence for it. */
export interface ExplainedCause {
  readonly cause: BreakCause
  readonly evidence: string
}
