/**
 * The JSON that the page of `tidemark ui` gets: reports of `inspect --json`, and details that are created when the user
 * opens them. Types only: the browser's code imports no other file of the library.
 */

import type { BreakCause, LargeBlock, LoggedRequest, SessionReport } from '../inspect/report.ts'
import type { PolicyReplay, ReplayPoint } from '../replay/policy-replay.ts'

/** A session in the list of the page: its report without what only the session's own page shows. */
export interface ListedSession
  extends Omit<SessionReport, 'requests' | 'context' | 'largest' | 'byTool' | 'duplicateReads'> {
  /** Identifies the session in addresses of the page. Does not reveal the file. */
  readonly id: string
  /** True if the log was written to within the last minutes. */
  readonly isLive: boolean
  /** Whose session it is; absent if all sessions belong to one user. */
  readonly owner?: SessionOwner
}

/** Whose session it is: the key of the gateway, by its name. */
export interface SessionOwner {
  readonly key: string
  readonly team: string | null
  /** The session id that the client chose. */
  readonly session: string
}

export interface SessionList {
  readonly sessions: readonly ListedSession[]
  /** Logs that were found and are still to be read. */
  readonly pending: number
  /** Logs that were found but are not read, because there are too many newer ones. */
  readonly notRead: number
  readonly unreadable: readonly { readonly file: string; readonly why: string }[]
}

/** The report of one session, as `inspect --json` prints it. */
export interface SessionPageData {
  readonly id: string
  readonly report: SessionReport
  readonly isLive: boolean
  /** Null if the page cannot undo anything. */
  readonly undo: UndoAvailability | null
  readonly owner?: SessionOwner
}

/** Whether the newest compaction or clearing can be undone on the page, and if not, why. */
export interface UndoAvailability {
  /** The compaction or clearing; null if there is none in effect, or if the session is not one of Tidemark's own. */
  readonly target: { readonly id: string; readonly kind: 'compact' | 'clear' } | null
  /** Why the button is off, as one sentence; null if it is on. */
  readonly why: string | null
}

/** A block as the page shows it: one line about it, and its whole text without secrets. */
export interface ShownBlock extends Pick<LargeBlock, 'kind' | 'tool' | 'what' | 'tokens'> {
  readonly role: string
  /** The line of the block's record in the log; null for a block without a record, such as a placeholder. */
  readonly line: number | null
  readonly text: string
}

export interface RequestBlock extends ShownBlock {
  /** True if the previous request did not have the record of the block. */
  readonly isNew: boolean
}

/** One request with everything that the model was shown. */
export interface RequestContents {
  /** Index in `requests` of the report. */
  readonly index: number
  readonly at: string
  readonly model: string
  readonly line: number
  /** System prompt and tools, as far as the log has them. */
  readonly system: readonly { readonly name: string; readonly text: string }[]
  readonly tools: readonly { readonly name: string; readonly text: string }[]
  readonly blocks: readonly RequestBlock[]
  readonly response: readonly ShownBlock[]
}

export type PageSessionReport = SessionReport
export type PageModelRequest = LoggedRequest
export type PageBreakCause = BreakCause

/** A fact that the context after a compaction no longer mentions. */
export interface LostFact {
  readonly text: string
  /** The line of its record in the log; null if it is not known. */
  readonly line: number | null
  /** Index of the first later request whose response names it; null if none does. */
  readonly neededAt: number | null
}

/** A block that left the context. Its text is loaded when it is opened. */
export interface RemovedBlock extends Omit<ShownBlock, 'text'> {
  readonly key: string
  /** Index of the first later request whose response needed it, with the reason in `how`; null if none did. */
  readonly neededAt: number | null
  readonly how: 'read again' | 'edited' | null
}

/** A compaction or clearing that was in effect, and what the model was no longer shown. */
export interface ContextRemoval {
  /** The uuid of its record. */
  readonly id: string
  readonly kind: 'compaction' | 'clearing'
  /** Index of the next request; the number of requests if none followed. */
  readonly request: number
  readonly summary: string | null
  /** Messages that stayed as they were. */
  readonly kept: number
  /** What a compaction lost; null for a clearing. */
  readonly receipt: {
    readonly files: readonly LostFact[]
    readonly userMessages: readonly LostFact[]
    readonly errors: readonly LostFact[]
    readonly identifiers: readonly LostFact[]
    readonly moreIdentifiers: number
    /** Context sources that were attached again. */
    readonly carried: readonly string[]
    /** Facts that were too large for the summary. */
    readonly unfit: number
  } | null
  readonly gone: readonly RemovedBlock[]
}

export interface RemovedBlockMatch {
  /** The uuid of the compaction or clearing. */
  readonly id: string
  readonly key: string
  readonly excerpt: string
}

/** What the session would have cost under one policy, by a replay. */
export interface PagePolicyReplay extends Omit<PolicyReplay, 'points'> {
  readonly points: readonly ReplayPoint[]
  /**
   * Dollars of recorded cache breaks that a replay does not repeat. They are subtracted from the recording before the
   * comparison.
   */
  readonly breaksUsd: number
}

/** The outcome of an undo on the page, as one sentence. */
export interface PageUndoOutcome {
  readonly ok: boolean
  readonly message: string
}

/** The viewer of a gateway's page, and what they see: everything, the sessions of a team, or those of their own key. */
export interface TeamViewer {
  readonly name: string
  readonly team: string | null
  readonly sees: 'all' | 'team' | 'own'
}

/** Settled calls of one key, team, model or day. */
export interface SpendingRow {
  /** Id of the key, name of the team or model, or day as YYYY-MM-DD. Null for keys without a team. */
  readonly name: string | null
  readonly calls: number
  readonly usd: number
  /** The part of `usd` that no provider reported. */
  readonly estimatedUsd: number
  readonly input: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly output: number
}

/** A key with what `tidemark gateway keys list` says about it, and its calls in the days that are shown. */
export interface TeamKeySpending extends SpendingRow {
  readonly key: string
  readonly hint: string
  readonly team: string | null
  readonly budget: number | null
  readonly period: string
  /** Dollars of the settled calls in the current budget period. */
  readonly spent: number
  /** Dollars reserved for running calls. */
  readonly reserved: number
  readonly isRevoked: boolean
}

/** What cache breaks with one cause have cost a team. */
export interface TeamCacheLoss {
  readonly cause: BreakCause
  readonly breaks: number
  readonly usd: number
  /** Breaks whose price is unknown. `usd` does not include them. */
  readonly unpriced: number
}

export interface TeamFigures {
  /** The first day, in UTC, as YYYY-MM-DD; null for all. */
  readonly since: string | null
  readonly total: SpendingRow
  /** Dollars that are reserved for calls in progress. */
  readonly runningUsd: number
  /** The most expensive first, as in `teams`, `models` and `losses`. */
  readonly keys: readonly TeamKeySpending[]
  readonly teams: readonly SpendingRow[]
  readonly models: readonly SpendingRow[]
  /** In order. Days without a call are missing. */
  readonly days: readonly SpendingRow[]
  readonly losses: readonly TeamCacheLoss[]
  /** Sessions used in these days, and how many of them still have losses to be read. */
  readonly sessions: number
  readonly unread: number
}
