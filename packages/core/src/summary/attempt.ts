/** What the chain of asking is told, what it asks for, and how it ends: plain data, for the engine to act upon. */

import type { Entry } from '../context/entry.ts'
import type { ApiMessage } from '../context/payload.ts'
import type { Block } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import type { CompactMetadata } from '../log/record.ts'
import type { CompactPolicy } from '../policy/policy.ts'
import type { AnswerRefusal } from './accept-summary.ts'
import type { Span } from './select-span.ts'
import type { DirectInput, Summariser } from './summary-input.ts'

export interface ChainContext {
  readonly span: Span
  readonly policy: CompactPolicy
  /** Composed and bounded; null where nobody wants anything. */
  readonly instructions: string | null
  /** The conversation's own model: what a block and a fork are asked of. */
  readonly own: Summariser
  /** Who is asked by a call of its own; may be the same. */
  readonly direct: Summariser
  /** The request that a fork would go on from; null where there is none to fork. */
  readonly parent: { readonly tokens: number } | null
  /** Whether the parent's cache is still there to be read. */
  readonly isWarm: boolean
  /** Tokens of the conversation with nothing cleared by the provider: what a block's request would carry. */
  readonly unclearedTokens: number
  readonly tools: readonly JsonObject[]
  /** Tokens that a summary without a model may have at most, where one of another size has proved too large. */
  readonly largestSummary?: number
  /** Tokens as they are expected to come out, calibrated. */
  readonly tokensOf: (entry: Entry) => number
  readonly tokensOfText: (text: string) => number
}

export interface AskDeadlines {
  readonly keepAliveMs: number
  /** With nothing arriving for so long an attempt has failed. */
  readonly stallMs: number
  readonly attemptMs: number
}

interface AskBase {
  /** 0 block, 1 fork, 2 a call of its own, 3 the same with less or in parts, 4 without a model. */
  readonly rung: 0 | 1 | 2 | 3 | 4
  readonly deadlines: AskDeadlines
}

/** The provider's own summary: what the parent sent, up to and with `through`, and `compaction` with these instructions. */
export interface BlockAsk extends AskBase {
  readonly kind: 'block'
  readonly instructions: string
  readonly beta: string | null
  readonly through: string
}

/** What the parent sent and this one message. For `up_to` only as far as `through`; null: all of it. */
export interface ForkAsk extends AskBase {
  readonly kind: 'fork'
  readonly message: ApiMessage
  readonly through: string | null
}

export interface DirectAsk extends AskBase, DirectInput {
  readonly kind: 'direct'
  /** Summarised records that this call is not shown. */
  readonly dropped: number
  readonly part: { readonly number: number; readonly of: number } | 'join' | null
}

/** The summary that needs no model, of these entries and below this size. */
export interface LocalAsk extends AskBase {
  readonly kind: 'local'
  readonly entries: readonly Entry[]
  readonly maximumTokens: number
}

export type Ask = BlockAsk | ForkAsk | DirectAsk | LocalAsk

/** Why a call gave no answer. A `Failure` of the engine is one. */
export interface AskFailure {
  readonly kind: string
  readonly message: string
  readonly gap?: { readonly actual?: number; readonly limit?: number; readonly over?: number }
}

export type AskOutcome =
  | { readonly kind: 'answer'; readonly content: readonly Block[]; readonly stopReason: string | null }
  | { readonly kind: 'failure'; readonly failure: AskFailure }
  /** Nothing arrived for too long, or it took too long in all. */
  | { readonly kind: 'stalled'; readonly message: string }
  /** The engine could not make the request: no parent, a fork refused. */
  | { readonly kind: 'unavailable'; readonly message: string }
  /** The text of a local summary. */
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'aborted' }

/** What is written into the boundary and told in events. */
export type FallbackReason = 'no_summary' | 'api_error' | 'prompt_too_long'

/** One rung tried or passed over, and why. */
export interface ChainStep {
  readonly rung: Ask['rung']
  readonly kind: Ask['kind']
  readonly outcome: 'accepted' | 'refused' | 'failed' | 'skipped'
  readonly reason: AnswerRefusal | string
  readonly message: string
}

interface DoneBase {
  readonly done: true
  readonly trace: readonly ChainStep[]
  /** Calls to a model that were made. */
  readonly calls: number
  /** Of the last call that brought no summary; null where none failed. */
  readonly fallbackReason: FallbackReason | null
}

export interface ChainSummary extends DoneBase {
  readonly ok: true
  readonly summarizer: Extract<CompactMetadata['summarizer'], 'model' | 'block' | 'local'>
  /** Headed `Summary:`; a block's text as the provider gave it. */
  readonly summary: string
  /** To be stored and sent back byte for byte. */
  readonly block: Block | null
  /** Summarised records that no model was shown: the local extractor covers them, in front of the summary. */
  readonly covered: readonly Entry[]
}

export interface ChainFailure extends DoneBase {
  readonly ok: false
  /** Aborted by the person: nothing changed, and no error. */
  readonly aborted: boolean
  readonly message: string
}

export type Done = ChainSummary | ChainFailure

// The chain of asking between two answers.

interface PartsState {
  readonly parts: readonly (readonly Entry[])[]
  /** Parts that have been asked about. */
  readonly asked: number
  readonly summaries: readonly string[]
  readonly outputTokens: number
}

export type Stage = 'block' | 'fork' | 'direct' | 'parts' | 'join' | 'together' | 'local' | 'failed'

export interface Chain {
  readonly context: ChainContext
  readonly stage: Stage
  readonly next: Ask | Done
  /** What a call of its own shows, stripped; shorter with each drop. */
  readonly material: readonly Entry[]
  /** Summarised entries that no model will have been shown. */
  readonly covered: readonly Entry[]
  /** Window of the summariser, in tokens, as stated or as an overflow told. */
  readonly window: number | null
  /** Calls of its own made so far that were no answer to an overflow. */
  readonly attempts: number
  readonly drops: number
  readonly parts: PartsState | null
  readonly asText: boolean
  /** The conversation's own model in place of the one that was set. */
  readonly usesOwn: boolean
  /** What was wrong with the last answer, for the next prompt. */
  readonly remark: string | null
  readonly calls: number
  readonly asked: readonly string[]
  readonly trace: readonly ChainStep[]
  readonly fallbackReason: FallbackReason | null
}

/** Entries of `entries` that the summary is to stand for: others are shown for context and stay in the view. */
export function summarisedOf(chain: Pick<Chain, 'context'>, entries: readonly Entry[]): readonly Entry[] {
  const gone = new Set(entries.map((entry) => entry.record.uuid))
  return chain.context.span.summarised.filter((entry) => gone.has(entry.record.uuid))
}

export function tokensIn(chain: Pick<Chain, 'context'>, entries: readonly Entry[]): number {
  return entries.reduce((sum, entry) => sum + chain.context.tokensOf(entry), 0)
}

export function stepped(chain: Chain, step: ChainStep): Chain {
  return { ...chain, trace: [...chain.trace, step] }
}

export function summariserOf({ context, usesOwn }: Chain): ChainContext['direct'] {
  return usesOwn ? context.own : context.direct
}
