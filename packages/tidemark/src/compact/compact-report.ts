/** Options and results of `compactLog`, the price of a compaction, and the trace of its attempts and re-attached sources. */
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
  /** The record up to which the log is compacted, or the nearest valid cut before it: a uuid or the beginning of one. */
  readonly at?: string
  /** `from`: the first record to summarize. `upTo`: the first record to keep. Default: everything is summarized. */
  readonly from?: string
  readonly upTo?: string
  readonly instructions?: string
  /** The most tokens the context may have after the compaction. Default: half of the auto-compact threshold. */
  readonly target?: number
  /** The token budget for the list of file and symbol names that is added to the summary. */
  readonly ledger?: number
  /** `model`: the model that continues the session. `window`: its context window in tokens. Defaults: from the log. */
  readonly model?: string
  readonly window?: number
  /** Returns the model that writes the summary, given the session's model id. Default: a local summary without a model. */
  readonly summariser?: (model: string) => ModelChoice
  /** The journal that contains the log and receives the new records. Default: a journal in memory. */
  readonly journal?: Journal
  /** The file that the summary names as the full transcript of the conversation. Default: the log itself. */
  readonly transcript?: string
  /** Called with the preview before any record is appended; returning false cancels the compaction. */
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
      /** The compacted log: the records that were read, and the lines that were appended. */
      readonly written: WrittenLog
    }
  | CompactLogRefusal

export interface WrittenLog {
  readonly sessionId: string
  /** The records of the log up to the cut. */
  readonly records: readonly SessionRecord[]
  /** The JSONL text of the records that were appended after `records`. */
  readonly added: string
}

export interface CompactLogRefusal {
  readonly ok: false
  /** `bad-record`: no record has the given id. `declined`: `confirm` returned false. Others: reasons of the engine. */
  readonly reason: RefusedRewrite['reason'] | 'bad-record' | 'declined'
  readonly message: string
  readonly floor?: readonly ContextPart[]
}

// The JSON that `tidemark compact --json` prints.

/** The plan, draft and receipt of a compaction, as shown before any record is appended. */
export interface CompactionPreview {
  readonly file: string
  readonly format: LogFormat
  readonly sessionId: string | null
  readonly model: string
  /** The model's context window in tokens; null if unknown. */
  readonly window: number | null
  /** Tokens of the next API request without the compaction (`tokensBefore`) and with it (`tokensAfter`). */
  readonly tokensBefore: number
  readonly tokensAfter: number
  /** Estimated tokens of system prompt and tools that the log does not contain. `tokensAfter` does not include them. */
  readonly prefixTokens: number
  /** Size of the whole conversation up to the cut, including records that earlier compactions summarized. */
  readonly session: RecordsSize
  /** The uuid of the last record before the cut; null if there is none. */
  readonly at: string | null
  /** The uuid of the requested record if the cut had to be moved back from it; otherwise null. */
  readonly movedFrom: string | null
  /** Number of records after the cut; the compaction does not include them. */
  readonly recordsAfter: number
  readonly plan: PlannedCompaction
  /** The price of the compaction in dollars; null if the price of the model is unknown. */
  readonly price: CompactionPrice | null
  readonly summarizer: CompactionDraft['summary']['summarizer']
  /** Why the summary was made locally although a model was requested; null if no fallback was needed. */
  readonly fallbackReason: string | null
  readonly summary: string
  readonly ledger: readonly string[]
  readonly receipt: Receipt
  readonly trace: readonly CompactionStep[]
  readonly notes: readonly string[]
}

export interface CompactionReport extends CompactionPreview {
  /** The id of the compaction, which `tidemark compact --undo` takes. */
  readonly id: string
  /** The messages that the next API request would contain after the compaction. */
  readonly messages: readonly ApiMessage[]
}

export interface RecordsSize {
  readonly records: number
  readonly tokens: number
}

export interface PlannedCompaction {
  readonly form: CompactionForm
  /** The most tokens the context may have after the compaction; null if it only has to become smaller. */
  readonly target: number | null
  readonly goes: RecordsSize
  /** Records that stay in the context verbatim, including pinned ones. */
  readonly stays: RecordsSize
  /** User messages that have no response yet; they stay at the end of the context. */
  readonly unanswered: RecordsSize
  /** State that is re-attached after the summary: files and the todo list. */
  readonly comesBack: RecordsSize
  /** A sentence that explains why the requested cut was moved; null if it was not. */
  readonly note: string | null
}

// The price of a compaction, calculated from the token counts before and after it.

export interface CompactionPrice {
  /** Dollars for the model call that writes the summary (if any) and for writing the new context to the prompt cache. */
  readonly costUsd: number
  /** Dollars that each later model call saves while the context is read from the prompt cache. */
  readonly savedPerCallUsd: number
  /** Number of model calls after which the compaction has paid for itself; null if it never does. */
  readonly breakEvenCalls: number | null
}

/**
 * Prices a compaction. `before` and `after` both include system prompt and tools. `asked`: tokens of the model call
 * that wrote the summary; null for a local summary. Returns null if a rate is unknown.
 */
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

// The trace of a compaction: attempts to write a summary, and context sources that were re-attached or dropped.

export interface CompactionStep {
  readonly tier: 'compact' | 'summary' | 'carry'
  /** The form of the compaction, the kind of the summary attempt, or the key of the context source. */
  readonly kind: string
  readonly outcome: AttemptStep['outcome'] | 'carried' | 'shed'
  readonly chosen: boolean
  readonly why: string
  /** Tokens of a re-attached context source; absent for other steps. */
  readonly tokens?: number
  /** For the compaction step only: tokens before and after, price in dollars, and calls until it has paid for itself. */
  readonly before?: number
  readonly after?: number
  readonly price?: number | null
  readonly breakEven?: number | null
}

/** Collects events while a compaction is prepared and returns them as the steps of its trace. */
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
