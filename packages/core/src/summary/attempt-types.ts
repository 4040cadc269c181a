/** Types for the attempts at a summary: their input, what each sends, how each ended, and the state between them. Plain data. */

import type { ContextEntry } from '../context/context-entry.ts'
import type { ApiMessage } from '../context/payload.ts'
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CompactMetadata } from '../log/record.ts'
import type { ReplyStop } from '../log/reply-report.ts'
import type { CompactPolicy } from '../policy/compact-policy.ts'
import type { SummaryRefusalReason } from './accept-summary.ts'
import type { SummaryModel, SummaryRequest } from './direct-summary-request.ts'
import type { CompactionSpan } from './select-span.ts'

/** What all attempts at one summary share. */
export interface AttemptsInput {
  readonly span: CompactionSpan
  readonly policy: CompactPolicy
  /** Custom instructions for the summary, composed and cut to their limit; null if there are none. */
  readonly instructions: string | null
  /** The model of the conversation. It writes compaction blocks and answers fork calls. */
  readonly conversationModel: SummaryModel
  /** The model of direct summary calls; may be the conversation's own model. */
  readonly directModel: SummaryModel
  /** The conversation's last API request, which a fork call extends; null if none has been sent. */
  readonly parent: { readonly tokens: number } | null
  /** True if the cached prefix of the conversation's last API request has not expired. */
  readonly isWarm: boolean
  /** Tokens of the conversation including what the provider cleared on its side. A compaction-block request has this size. */
  readonly unclearedTokens: number
  readonly tools: readonly JsonObject[]
  /** Maximum tokens of a local summary: the target of the compaction, or less after a summary was rejected as too large. */
  readonly maximumSummaryTokens?: number
  /** Maximum tokens of a local summary without its user messages; default: a share of the tokens that the summary replaces. */
  readonly maximumRestTokens?: number
  /** Estimates the tokens of a context entry, corrected by the usage that the provider reported. */
  readonly countEntryTokens: (entry: ContextEntry) => number
  readonly countTextTokens: (text: string) => number
}

export interface AttemptTimeLimits {
  /** Milliseconds between two `keep-alive` events while the attempt runs. */
  readonly keepAliveMs: number
  /** The attempt fails if the model call delivers no data for this many milliseconds. */
  readonly stallMs: number
  /** The attempt fails if the whole call takes longer. */
  readonly attemptMs: number
}

interface AttemptBase {
  /**
   * Number of the attempt kind, in the order of fallbacks: 0 compaction block, 1 fork, 2 direct call, 3 direct call
   * with less input, 4 local summary.
   */
  readonly rung: 0 | 1 | 2 | 3 | 4
  readonly deadlines: AttemptTimeLimits
}

/**
 * An attempt to have the provider write a compaction block. Sends the messages up to and including the record with uuid
 * `through`, and the summary task as `instructions`.
 */
export interface CompactionBlockAttempt extends AttemptBase {
  readonly kind: 'block'
  readonly instructions: string
  readonly beta: string | null
  readonly through: string
}

/**
 * An attempt that adds `message` to the conversation's last API request. `records`: uuids of the records to send (form
 * `up_to`), which are the first of the conversation; null to send all records.
 */
export interface ForkAttempt extends AttemptBase {
  readonly kind: 'fork'
  readonly message: ApiMessage
  readonly records: ReadonlySet<string> | null
}

/** An attempt with a request of its own, which does not share the prefix of the conversation. */
export interface DirectAttempt extends AttemptBase, SummaryRequest {
  readonly kind: 'direct'
}

/**
 * An attempt to summarise `entries` without a model, in at most `maximumTokens` tokens, of which everything but the user
 * messages has at most `restTokens`.
 */
export interface LocalAttempt extends AttemptBase {
  readonly kind: 'local'
  readonly entries: readonly ContextEntry[]
  readonly maximumTokens: number
  readonly restTokens: number
}

/** Limits of a summary that is written again because the last one was too large. */
export interface SmallerSummaryLimits {
  /** Maximum tokens of the summary; missing if only `restTokens` becomes smaller. */
  readonly tokens?: number
  /** Maximum tokens of a local summary without its user messages. */
  readonly restTokens?: number
}

