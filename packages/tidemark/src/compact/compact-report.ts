/** What `compactLog` takes, and how it comes out. */
import type {
  ApiMessage,
  ChainStep,
  Clock,
  CompactForm,
  CompactionDraft,
  FloorItem,
  Ids,
  Journal,
  NotCarried,
  Rates,
  Receipt,
  RewriteRefused,
  SessionRecord,
  TurnEvent,
} from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'
import type { ModelChoice } from '../models/model-choice.ts'

export interface CompactLogOptions {
  /** Compacts as of this record, moved back to where a conversation may be cut. A uuid, or enough of its beginning. */
  readonly at?: string
  /** Summarises what comes from this record on, or what comes before it; all of it unless given. */
  readonly from?: string
  readonly upTo?: string
  readonly instructions?: string
  /** Tokens that the conversation may have afterwards; half of the auto-compact line unless given. */
  readonly target?: number
  /** Tokens of the ledger of names. */
  readonly ledger?: number
  /** The model that the session goes on with, and its window; what the log says unless given. */
  readonly model?: string
  readonly window?: number
  /** Who writes the summary, given the session's model; made without a model unless given. */
  readonly summariser?: (model: string) => ModelChoice
  /** The journal that holds the log, to be appended to; in memory alone unless given. */
  readonly journal?: Journal
  /** Where the model is told that the whole can be read; the log unless given. */
  readonly transcript?: string
  /** Asked before anything is appended. */
  readonly confirm?: (preview: CompactionPreview) => Promise<boolean>
  readonly onEvent?: (event: TurnEvent) => void
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly ids?: Ids
}

export type CompactedLog =
  | {
      readonly ok: true
      readonly report: CompactionReport
      /** The log as it then is. */
      readonly written: WrittenLog
    }
  | CompactLogRefusal

export interface WrittenLog {
  readonly sessionId: string
  /** What was read, up to the cut. */
  readonly records: readonly SessionRecord[]
  /** The lines behind it. */
  readonly added: string
}

export interface CompactLogRefusal {
  readonly ok: false
  /** `bad-record`: an id that names none; `declined`: whoever was asked said no; else the engine's reason. */
  readonly reason: RewriteRefused['reason'] | 'bad-record' | 'declined'
  readonly message: string
  readonly floor?: readonly FloorItem[]
}

// What `tidemark compact` tells, as plain JSON.

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

// What a compaction costs and when it has paid for itself, from its real sizes.

export interface CompactionPrice {
  /** Dollars: for the summary where a model writes it, and for writing the new view into the cache. */
  readonly costUsd: number
  /** Dollars that each later call costs less, as long as both views would be read from the cache. */
  readonly savedPerCallUsd: number
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
}

export interface PriceQuestion {
  readonly before: number
  /** With system prompt and tools, as `before` is. */
  readonly after: number
  /** Tokens of the summary that a model wrote; null where none did. */
  readonly asked: { readonly input: number; readonly output: number } | null
  readonly rates: Rates
}

/** Null where a price is not known. */
export function priceOf({ before, after, asked, rates }: PriceQuestion): CompactionPrice | null {
  const { cacheRead, write5m, input, output } = rates
  if (cacheRead === null || write5m === null || input === null || output === null) return null
  const summary = asked === null ? 0 : asked.input * input + asked.output * output
  const costUsd = (summary + after * write5m) / 1_000_000
  const savedPerCallUsd = ((before - after) * cacheRead) / 1_000_000
  const breakEvenCalls = savedPerCallUsd <= 0 ? null : Math.ceil(costUsd / savedPerCallUsd)
  return { costUsd, savedPerCallUsd, breakEvenCalls }
}

// How a compaction came about, step by step: what was asked for a summary, what was brought back, what was let go.

export interface CompactionStep {
  readonly tier: 'compact' | 'summary' | 'carry'
  /** The form of the compaction; the rung that was asked; the key of what was brought back. */
  readonly kind: string
  readonly outcome: ChainStep['outcome'] | 'carried' | 'shed'
  readonly chosen: boolean
  readonly why: string
  /** Tokens of what was brought back. */
  readonly tokens?: number
  /** Of the compaction: tokens, dollars, and calls until it has paid for itself. */
  readonly before?: number
  readonly after?: number
  readonly price?: number | null
  readonly breakEven?: number | null
}

export interface TraceNotes {
  take(event: TurnEvent): void
  steps(draft: CompactionDraft): readonly CompactionStep[]
}

export function createTraceNotes(): TraceNotes {
  let shed: readonly string[] = []
  let skipped: readonly NotCarried[] = []
  const failed: CompactionStep[] = []
  return {
    take(event) {
      if (event.type === 'context-restored') [shed, skipped] = [event.shed, event.skipped]
      if (event.type === 'restore-failed') failed.push(step('failed', event.carrier, event.why))
    },
    steps({ summary, front, carried }) {
      const brought = [...front, ...carried]
      return [
        ...summary.steps.map(summaryStep),
        ...brought.map(({ key, source, tokens }) => ({ ...step('carried', key, `from ${source}`), tokens })),
        ...shed.map((key) => step('shed', key, 'there was no room for it')),
        ...skipped.map(({ key, why }) => step('skipped', key, why)),
        ...failed,
      ]
    },
  }
}

function summaryStep({ rung, kind, outcome, reason, message }: ChainStep): CompactionStep {
  const why = message === '' ? reason : message
  return { tier: 'summary', kind: `${rung} ${kind}`, outcome, chosen: outcome === 'accepted', why }
}

function step(outcome: CompactionStep['outcome'], kind: string, why: string): CompactionStep {
  return { tier: 'carry', kind, outcome, chosen: outcome === 'carried', why }
}
