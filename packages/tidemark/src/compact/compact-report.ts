/** Options and results of `compactLog`, the price of a compaction, and the trace of how it came about. */
import type {
  ApiMessage,
  AttemptStep,
  Clock,
  CompactionDraft,
  CompactionForm,
  ContextPart,
  IdGenerator,
  Journal,
  Receipt,
  RefusedRewrite,
  SessionRecord,
  SkippedAttachment,
  TokenRates,
  TurnEvent,
} from '@tidemark/core'
import type { LogFormat } from '@tidemark/wire'
import type { ModelChoice } from '../models/model-choice.ts'

export interface CompactLogOptions {
  /** Compacts the log up to this record, or to the nearest valid cut before it. A uuid or an unambiguous beginning of one. */
  readonly at?: string
  /** Summarises from this record on, or up to it; everything by default. */
  readonly from?: string
  readonly upTo?: string
  readonly instructions?: string
  /** Tokens that the context may have afterwards; half of the auto-compact line by default. */
  readonly target?: number
  /** Token budget of the ledger of names. */
  readonly ledger?: number
  /** The model that continues the session, and its window; from the log by default. */
  readonly model?: string
  readonly window?: number
  /** The model that writes the summary, given the session's model; without it the summary is made without a model. */
  readonly summariser?: (model: string) => ModelChoice
  /** The journal that holds the log and is appended to; in memory by default. */
  readonly journal?: Journal
  /** The file where the model is told it can read the whole conversation; the log by default. */
  readonly transcript?: string
  /** Called before anything is appended; false cancels. */
  readonly confirm?: (preview: CompactionPreview) => Promise<boolean>
  readonly onEvent?: (event: TurnEvent) => void
  readonly signal?: AbortSignal
  readonly clock?: Clock
  readonly ids?: IdGenerator
}

export type CompactLogResult =
  | {
      readonly ok: true
      readonly report: CompactionReport
      /** The log afterwards. */
      readonly written: WrittenLog
    }
  | CompactLogRefusal

export interface WrittenLog {
  readonly sessionId: string
  /** The records read, up to the cut. */
  readonly records: readonly SessionRecord[]
  /** The lines appended to them. */
  readonly added: string
}

export interface CompactLogRefusal {
  readonly ok: false
  /** `bad-record`: no record has this id; `declined`: `confirm` returned false; else the engine's reason. */
  readonly reason: RefusedRewrite['reason'] | 'bad-record' | 'declined'
  readonly message: string
  readonly floor?: readonly ContextPart[]
}

// What `tidemark compact --json` prints.

/** Before anything is written: plan, draft and receipt. */
export interface CompactionPreview {
  readonly file: string
  readonly format: LogFormat
  readonly sessionId: string | null
  readonly model: string
  /** Tokens; null if unknown. */
  readonly window: number | null
  /** Tokens of the next request without and with the compaction. */
  readonly tokensBefore: number
  readonly tokensAfter: number
  /** Estimated tokens of system prompt and tools that the log does not have; they come on top of `tokensAfter`. */
  readonly prefixTokens: number
  /** The whole conversation up to there, including what was compacted before. */
  readonly session: Portion
  /** The last record of the compacted part of the log. */
  readonly at: string | null
  /** The requested record, if the cut had to be moved back from it. */
  readonly movedFrom: string | null
  /** Number of later records, which are not part of it. */
  readonly recordsAfter: number
  readonly plan: PlannedCompaction
  /** Dollars; null if a price is not known. */
  readonly price: CompactionPrice | null
  readonly summarizer: CompactionDraft['summary']['summarizer']
  /** Why no model wrote the summary although one was asked; null otherwise. */
  readonly fallbackReason: string | null
  readonly summary: string
  readonly ledger: readonly string[]
  readonly receipt: Receipt
  readonly trace: readonly CompactionStep[]
  readonly notes: readonly string[]
}

export interface CompactionReport extends CompactionPreview {
  /** Id of the compaction, for `--undo`. */
  readonly id: string
  /** The messages of the next request. */
  readonly messages: readonly ApiMessage[]
}

