/**
 * Options and results of `compactLog`, the price of a compaction, and its trace: attempts to write a summary, and
 * re-attached files and todos.
 */
import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { TokenRates } from '@tidemark/core/cost/prices'
import type { IrreduciblePart, RefusedRewrite, TurnEvent } from '@tidemark/core/engine/events'
import type { Clock, IdGenerator, Journal } from '@tidemark/core/engine/ports'
import type { SessionRecord } from '@tidemark/core/log/record'
import { priceRewrittenContext } from '@tidemark/core/planner/plan-input'
import type { SkippedAttachment } from '@tidemark/core/sources/context-source'
import type { SummaryAttemptStep } from '@tidemark/core/summary/attempt-types'
import type { Receipt } from '@tidemark/core/summary/receipt'
import type { CompactionForm } from '@tidemark/core/summary/select-span'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import type { ModelChoice } from '../models/model-choice.ts'

export interface CompactLogOptions {
  /**
   * The uuid of the last record to compact, or the beginning of that uuid. If the log cannot be cut after this record,
   * the nearest valid cut before it is used. Default: the newest record.
   */
  readonly at?: string
  /**
   * The uuid of the first record to summarize, or its beginning; what is before it is kept. Default: everything is
   * summarized.
   */
  readonly from?: string
  /** The uuid of the first record to keep, or its beginning. Ignored if `from` is given. Default: everything is summarized. */
  readonly upTo?: string
  readonly instructions?: string
  /**
   * Maximum tokens of the context after the compaction, as `tokensAfter` of the report counts them. Default: half of the
   * size at which automatic compaction begins.
   */
  readonly target?: number
  /**
   * Maximum size of the result, attachments included, in percent of what it replaces (`compact.maximumPercentOfReplaced`).
   * A larger one is refused as not worth it, unless the window is full. Default: 50.
   */
  readonly maximumPercent?: number
  /** Maximum tokens of the list of file and symbol names that is added to the summary. */
  readonly ledger?: number
  /** The id of the model that continues the session. Default: the newest model in the log. */
  readonly model?: string
  /** The context window of that model in tokens. Default: read from the log, or from the catalogue if `model` is given. */
  readonly window?: number
  /**
   * Called with the id of the session's model; returns the model that writes the summary. Default: notes from the log
   * take the place of a summary, or fixed rules write one, without a model.
   */
  readonly summariser?: (model: string) => ModelChoice
  /**
   * The journal (store of logs) that contains the log and receives the new records. Default: a journal in memory, which
   * leaves the log file unchanged.
   */
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
      readonly written: LogCopy
    }
  | CompactLogRefusal

export interface LogCopy {
  /** Path of the log that was read. */
  readonly path: string
  readonly sessionId: string
  /** The records that were read from the log, up to the last one that the compaction includes. */
  readonly records: readonly SessionRecord[]
  /** The JSONL text of the records that the compaction or undo appended after `records`. */
  readonly added: string
  /** The field `copiedFrom` of the header: the log that was read, with metadata that its records do not contain. */
  readonly copiedFrom: object
}

export interface CompactLogRefusal {
  readonly ok: false
  /**
   * `bad-record`: the given uuid, or the beginning of one, matches no record, or several. `declined`: `confirm` returned
   * false. Other values: the engine refused the compaction or the undo.
   */
  readonly reason: RefusedRewrite['reason'] | 'bad-record' | 'declined'
  readonly message: string
  readonly floor?: readonly IrreduciblePart[]
}

// The JSON that `tidemark compact --json` prints.

/**
 * What a compaction will do (plan), its summary (draft) and what it removes (receipt), shown before any record is
 * appended.
 */
export interface CompactionPreview {
  readonly file: string
  readonly format: LogFormat
  readonly sessionId: string | null
  readonly model: string
  /** The model's context window in tokens; null if unknown. */
  readonly window: number | null
  /** Tokens of the context without the compaction. Leaves out `prefixTokens` and `plan.notEstimated`, and so does the target. */
  readonly tokensBefore: number
  /** Tokens of the context after the compaction, by the same estimate as `tokensBefore`. */
  readonly tokensAfter: number
  /** Estimated tokens of system prompt and tools that each request has but the log does not contain. */
  readonly prefixTokens: number
  /**
   * Records and tokens of the whole conversation up to the last compacted record, including records that earlier
   * compactions summarized.
   */
  readonly session: RecordsAndTokens
  /** The uuid of the last record that the compaction includes; null if there is none. */
  readonly at: string | null
  /**
   * The uuid of the record that the caller requested as the last one, if the log could not be cut after it and was cut
   * earlier; otherwise null.
   */
  readonly movedFrom: string | null
  /** Number of records after the last compacted record; the compaction leaves them out. */
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
  readonly trace: readonly CompactionTraceStep[]
  readonly notes: readonly string[]
}

export interface CompactionReport extends CompactionPreview {
  /** The id of the compaction, which `tidemark compact --undo` takes. */
  readonly id: string
  /** The messages that the next API request would contain after the compaction. */
  readonly messages: readonly ApiMessage[]
}

export interface RecordsAndTokens {
  readonly records: number
  readonly tokens: number
}

