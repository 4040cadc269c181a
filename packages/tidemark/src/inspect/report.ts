/**
 * The report of `tidemark inspect` as plain JSON. Programs read it, so field names do not change. Tokens in `usage` and
 * `context` are reported by the provider; tokens of classes, tools and blocks are estimates.
 */
import type { Damage } from '@tidemark/core/log/decode-log'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'

/** `write5m`: cache writes for the provider's shortest lifetime. `write1h`: for a longer one. */
type ReportedClass = 'input' | 'cacheRead' | 'write5m' | 'write1h' | 'output'

export interface SessionReport extends CacheReport {
  readonly file: string
  readonly format: LogFormat
  /** The program whose log `tidemark compact` copied into this one; null if the log is not such a copy. */
  readonly copiedFrom: LogFormat | null
  readonly sessionId: string | null
  /** The working directory of the session; null if the log does not record it. */
  readonly project: string | null
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly durationMs: number | null
  /**
   * Why the log could not be read to its end; null if it was read completely. If it is set, all figures cover only the
   * part that was read.
   */
  readonly brokenOff: string | null
  /** Number of lines that contain at least one record of any kind. */
  readonly records: number
  /** Number of answered API requests, including those of subagents. */
  readonly apiCalls: number
  /** Number of API calls without usage in the log; their cost is unknown. Those of a Codex log were not answered. */
  readonly callsWithoutUsage: number
  /** Number of API calls that are not counted because an earlier log file also contains them. */
  readonly copiedCalls: number
  readonly toolCalls: number
  /** Number of messages that the user typed, without those that an earlier log file also contains. */
  readonly userMessages: number
  readonly firstPrompt: string | null
  readonly models: readonly string[]
  readonly usage: UsageTotals
  /** Cache reads as a share of all prompt tokens; null if no prompt tokens were sent. */
  readonly hitRate: number | null
  readonly peakContextTokens: number
  readonly context: ContextCurve
  /** The requests of the main conversation, in the order of `context.points`. */
  readonly requests: readonly LoggedRequest[]
  readonly compactions: readonly LoggedCompaction[]
  readonly clearings: readonly LoggedClearing[]
  readonly tokensByClass: ContentTokens
  readonly byTool: readonly ToolTokens[]
  readonly largest: readonly LargeBlock[]
  readonly duplicateReads: readonly RepeatedRead[]
  /** Total cost in dollars; null if the price of any call is unknown. */
  readonly costUsd: number | null
  readonly money: CostReport
  /** True if the cost of some calls is based on estimated output tokens, because the log has implausibly few for them. */
  readonly outputEstimated: boolean
  /** Number of calls whose cost is based on estimated output tokens. */
  readonly outputEstimatedCalls: number
  /** Output tokens that were priced: the logged number if it is plausible, otherwise an estimate. */
  readonly outputTokensEstimated: number
  /** The cost of the session by day and model. */
  readonly spending: readonly DailySpending[]
  /** Calls and costs of each subagent. The totals of the session include them. */
  readonly agents: readonly SubagentReport[]
  readonly damaged: readonly LogDamage[]
}

/** Token totals of API calls. `input` excludes cache reads and cache writes in every log format. */
export interface UsageTotals {
  readonly input: number
  readonly cacheRead: number
  readonly cacheCreation: number
  readonly output: number
}

export interface ContextCurve {
  readonly window: number | null
  /**
   * Where the context window comes from. `log`: recorded in the log. `catalogue`: the model's window. `compactions`: a
   * smaller window, inferred from the size at which the host compacted.
   */
  readonly windowFrom: 'log' | 'catalogue' | 'compactions' | null
  /** Tokens at which automatic compaction would begin; null if the context window is unknown or the log is from Codex. */
  readonly autoCompact: number | null
  /** The context size at each request of the main conversation. */
  readonly points: readonly ContextPoint[]
}

export interface ContextPoint {
  readonly at: string
  /** Prompt tokens of the request. */
  readonly tokens: number
}

