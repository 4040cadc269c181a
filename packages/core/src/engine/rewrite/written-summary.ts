/** A summary as it was written, by whomever; and how a host writes one itself. */
import type { Block } from '../../conversation/block.ts'
import type { CompactMetadata } from '../../conversation/metadata.ts'
import type { ChainStep } from '../../summarize/ask.ts'
import type { Span } from '../../summarize/span.ts'
import type { Signal } from '../ports.ts'

/** As whoever writes it gives it: gate and ledger come after. */
export interface RawSummary {
  readonly ok: true
  /** Headed `Summary:`. */
  readonly text: string
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  /** The provider's own, to be sent back as it is. */
  readonly block: Block | null
  readonly recordsCoveredLocally: number
  readonly fallbackReason: string | null
  readonly steps: readonly ChainStep[]
}

export interface WrittenSummary extends RawSummary {
  /** What the gate and the ledger add, where the summary itself may not be touched: a provider's own block. */
  readonly beside: string
  /** The names the work is using, as lines. */
  readonly ledger: readonly string[]
  /** What it lacked and found no room to be put back. */
  readonly unfit: readonly string[]
}

export interface SummaryQuestion {
  readonly sessionId: string
  /** What the summary stands for, and what it is shown. */
  readonly span: Span
  /** Composed and bounded; null where nobody wants anything. */
  readonly instructions: string | null
}

/** Null: it could not be written, and the compaction is not made. What is thrown counts as that. */
export type WriteSummary = (question: SummaryQuestion, signal?: Signal) => Promise<string | null>
