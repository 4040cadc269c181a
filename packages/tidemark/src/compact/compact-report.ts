/** What `tidemark compact` tells, as plain JSON. */
import type { ApiMessage, CompactForm, CompactionDraft, Receipt } from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'
import type { CompactionStep } from './compaction-trace.ts'
import type { CompactionPrice } from './price.ts'

/** Before anything is written: plan, draft and receipt. */
export interface CompactionPreview {
  readonly file: string
  readonly format: LogFormat
  readonly sessionId: string | null
  readonly model: string
  /** Tokens; null where nobody knows. */
  readonly window: number | null
  /** Tokens of the next request as the session stands, and as it would be. */
  readonly tokensBefore: number
  readonly tokensAfter: number
  /** Tokens of system prompt and tools that the log does not have and that come on top of `tokensAfter`; an estimate. */
  readonly prefixTokens: number
  /** All that was ever said up to there, whatever was compacted before. */
  readonly session: Portion
  /** The last record that counts. */
  readonly at: string | null
  /** The record that was asked for, where the cut was moved back from it to where it may fall. */
  readonly movedFrom: string | null
  /** Records of the log that come later and are not part of it. */
  readonly recordsAfter: number
  readonly plan: PlannedCompaction
  /** Dollars; null where a price is not known. */
  readonly price: CompactionPrice | null
  readonly summarizer: CompactionDraft['summary']['summarizer']
  /** Why no model wrote it although one was asked; null where that is not so. */
  readonly fallbackReason: string | null
  readonly summary: string
  readonly ledger: readonly string[]
  readonly receipt: Receipt
  readonly trace: readonly CompactionStep[]
  readonly notes: readonly string[]
}

export interface CompactionReport extends CompactionPreview {
  /** Of the compaction: what `--undo` takes. */
  readonly id: string
  /** The messages of the next request. */
  readonly messages: readonly ApiMessage[]
}

export interface Portion {
  readonly records: number
  readonly tokens: number
}

export interface PlannedCompaction {
  readonly form: CompactForm
  /** Tokens that the view may have afterwards; null: it must only become smaller. */
  readonly target: number | null
  readonly goes: Portion
  /** On the other side of the cut, and pinned. */
  readonly stays: Portion
  /** Said by the person and not yet answered: stays, last of all. */
  readonly unanswered: Portion
  /** Things that come back from where they are kept: files, the todo list. */
  readonly comesBack: Portion
  /** A sentence on a pivot that was moved. */
  readonly note: string | null
}