/** A request of the main conversation that got a response with usage. */
export interface LoggedRequest {
  /** Time of the response, as an ISO timestamp. */
  readonly at: string
  /** The line of the response in the log. */
  readonly line: number
  readonly model: string
  /** Prompt tokens of the request. */
  readonly tokens: number
  readonly usage: UsageTotals
  /** Tokens of the response: as logged, or estimated from its text if the log has less than half of that. */
  readonly outputTokens: number
  /** Dollars of the request and its response; null if a price is unknown. */
  readonly costUsd: number | null
  /** Dollars for prompt tokens that were not read from the cache, above the price of reading them; null if unknown. */
  readonly uncachedUsd: number | null
  /** What the request consisted of. Classes without tokens are absent; the others add up to `tokens`. */
  readonly content: RequestContent
}

/** Estimated tokens of a request by kind of content. `system`: system prompt and tools. */
export type RequestContent = { readonly [Class in keyof Omit<ContentTokens, 'total'> | 'system']?: number }

export interface LoggedCompaction {
  /** The uuid of its record; null if it has none. */
  readonly id: string | null
  readonly trigger: string | null
  readonly preTokens: number | null
  /**
   * Prompt tokens of the first request after the compaction. If no request followed, the size that the compaction
   * recorded; null if it recorded none.
   */
  readonly postTokens: number | null
  readonly at: string | null
  /** Number of requests before the compaction. It is also the index of the first request after it in `context.points`. */
  readonly afterCall: number
  /** Dollars for the logged calls that wrote the summary, and for what the next request processed again; null if unknown. */
  readonly costUsd: number | null
  /** True if the log contains an undo of the compaction. */
  readonly isUndone: boolean
}

/**
 * Who cleared content. `host`: the program that ran the session. `tidemark`: this engine, in a session of its own.
 * `provider`: the provider on its side, with the messages sent unchanged.
 */
export type ClearingActor = 'host' | 'tidemark' | 'provider'

export interface LoggedClearing {
  /** The uuid of its record; null if it has none. */
  readonly id: string | null
  readonly preTokens: number | null
  readonly savedTokens: number | null
  readonly trigger: string | null
  readonly results: number
  readonly at: string | null
  readonly afterCall: number
  readonly by: ClearingActor
  /** True if the log contains an undo of the clearing. */
  readonly isUndone: boolean
}

/** Estimated tokens by kind of content. Each block of the main conversation counts once, however often it was sent. */
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
  /** The path, command or beginning of the text that identifies the block, with secrets removed. */
  readonly what: string
  readonly tokens: number
  readonly line: number
}

interface RepeatedRead {
  readonly path: string
  readonly count: number
  /** Tokens that reading the file only once would have saved. */
  readonly tokens: number
}

interface CostReport extends CostSummary, CacheLossCosts {
  /** Dollars for the calls that wrote summaries, included in `spent`. Only Tidemark logs record these calls. */
  readonly spentOnCompaction: number | null
  /** Seconds that cache writes of the two classes live without being read; null if that is not known, or if models differ. */
  readonly writeSeconds: { readonly write5m: number | null; readonly write1h: number | null }
  readonly notInLog: UnloggedSpending
}

/** Calls that the host made but did not log. Claude Code logs neither the calls that write summaries nor those for titles. */
interface UnloggedSpending {
  /** Number of compactions whose calls are not in the log. */
  readonly summaries: number
  /**
   * Dollars by which the host's own totals exceed the logged calls, included in `spent`; negative if the logged calls
   * were priced too high. Null if the log has no totals of the host for the whole session.
   */
  readonly usd: number | null
  /** Tokens by which the host's own totals exceed the logged calls; null as for `usd`. */
  readonly tokens: number | null
}

export interface CostSummary {
  /** Total cost in dollars, equal to `costUsd` of the report; null if the price of any call is unknown. */
  readonly spent: number | null
  /** Sum of the known costs in dollars. It is a lower bound of the total cost if the price of any call is unknown. */
  readonly pricedUsd: number
  readonly byClass: { readonly [Class in ReportedClass]: TokenClassCost }
  /** Dollars for fees that are charged per request instead of per token; null if unknown. */
  readonly feesUsd: number | null
  /** Additional dollars that the same calls would have cost without the prompt cache; null if unknown. */
  readonly savedByCache: number | null
  /** Names of the token classes and fees that were used and have no known price; also calls whose usage is not logged. */
  readonly missing: readonly string[]
  /** Assumptions made when pricing, as text for the user. */
  readonly assumed: readonly string[]
}

