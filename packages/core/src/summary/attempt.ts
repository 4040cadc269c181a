/** Types of the attempts at a summary: what they are made from, what each asks for, how they end. Plain data. */

import type { ContextEntry } from '../context/entry.ts'
import type { ApiMessage } from '../context/payload.ts'
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CompactMetadata } from '../log/record.ts'
import type { CompactPolicy } from '../policy/policy.ts'
import type { SummaryRefusalReason } from './accept-summary.ts'
import type { CompactionSpan } from './select-span.ts'
import type { DirectCallInput, SummaryModel } from './summary-input.ts'

export interface AttemptsInput {
  readonly span: CompactionSpan
  readonly policy: CompactPolicy
  /** Composed and within their limit; null if there are none. */
  readonly instructions: string | null
  /** The conversation's own model: it writes a compaction block and answers a fork. */
  readonly conversationModel: SummaryModel
  /** The model of direct calls; may be the same one. */
  readonly directModel: SummaryModel
  /** The request a fork would extend; null if no request has been sent. */
  readonly parent: { readonly tokens: number } | null
  /** The parent's cache entry is still alive. */
  readonly isWarm: boolean
  /** Tokens of the conversation without provider-side clearing: the size of a compaction block's request. */
  readonly unclearedTokens: number
  readonly tools: readonly JsonObject[]
  /** Maximum tokens of a local summary, set after a larger one proved too large. */
  readonly maximumSummaryTokens?: number
  /** Expected tokens, calibrated by reported usage. */
  readonly countEntryTokens: (entry: ContextEntry) => number
  readonly countTextTokens: (text: string) => number
}

export interface AttemptDeadlines {
  readonly keepAliveMs: number
  /** The attempt fails if nothing arrives for this long. */
  readonly stallMs: number
  readonly attemptMs: number
}

interface AttemptBase {
  /** 0 compaction block, 1 fork, 2 direct call, 3 direct call with less input or in parts, 4 local summary. */
  readonly rung: 0 | 1 | 2 | 3 | 4
  readonly deadlines: AttemptDeadlines
}

/** The provider's own summary: the parent's messages up to and including `through`, with `compaction` and these instructions. */
export interface BlockAttempt extends AttemptBase {
  readonly kind: 'block'
  readonly instructions: string
  readonly beta: string | null
  readonly through: string
}

/** The parent's request and this one message. `through`: last record to include (`up_to`); null for all of them. */
export interface ForkAttempt extends AttemptBase {
  readonly kind: 'fork'
  readonly message: ApiMessage
  readonly through: string | null
}

export interface DirectAttempt extends AttemptBase, DirectCallInput {
  readonly kind: 'direct'
  /** Summarised records that this call does not contain. */
  readonly dropped: number
  readonly part: { readonly number: number; readonly of: number } | 'join' | null
}

/** A summary without a model, of these entries and at most this size. */
export interface LocalAttempt extends AttemptBase {
  readonly kind: 'local'
  readonly entries: readonly ContextEntry[]
  readonly maximumTokens: number
}

export type Attempt = BlockAttempt | ForkAttempt | DirectAttempt | LocalAttempt

/** Why a call brought no response. The engine's `Failure` fits. */
export interface AttemptFailure {
  readonly kind: string
  readonly message: string
  readonly gap?: { readonly actual?: number; readonly limit?: number; readonly over?: number }
}

export type AttemptResult =
  | { readonly kind: 'answer'; readonly content: readonly Block[]; readonly stopReason: string | null }
  | { readonly kind: 'failure'; readonly failure: AttemptFailure }
  /** A deadline passed. */
  | { readonly kind: 'stalled'; readonly message: string }
  /** The request could not be built: there is no parent, or the fork was refused. */
  | { readonly kind: 'unavailable'; readonly message: string }
  /** The text of a local summary. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'aborted' }

/** Stored in the boundary and reported in events. */
export type FallbackReason = 'no_summary' | 'api_error' | 'prompt_too_long'

/** One attempt that was made or skipped, and why it ended as it did. */
export interface AttemptStep {
  readonly rung: Attempt['rung']
  readonly kind: Attempt['kind']
  readonly outcome: 'accepted' | 'refused' | 'failed' | 'skipped'
  readonly reason: SummaryRefusalReason | string
  readonly message: string
}

interface AttemptsEndBase {
  readonly done: true
  readonly trace: readonly AttemptStep[]
  /** Model calls made. */
  readonly calls: number
  /** Why the last call without a summary failed; null if none did. */
  readonly fallbackReason: FallbackReason | null
}

export interface AttemptsSummary extends AttemptsEndBase {
  readonly ok: true
  readonly summarizer: Extract<CompactMetadata['summarizer'], 'model' | 'block' | 'local'>
  /** Headed `Summary:`; a block's text as the provider returned it. */
  readonly summary: string
  /** To be stored and sent back byte for byte. */
  readonly block: Block | null
  /** Summarised records that no model saw: a local summary of them goes in front of this one. */
  readonly coveredLocally: readonly ContextEntry[]
}

export interface AttemptsFailure extends AttemptsEndBase {
  readonly ok: false
  /** The user aborted: nothing has changed, and this is not an error. */
  readonly aborted: boolean
  readonly message: string
}

export type AttemptsEnd = AttemptsSummary | AttemptsFailure

/** What is tried now. `together`: the summaries of the parts are used without joining them. */
export type AttemptStage = 'block' | 'fork' | 'direct' | 'parts' | 'join' | 'together' | 'local' | 'failed'

/** State between two attempts; every update returns a new value. */
export interface SummaryAttempts {
  readonly context: AttemptsInput
  readonly stage: AttemptStage
  readonly next: Attempt | AttemptsEnd
  /** Input of a direct call, stripped; gets shorter with each drop. */
  readonly input: readonly ContextEntry[]
  /** Summarised entries that no model will have seen. */
  readonly coveredLocally: readonly ContextEntry[]
  /** The summarizer's context window in tokens, as configured or as learnt from an overflow. */
  readonly window: number | null
  /** Direct calls so far, not counting retries after an overflow. */
  readonly attempts: number
  readonly drops: number
  readonly parts: {
    readonly parts: readonly (readonly ContextEntry[])[]
    /** Number of parts already sent. */
    readonly sent: number
    readonly summaries: readonly string[]
    readonly outputTokens: number
  } | null
  /** Tool calls and results are sent as text. */
  readonly asText: boolean
  /** The conversation's own model replaces the configured one. */
  readonly usesConversationModel: boolean
  /** What was wrong with the last answer, for the next prompt. */
  readonly remark: string | null
  readonly calls: number
  /** Keys of the requests already made. */
  readonly requestKeys: readonly string[]
  readonly trace: readonly AttemptStep[]
  readonly fallbackReason: FallbackReason | null
}