export interface PlannedCompaction {
  readonly form: CompactionForm
  /** Maximum tokens of the context after the compaction; null if the context only has to become smaller. */
  readonly target: number | null
  /** Number and tokens of the records that the summary replaces. */
  readonly goes: RecordsAndTokens
  /** Number and tokens of the records that stay in the context verbatim, including pinned records. */
  readonly stays: RecordsAndTokens
  /** Number and tokens of the user messages without a response, which stay at the end of the context. */
  readonly unanswered: RecordsAndTokens
  /** Number and tokens of the attachments that are added after the summary: files and the todo list. */
  readonly comesBack: RecordsAndTokens
  /**
   * Tokens that the provider counted in addition to the records and to `prefixTokens`. They are not part of
   * `tokensBefore`, because nothing shows that a compaction frees them. 0 for a session of Tidemark, whose sizes
   * include the system prompt and tools.
   */
  readonly notEstimated: number
  /**
   * A sentence that explains why the context is divided at another record than the requested one; null if it is not.
   */
  readonly note: string | null
}

// The price of a compaction, calculated from the sizes of its draft.

export interface CompactionPrice {
  /** Dollars for writing the new context to the prompt cache. */
  readonly costUsd: number
  /** Dollars that the model calls for the summary have cost, which are paid in any case; 0 without a model. */
  readonly paidUsd: number
  /** Dollars that the smaller context saves on each later model call, while it is read from the prompt cache. */
  readonly savedPerCallUsd: number
  /** Number of model calls after which the cost of writing has been saved; null if it never is. */
  readonly breakEvenCalls: number | null
}

/**
 * Prices a draft. `before`, `after`: tokens of the context. `unchanged`: tokens of system prompt and tools, which stay
 * in the cache. `rates`: dollars per million tokens. Null if a price is unknown.
 */
export function priceCompaction(
  {
    before,
    after,
    unchanged,
  }: { readonly before: number; readonly after: number; readonly unchanged: number },
  { input, output, cacheRead, cacheWritten }: CompactionDraft['usage'],
  rates: TokenRates,
): CompactionPrice | null {
  const price = priceRewrittenContext({ before, after, unchanged, rates, write: 'writeShort', isWarm: true })
  if (price === null || rates.input === null || rates.output === null) return null
  const paid =
    input * rates.input +
    output * rates.output +
    cacheRead * (rates.cacheRead ?? 0) +
    cacheWritten * (rates.writeShort ?? 0)
  const { cost: costUsd, savedPerCall: savedPerCallUsd, breakEvenCalls } = price
  return { costUsd, paidUsd: paid / 1_000_000, savedPerCallUsd, breakEvenCalls }
}

// The trace of a compaction: attempts to write a summary, and files and todos that were re-attached or dropped.

export interface CompactionTraceStep {
  readonly tier: 'compact' | 'summary' | 'carry'
  /**
   * What the step did: the form of the compaction, the kind of summary attempt, or the key of the re-attached source,
   * such as a file.
   */
  readonly kind: string
  readonly outcome: SummaryAttemptStep['outcome'] | 'carried' | 'shed'
  readonly chosen: boolean
  readonly why: string
  /** Tokens of the re-attached file or todo list; absent for other steps. */
  readonly tokens?: number
  /** Tokens before the compaction; like the next three fields, only in the step of the compaction itself. */
  readonly before?: number
  /** Tokens after the compaction. */
  readonly after?: number
  /** Price of the compaction in dollars; null if unknown. */
  readonly price?: number | null
  /** Number of model calls until the compaction has paid for itself; null if it never does, or if that is unknown. */
  readonly breakEven?: number | null
}

/** Collects engine events while a compaction is prepared, and converts them to the steps of the compaction's trace. */
interface TraceCollector {
  take(event: TurnEvent): void
  /** `scale`: the factor by which responses have corrected the estimates. */
  steps(draft: CompactionDraft, scale: number): readonly CompactionTraceStep[]
}

export function createTraceCollector(): TraceCollector {
  let shed: readonly string[] = []
  let skipped: readonly SkippedAttachment[] = []
  const failed: CompactionTraceStep[] = []
  return {
    take(event) {
      if (event.type === 'context-restored') [shed, skipped] = [event.shed, event.skipped]
      if (event.type === 'restore-failed') failed.push(createSourceStep('failed', event.carrier, event.why))
    },
    steps({ summary, sourcesBefore, sourcesAfter }, scale) {
      const brought = [...sourcesBefore, ...sourcesAfter]
      return [
        ...summary.steps.map(toSummaryStep),
        ...brought.map(({ key, source, tokens }) => ({
          ...createSourceStep('carried', key, `from ${source}`),
          tokens: Math.round(scale * tokens),
        })),
        ...shed.map((key) => createSourceStep('shed', key, 'there was no room for it')),
        ...skipped.map(({ key, why }) => createSourceStep('skipped', key, why)),
        ...failed,
      ]
    },
  }
}

function toSummaryStep({ rung, kind, outcome, reason, message }: SummaryAttemptStep): CompactionTraceStep {
  const why = message === '' ? reason : message
  return { tier: 'summary', kind: `${rung} ${kind}`, outcome, chosen: outcome === 'accepted', why }
}

function createSourceStep(
  outcome: CompactionTraceStep['outcome'],
  kind: string,
  why: string,
): CompactionTraceStep {
  return { tier: 'carry', kind, outcome, chosen: outcome === 'carried', why }
}
