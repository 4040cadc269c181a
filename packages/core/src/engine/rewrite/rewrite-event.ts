/** What is told of acts that make room: what was planned, done, refused, and what it cost. */
import type { NotCarried } from '../../carry/carrier.ts'
import type { ClearProposal } from '../../clear/proposal.ts'
import type { ClearWay, CompactCause, CompactMetadata, CompactTrigger } from '../../conversation/metadata.ts'
import type { Plan } from '../../plan/plan.ts'
import type { ChainStep } from '../../summarize/ask.ts'
import type { Receipt } from '../../summarize/receipt.ts'
import type { CleanupFault, Rewritten } from './cleanups.ts'
import type { RewriteRefused } from './refused.ts'
import type { SummaryUsage } from './summary-usage.ts'
import type { ChainLink } from './tracking.ts'

/** What a person may be shown while they wait. */
export type RewritePhase =
  | 'running PreCompact hooks'
  | 'compacting'
  | 'bringing back context'
  | 'running SessionStart hooks'
  | 'running PostCompact hooks'
  | 'done'

export type RewriteEvent =
  /** What would be done before the next request, and why: told where it is more than to wait. */
  | { readonly type: 'planned'; readonly plan: Plan }
  | {
      readonly type: 'microcompact'
      readonly id: string
      readonly way: ClearWay
      readonly clearing: ClearProposal
      readonly tokensBefore: number
      readonly tokensAfter: number
    }
  /** The provider's cache has lapsed and with it what was deleted there: that text is in the request again. */
  | { readonly type: 'cache-edits-dropped'; readonly tokens: number }
  | { readonly type: 'phase'; readonly phase: RewritePhase }
  /** Nothing is wrong, it only takes long. `characters`: of the summary, so far. */
  | { readonly type: 'summary-progress'; readonly characters: number; readonly rung: number }
  /** Nothing has come for a while, and the summary is still waited for. `waitedMs`: since it was asked for. */
  | { readonly type: 'keep-alive'; readonly waitedMs: number }
  | { readonly type: 'hook-said'; readonly hook: string; readonly message: string }
  | { readonly type: 'hook-failed'; readonly hook: string; readonly message: string }
  /** A hook vetoed a compaction that could not wait: said, and not obeyed. */
  | { readonly type: 'veto-overruled'; readonly hook: string; readonly reason: string }
  | {
      readonly type: 'restored'
      readonly keys: readonly string[]
      readonly skipped: readonly NotCarried[]
      readonly shed: readonly string[]
    }
  | { readonly type: 'restore-failed'; readonly carrier: string; readonly why: string }
  | { readonly type: 'compact'; readonly compaction: Compacted }
  | {
      readonly type: 'compact-failed'
      readonly trigger: CompactTrigger
      readonly cause: CompactCause
      readonly refused: RewriteRefused
    }
  /** This many failed in a row: nothing is compacted by itself until something changes. */
  | { readonly type: 'breaker-open'; readonly failures: number; readonly reason: string }
  /** The provider refused the request as too long; it is made smaller and sent again. */
  | { readonly type: 'reactive-compact'; readonly message: string }
  /** A large result was put aside on arrival: the record shows its head and tail and says how to read the rest. */
  | { readonly type: 'spilled'; readonly toolUseId: string; readonly blobs: readonly string[] }
  /** It would have been put aside and stayed whole. */
  | { readonly type: 'spill-failed'; readonly toolUseId: string; readonly why: string }
  /** The provider does not know the thinking of so many responses: it is no longer sent back. */
  | { readonly type: 'thinking-dropped'; readonly responses: number }
  | { readonly type: 'undone'; readonly of: string; readonly kind: 'compact' | 'clear' }
  | { readonly type: 'rewritten'; readonly rewritten: Rewritten; readonly faults: readonly CleanupFault[] }

/** A compaction that was committed. */
export interface Compacted {
  /** Of its boundary: what `undo` takes. */
  readonly id: string
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly tokensBefore: number
  /** Estimate of the new view, not what the summary call reported. */
  readonly tokensAfter: number
  readonly summarizer: NonNullable<CompactMetadata['summarizer']>
  readonly fallbackReason: string | null
  readonly recordsCoveredLocally: number
  readonly durationMs: number
  readonly receipt: Receipt
  /** Sentences for the person: a cut that was moved, pins that found no room. */
  readonly notes: readonly string[]
  readonly steps: readonly ChainStep[]
  /** What the calls for the summary took. */
  readonly usage: SummaryUsage
  /** What made it start by itself: the auto-compact line, or that it pays; null where something else did. */
  readonly firedBy: 'threshold' | 'price' | null
  readonly link: ChainLink
  /** Even so much is left that the next turn compacts again. */
  readonly willRetrigger: boolean
}