/**
 * Dollars that cache breaks cost: the price of caching tokens again, minus the price of reading them from the cache.
 * Null if a price is unknown.
 */
export interface CacheLossCosts {
  readonly lostToBreaks: number | null
  /** Cost of cache breaks as a share of the total cost, to four decimals; null if unknown or if the total is zero. */
  readonly shareLostToBreaks: number | null
  /** Dollars for re-caching after clearings. Clearings are made on purpose, so they are not cache breaks. */
  readonly spentOnClearings: number | null
}

interface TokenClassCost {
  readonly tokens: number
  readonly usd: number | null
}

export interface DailySpending {
  readonly day: string | null
  readonly model: string
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly costUsd: number | null
  /** Sum of the known costs in dollars; a lower bound if `costUsd` is null. */
  readonly pricedUsd: number
  readonly cacheBreaks: number
  readonly lostToBreaks: number | null
  readonly spentOnClearings: number | null
  /** The known part of `lostToBreaks`: a lower bound if that is null. */
  readonly pricedLostToBreaks: number
  /** The known part of `spentOnClearings`: a lower bound if that is null. */
  readonly pricedSpentOnClearings: number
}

export interface SubagentReport {
  readonly id: string
  readonly apiCalls: number
  readonly usage: UsageTotals
  readonly costUsd: number | null
}

export interface LogDamage extends Omit<Damage, 'kind'> {
  /** `not-checked`: no damage, but a place after which broken links between records were no longer searched for. */
  readonly kind: Damage['kind'] | 'not-checked'
  /** The log file of the subagent that has the damage; absent if the session's own log has it. */
  readonly file?: string
}

/** Cache breaks and re-caching costs of a session. */
export interface CacheReport {
  readonly cacheBreaks: readonly LoggedCacheBreak[]
  /** Cost of re-caching after each clearing in the log. Clearings do not count as cache breaks. */
  readonly clearingCosts: readonly ClearingCost[]
  /**
   * Dollars that a cache TTL of one hour would have saved for the calls that used five minutes, given the gaps between
   * requests; negative if it would have cost more. Null if no call used five minutes or a price is unknown.
   */
  readonly hourWouldSave: number | null
}

export interface LoggedCacheBreak {
  /** Time of the response, as an ISO timestamp. */
  readonly at: string
  /** Tokens that should have been read from the cache but were cached again. */
  readonly tokensRewritten: number
  /** Dollars paid above the cache-read price for the tokens that were cached again; null if a price is unknown. */
  readonly costUsd: number | null
  /** The most likely cause of the cache break. */
  readonly cause: BreakCause
  /** The evidence in the log for the cause, with secrets removed. */
  readonly evidence: string
  /** The line of the response in the log. */
  readonly line: number
  readonly model: string
  /** The id of the subagent that sent the request; absent for the main conversation. */
  readonly agent?: string
  /** The purpose of a call outside the conversation, such as `compact`; absent for a call of the conversation. */
  readonly source?: string
}

/** The cost of re-caching after one clearing. `tokensRewritten` and `costUsd` have the same meaning as for a cache break. */
export interface ClearingCost {
  readonly at: string
  readonly tokensRewritten: number
  readonly costUsd: number | null
  /** Number of later calls after which the smaller context has paid for the clearing; null if unknown. */
  readonly breakEvenCalls: number | null
  readonly by: ClearingActor
  readonly model: string
}

/**
 * The cause of a cache break; each name says what changed. `server-side`: nothing in the log changed and the cache
 * entry should not have expired. `not-known`: nothing in the log changed, and the time between the requests is unknown.
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
  | 'thinking-dropped'
  | 'server-side'
  | 'not-known'

/** The cause of a cache break and the evidence for it. */
export interface ExplainedCause {
  readonly cause: BreakCause
  readonly evidence: string
}