export type SummaryAttempt = CompactionBlockAttempt | ForkAttempt | DirectAttempt | LocalAttempt

/** Why a model call returned no response: the fields of the engine's `ModelFailure` that attempts need. */
export interface AttemptCallFailure {
  readonly kind: string
  readonly message: string
  readonly gap?: { readonly actual?: number; readonly limit?: number; readonly over?: number }
}

/** How one attempt ended, before its answer is judged. */
export type AttemptResult =
  | { readonly kind: 'answer'; readonly content: readonly Block[]; readonly stop: ReplyStop | null }
  | { readonly kind: 'failure'; readonly failure: AttemptCallFailure }
  /** The model call exceeded one of its deadlines. */
  | { readonly kind: 'stalled'; readonly message: string }
  /** The API request could not be built, for example because there is no earlier request to fork. */
  | { readonly kind: 'unavailable'; readonly message: string }
  /** A local summary was written; `text` contains it. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'aborted' }

/** Why another kind of attempt was needed. Stored in the boundary record and reported in events. */
export type FallbackReason = 'no_summary' | 'api_error' | 'prompt_too_long'

/** One attempt at a summary that was made or skipped, with its outcome and reason. */
export interface SummaryAttemptStep {
  readonly rung: SummaryAttempt['rung']
  readonly kind: SummaryAttempt['kind']
  readonly outcome: 'accepted' | 'refused' | 'failed' | 'skipped'
  readonly reason: SummaryRefusalReason | string
  readonly message: string
}

interface AttemptsEndBase {
  readonly done: true
  readonly trace: readonly SummaryAttemptStep[]
  /** Why the last unsuccessful attempt failed; null if none failed. */
  readonly fallbackReason: FallbackReason | null
}

export interface AcceptedSummary extends AttemptsEndBase {
  readonly ok: true
  readonly summarizer: Extract<CompactMetadata['summarizer'], 'model' | 'block' | 'local'>
  /** The summary under the heading `Summary:`; for a compaction block, the provider's text unchanged. */
  readonly summary: string
  /** The provider's compaction block, to be stored and sent back byte for byte; null for any other summary. */
  readonly block: Block | null
  /** Entries that the summary replaces but no model has seen. A local summary of them is put in front of this summary. */
  readonly coveredLocally: readonly ContextEntry[]
}

export interface AttemptsFailure extends AttemptsEndBase {
  readonly ok: false
  /** True if the user aborted the attempts. The context is unchanged, and the abort is not an error. */
  readonly aborted: boolean
  readonly message: string
}

export type SummaryAttemptsOutcome = AcceptedSummary | AttemptsFailure

/** The kind of attempt that is tried now. */
export type AttemptStage = 'block' | 'fork' | 'direct' | 'local' | 'failed'

/** The state between two attempts at a summary. Immutable: every update returns a new value. */
export interface SummaryAttemptState {
  readonly context: AttemptsInput
  readonly stage: AttemptStage
  /** The attempt to make now, or the final result if no attempt is left. */
  readonly next: SummaryAttempt | SummaryAttemptsOutcome
  /** Entries to send in a direct call, without media and thinking. Shortened when a request exceeds the context window. */
  readonly input: readonly ContextEntry[]
  /** Entries that the summary replaces but that are not sent to a model. A local summary covers them. */
  readonly coveredLocally: readonly ContextEntry[]
  /** Context window of the summarizing model in tokens, as configured or as an error reported it; null if unknown. */
  readonly window: number | null
  /** Number of failed direct summary calls, not counting those that exceeded the context window. */
  readonly attempts: number
  /** How often the oldest rounds were dropped because the request was too long. */
  readonly drops: number
  /** True if tool calls and tool results are sent to the summarizer as text. */
  readonly asText: boolean
  /** True if the conversation's own model is used in place of the configured summarizer. */
  readonly usesConversationModel: boolean
  /** Sentence about what was wrong with the previous response, added to the next summary prompt; null in the first attempt. */
  readonly remark: string | null
  /** Keys of the summary requests already sent, so that none is sent twice. */
  readonly requestKeys: readonly string[]
  readonly trace: readonly SummaryAttemptStep[]
  readonly fallbackReason: FallbackReason | null
}
