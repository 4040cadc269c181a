/** What `compactLog` takes, and how it comes out. */
import type { Clock, FloorItem, Ids, Journal, RewriteRefused, SessionRecord, TurnEvent } from '@tidemark/core'
import type { ModelChoice } from '../session/model-choice.ts'
import type { CompactionPreview, CompactionReport } from './compact-report.ts'

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
