/**
 * What `tidemark inspect` knows of a session, as plain JSON. The names are a contract: programs read them.
 * Tokens of `usage` and `context` are what the provider reported; those of classes, tools and items are estimates.
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
  /** Why the log could not be read to its end, so that all figures are of a part; null where it could. */
  readonly brokenOff: string | null
  /** Lines that hold something, whatever it is. */
  readonly records: number
  /** Requests that were answered, those of side agents among them. */
  readonly apiCalls: number
  /** Answered calls whose usage is not in the log: they cost something nobody knows. */
  readonly callsWithoutUsage: number
  /** Calls left out because another file, given before, has them too. */
  readonly copiedCalls: number
  readonly toolCalls: number
  /** Texts that the person typed. */
  readonly userMessages: number
  readonly firstPrompt: string | null
  readonly models: readonly string[]
  readonly usage: UsageTotals
  /** Share of the prompt that was read from cache; null where nothing was sent. */
  readonly hitRate: number | null
  readonly peakContextTokens: number
  readonly context: ContextCurve
  readonly compactions: readonly CompactionFound[]
  readonly clearings: readonly ClearingFound[]
  readonly tokensByClass: TokensByKind
  readonly byTool: readonly ToolShare[]
  readonly largest: readonly LargeItem[]
  readonly duplicateReads: readonly RepeatedRead[]
  readonly estimator: EstimatorReport
  /** Dollars; null where something that was used has no known price. */
  readonly costUsd: number | null
  readonly money: MoneyReport
  /** The log has too little output for some calls, and the price of those rests on an estimate. */
  readonly outputEstimated: boolean
  /** How many. */
  readonly outputEstimatedCalls: number
  /** The output that was priced: as logged where that can be, estimated where it cannot. */
  readonly outputTokensEstimated: number
  /** Whole session by day and model. */
  readonly spending: readonly Spending[]
  /** Side agents, which have a context of their own. Their calls and costs are in the totals above. */
  readonly agents: readonly AgentReport[]
  readonly damaged: readonly DamagedPlace[]
}

/** `input` is what was not cached, in every format. */
export interface UsageTotals {
  readonly input: number
  readonly cacheRead: number
  readonly cacheCreation: number
  readonly output: number
}

export interface ContextCurve {
  readonly window: number | null
  /** `log`: the log says so. `compactions`: smaller than the model's, told by where the host compacted. */
  readonly windowFrom: 'log' | 'catalogue' | 'compactions' | null
  /** Where automatic compaction would begin; null where the window is not known. */
  readonly autoCompact: number | null
  /** One for each request of the main conversation: the tokens it sent. */
  readonly points: readonly ContextPoint[]
}

export interface ContextPoint {
  readonly at: string
  readonly tokens: number
}

export interface CompactionFound {
  readonly trigger: string | null
  readonly preTokens: number | null
  /** What the next request sent; null where none came. */
  readonly postTokens: number | null
  readonly at: string | null
  /** How many points of the context curve came before. */
  readonly afterCall: number
}

export interface ClearingFound {
  readonly preTokens: number | null
  readonly savedTokens: number | null
  readonly trigger: string | null
  readonly results: number
  readonly at: string | null
  readonly afterCall: number
}

/** Every block of the main conversation once, however often it was sent. */
export interface TokensByKind {
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

export interface ToolShare {
  readonly tool: string
  readonly calls: number
  readonly requestTokens: number
  readonly resultTokens: number
}

export interface LargeItem {
  readonly kind: 'result' | 'request' | 'prompt' | 'text' | 'thinking' | 'summary' | 'attachment' | 'other'
  readonly tool: string | null
  /** The path, command or first words, without secrets. */
  readonly what: string
  readonly tokens: number
  readonly line: number
}

export interface RepeatedRead {
  readonly path: string
  readonly count: number
  /** Tokens that one reading would have saved. */
  readonly tokens: number
}

export interface EstimatorReport {
  readonly turns: number
  readonly medianAbsError: number | null
  /** Σ(predicted − reported) / Σ reported. */
  readonly bias: number | null
  readonly excluded: readonly { readonly reason: string; readonly count: number }[]
}

export interface MoneyReport extends MoneySpent, MoneyLost {
  /** What calls that wrote summaries cost: a part of what was spent. Only our own logs tell of them. */
  readonly spentOnCompaction: number | null
}

export interface MoneySpent {
  /** Dollars; null where something that was used has no known price: the same as `costUsd`. */
  readonly spent: number | null
  /** The sum of what could be priced: `costUsd`, or the least it can be. */
  readonly pricedUsd: number
  readonly byClass: { readonly [Class in PriceClass]: ClassPrice }
  /** Charged by the request, not by the token. */
  readonly feesUsd: number | null
  /** What the same calls would have cost without a cache, less what they did; null where not known. */
  readonly savedByCache: number | null
  /** Why a price is missing, and what had to be assumed, in words. */
  readonly missing: readonly string[]
  readonly assumed: readonly string[]
}

/** Dollars above the price of reading what had to be processed again; null where a price is not known. */
export interface MoneyLost {
  readonly lostToBreaks: number | null
  /** Share of what was spent, to four places. */
  readonly shareLostToBreaks: number | null
  /** What announced clearings made necessary to process again: the host's own acts, no breaks. */
  readonly spentOnClearings: number | null
}

export interface ClassPrice {
  readonly tokens: number
  readonly usd: number | null
}

export interface Spending {
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

export interface DamagedPlace extends Damage {
  /** Where it is not the session's own file: the file of one of its side agents. */
  readonly file?: string
}

// What a log tells about its prompt cache, as plain JSON. The names are a contract: programs read them.

export interface CacheReport {
  readonly cacheBreaks: readonly CacheBreak[]
  /** Clearings that the log announces: what they made necessary to process again is no break. */
  readonly clearingCosts: readonly ClearingCost[]
  /**
   * Dollars that a lifetime of an hour would have saved where five minutes were asked for, by the gaps between the
   * requests; less than 0 where it would have cost more. Null where nothing says so, or a price is not known.
   */
  readonly hourWouldSave: number | null
}

export interface CacheBreak {
  /** When the request was answered. */
  readonly at: string
  /** Tokens that should have been read and were processed again. */
  readonly tokensRewritten: number
  /** Dollars above the price of reading them; null where a price is not known. */
  readonly costUsd: number | null
  /** The most likely one. */
  readonly cause: BreakCause
  /** What in the log speaks for it, without secrets. */
  readonly evidence: string
  /** Of the response. */
  readonly line: number
  readonly model: string
  /** The side agent whose request it was; absent for the main conversation. */
  readonly agent?: string
  /** Who asked beside the conversation (`compact`, a fork's name …); absent for the conversation itself. */
  readonly source?: string
}

/** `tokensRewritten` and `costUsd` as of a break. */
export interface ClearingCost {
  readonly at: string
  readonly tokensRewritten: number
  readonly costUsd: number | null
  /** Calls until what it freed has paid for it; null where not known. */
  readonly breakEvenCalls: number | null
  readonly model: string
}

/**
 * `server-side`: nothing in the log changed and the entry should still have lived. `not-known`: nothing in the log
 * changed, and it does not tell how much time went by.
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

/** A cause, and what speaks for it. */
export interface Cause {
  readonly cause: BreakCause
  readonly evidence: string
}
