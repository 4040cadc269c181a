/**
 * Events of a session's notes: their updates, and compactions with them. In telemetry a hyphen is an underscore:
 * `sm_compact`, `sm_compact_threshold_exceeded`, and `sm_compact_` with the reason for `sm-compact-refused`.
 */
import type { ToolUseBlock } from '../log/block.ts'
import { NO_SUMMARY_USAGE, type SummaryUsage } from './summary-usage.ts'

export type NotesEvent =
  /** The notes were updated. `tokens`: their size. `cost`: that of the model calls; none if kept from the log. */
  | {
      readonly type: 'notes-updated'
      readonly by: 'model' | 'local'
      readonly coveredUuid: string | null
      readonly tokens: number
      readonly cost: NotesCost
    }
  /** An update of the notes failed. The old notes stay as they were. */
  | {
      readonly type: 'notes-failed'
      readonly by: 'model' | 'local'
      readonly reason: NotesFailureReason
      readonly message: string
      readonly cost: NotesCost
      /** Set after several failures in a row: the model is not asked again before the next compaction or a new session. */
      readonly isPaused?: true
    }
  /** A model that was to update the notes tried something else. It was not done. */
  | { readonly type: 'notes-tool-refused'; readonly call: ToolUseBlock; readonly message: string }
  /** The context was compacted with the notes, without a model call. Follows `compact`. */
  | {
      readonly type: 'sm-compact'
      /** uuid of the compaction's boundary record, as in `compact`. */
      readonly id: string
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly by: 'model' | 'local'
      /** Why notes from the log were used in place of those of the model; null if they were not. */
      readonly fallbackReason: NotesFallbackReason | null
      /** Entries and tokens kept verbatim after the notes. */
      readonly kept: { readonly entries: number; readonly tokens: number }
      /** Headings of the sections that were cut at their limit. */
      readonly cut: readonly string[]
    }
  /** With the notes, the context would reach the auto-compact threshold again. A summary is written instead. */
  | {
      readonly type: 'sm-compact-threshold-exceeded'
      readonly tokens: number
      readonly threshold: number
    }
  /** The context cannot be compacted with the notes. A summary is written instead, unless a hook blocked the compaction. */
  | { readonly type: 'sm-compact-refused'; readonly reason: NotesRefusalReason; readonly message: string }

/** What the model calls of an update of the notes cost; `dollars` is null if a price is unknown. */
export interface NotesCost {
  readonly usage: SummaryUsage
  readonly dollars: number | null
}

export type NotesFailureReason =
  | 'aborted'
  /** Nothing was sent yet, or the conversation was rewritten since: there is nothing to continue from. */
  | 'nothing-to-fork'
  | 'model-failed'
  /** The output limit ended the answer. */
  | 'cut-off'
  /** The answer changed nothing. */
  | 'no-change'
  /** The result lacks sections, is empty or too long. */
  | 'bad-notes'
  /** The notes could not be read or stored. */
  | 'store'

/** `threshold`: with the notes of the model, the context would reach the auto-compact threshold again. */
export type NotesFallbackReason = NotesRefusalReason | 'threshold'

export type NotesRefusalReason =
  | 'no-notes'
  | 'empty-notes'
  /** The notes could not be read. */
  | 'store'
  /** It is not known which record the notes cover last. */
  | 'unknown-coverage'
  /** The last covered record is no longer in the context. */
  | 'not-in-context'
  /** A hook blocked the compaction. No summary is written either. */
  | 'blocked'
  /** The compaction itself was refused; the message says why. */
  | 'refused'
  /** Something threw an error. */
  | 'error'

/** The cost of notes that are kept from the log: no model is called. */
export const FREE_NOTES: NotesCost = { usage: NO_SUMMARY_USAGE, dollars: 0 }