export interface Portion {
  readonly records: number
  readonly tokens: number
}

export interface PlannedCompaction {
  readonly form: CompactionForm
  /** Tokens that the context may have afterwards; null: it must only become smaller. */
  readonly target: number | null
  readonly goes: Portion
  /** Kept verbatim, and pinned. */
  readonly stays: Portion
  /** User messages without a response: they stay, at the end. */
  readonly unanswered: Portion
  /** Re-attached state: files, the todo list. */
  readonly comesBack: Portion
  /** A sentence about a pivot that was moved. */
  readonly note: string | null
}

// The price of a compaction, from its real sizes.

export interface CompactionPrice {
  /** Dollars: for a summary written by a model, and for writing the new context to the cache. */
  readonly costUsd: number
  /** Dollars that each later call costs less, as long as either context is read from the cache. */
  readonly savedPerCallUsd: number
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
}

/** `after` includes system prompt and tools, as `before` does. `asked`: tokens of a summary written by a model. */
export function priceCompaction(
  before: number,
  after: number,
  asked: { readonly input: number; readonly output: number } | null,
  rates: TokenRates,
): CompactionPrice | null {
  const { cacheRead, write5m, input, output } = rates
  if (cacheRead === null || write5m === null || input === null || output === null) return null
  const summary = asked === null ? 0 : asked.input * input + asked.output * output
  const costUsd = (summary + after * write5m) / 1_000_000
  const savedPerCallUsd = ((before - after) * cacheRead) / 1_000_000
  const breakEvenCalls = savedPerCallUsd <= 0 ? null : Math.ceil(costUsd / savedPerCallUsd)
  return { costUsd, savedPerCallUsd, breakEvenCalls }
}

// The trace of a compaction: attempts at a summary, and re-attached or dropped sources.

export interface CompactionStep {
  readonly tier: 'compact' | 'summary' | 'carry'
  /** The form of the compaction, the kind of the attempt, or the key of the source. */
  readonly kind: string
  readonly outcome: AttemptStep['outcome'] | 'carried' | 'shed'
  readonly chosen: boolean
  readonly why: string
  /** Of a re-attached source. */
  readonly tokens?: number
  /** Of the compaction: tokens, dollars, and calls after which it has paid for itself. */
  readonly before?: number
  readonly after?: number
  readonly price?: number | null
  readonly breakEven?: number | null
}

/** Collects the events of a compaction for its trace. */
export interface TraceCollector {
  take(event: TurnEvent): void
  steps(draft: CompactionDraft): readonly CompactionStep[]
}

export function createTraceCollector(): TraceCollector {
  let shed: readonly string[] = []
  let skipped: readonly SkippedAttachment[] = []
  const failed: CompactionStep[] = []
  return {
    take(event) {
      if (event.type === 'context-restored') [shed, skipped] = [event.shed, event.skipped]
      if (event.type === 'restore-failed') failed.push(createSourceStep('failed', event.carrier, event.why))
    },
    steps({ summary, sourcesBefore, sourcesAfter }) {
      const brought = [...sourcesBefore, ...sourcesAfter]
      return [
        ...summary.steps.map(toSummaryStep),
        ...brought.map(({ key, source, tokens }) => ({
          ...createSourceStep('carried', key, `from ${source}`),
          tokens,
        })),
        ...shed.map((key) => createSourceStep('shed', key, 'there was no room for it')),
        ...skipped.map(({ key, why }) => createSourceStep('skipped', key, why)),
        ...failed,
      ]
    },
  }
}

function toSummaryStep({ rung, kind, outcome, reason, message }: AttemptStep): CompactionStep {
  const why = message === '' ? reason : message
  return { tier: 'summary', kind: `${rung} ${kind}`, outcome, chosen: outcome === 'accepted', why }
}

function createSourceStep(outcome: CompactionStep['outcome'], kind: string, why: string): CompactionStep {
  return { tier: 'carry', kind, outcome, chosen: outcome === 'carried', why }
}
