/** Compacts the session of a log: as of one of its records, in memory or in its own file. The library half of `tidemark compact`. */
import {
  type ApiMessage,
  type CompactAsked,
  type CompactionDraft,
  type CompactionPlan,
  chooseUndo,
  measureNow,
  messagesOf,
  type RewriteRefused,
} from '@tidemark/core'
import type { ReadLog } from '../logs/read-session.ts'
import {
  type CompactedLog,
  type CompactLogOptions,
  type CompactLogRefusal,
  createTraceNotes,
  type WrittenLog,
} from './compact-report.ts'
import { type LogModel, modelOfLog } from './log-model.ts'
import { createLogJournal, type LogJournal, type LogSession, sessionOn } from './log-session.ts'
import { measuredPrefix, prefixBeside, previewOf, shownTokens } from './preview.ts'
import { askedOf, cutOf, type LogAsOf, namedRecord, restamped, wholeLog } from './select-records.ts'

/** Nothing is ever written to the log but through the journal that is given. */
export async function compactLog(log: ReadLog, options: CompactLogOptions = {}): Promise<CompactedLog> {
  const opened = await openCompaction(log, options)
  if (!opened.ok) return opened
  const { session, asked, cut, model, journal, notes } = opened
  const plan = session.plan(asked)
  if (!plan.ok) return plan
  const draft = await draftOf(session, plan)
  if (!draft.ok) return draft
  const said = [...model.notes, ...instructionsNote(options)]
  const trace = notes.steps(draft)
  const preview = previewOf({ log, cut, model, session, draft, trace, notes: said })
  if (options.confirm !== undefined && !(await options.confirm(preview))) return DECLINED
  const committed = await session.commit(draft)
  if (!committed.ok) return committed
  const { id, tokensAfter } = committed.compaction
  const messages = messagesOf(session.state.flat)
  return {
    ok: true,
    report: { ...preview, tokensAfter, id, messages },
    written: { sessionId: session.state.id, records: cut.records, added: journal?.added ?? '' },
  }
}

/**
 * Where the log does not have the prompt, what was measured before holds it and what is estimated after does not:
 * the two are made alike for the judgement whether anything is gained.
 */
async function draftOf(session: LogSession, plan: CompactionPlan): Promise<CompactionDraft | RewriteRefused> {
  const { before } = plan
  const beside = measuredPrefix(plan, prefixBeside(session))
  const expected = Math.max(before.expected - beside, Math.min(before.expected, shownTokens(session)))
  const alike = { ...before, expected, high: Math.max(before.high - beside, expected) }
  const draft = await session.prepare({ ...plan, before: alike })
  return draft.ok ? { ...draft, plan } : draft
}

function instructionsNote({ instructions, summariser }: CompactLogOptions): readonly string[] {
  return instructions === undefined || summariser !== undefined
    ? []
    : ['instructions are for a model: a summary that is made without one follows fixed rules']
}

const DECLINED: CompactLogRefusal = { ok: false, reason: 'declined', message: 'Nothing was changed.' }

interface Opened {
  readonly ok: true
  readonly session: LogSession
  readonly asked: CompactAsked
  readonly cut: LogAsOf
  readonly model: LogModel
  /** Null where the session was opened on a journal of its own. */
  readonly journal: LogJournal | null
  readonly notes: ReturnType<typeof createTraceNotes>
}

async function openCompaction(log: ReadLog, options: CompactLogOptions): Promise<Opened | CompactLogRefusal> {
  const all = wholeLog(log)
  const cut = cutOf(all, options)
  if (!cut.ok) return { ok: false, reason: cut.reason, message: cut.message }
  const asked = askedOf(all, options)
  if (!asked.ok) return { ok: false, reason: 'bad-record', message: asked.message }
  const model = modelOfLog(log, cut.records, options)
  const journal = options.journal === undefined ? createLogJournal(cut.records) : null
  const notes = createTraceNotes()
  const session = await sessionOn(log, options, {
    model,
    journal: options.journal ?? journal ?? createLogJournal(cut.records),
    note: notes.take,
  })
  return { ok: true, session, asked: asked.asked, cut, model, journal, notes }
}

// Takes a compaction or a clearing of a log's session back: in its own file, or in memory for a copy of it.

export interface UndoLogOptions
  extends Pick<
    CompactLogOptions,
    'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal' | 'clock' | 'ids'
  > {
  /** Also where what comes back is over the line from which on nothing more is sent. */
  readonly force?: boolean
  readonly confirm?: (undoing: UndoPreview) => Promise<boolean>
}

export interface UndoPreview {
  readonly file: string
  /** Of the act's boundary. */
  readonly id: string
  readonly kind: 'compact' | 'clear'
  readonly tokensBefore: number
}

export interface UndoReport extends UndoPreview {
  readonly tokensAfter: number
  /** The messages of the next request. */
  readonly messages: readonly ApiMessage[]
}

export type UndoneLog =
  | { readonly ok: true; readonly report: UndoReport; readonly written: WrittenLog }
  | CompactLogRefusal

export async function undoLog(log: ReadLog, given: string, options: UndoLogOptions = {}): Promise<UndoneLog> {
  const { force = false, confirm, ...rest } = options
  const all = wholeLog(log)
  const named = namedRecord(all, given)
  if (!named.ok) return { ok: false, reason: 'bad-record', message: `${named.why}.` }
  const records = options.journal === undefined ? restamped(all) : all
  const own = createLogJournal(records)
  const model = modelOfLog(log, all, options)
  const journal = options.journal ?? own
  const session = await sessionOn(log, rest, { model, journal, note: () => {} })
  const before = measureNow(session.state, session.host, session.room).expected
  const choice = chooseUndo(session.state.view, named.uuid)
  if (!choice.ok) return { ok: false, reason: choice.reason, message: choice.message }
  const preview = { file: log.path, id: named.uuid, kind: choice.act.kind, tokensBefore: before }
  if (confirm !== undefined && !(await confirm(preview)))
    return { ok: false, reason: 'declined', message: 'Nothing was changed.' }
  const undone = await session.undo({ id: named.uuid, force })
  if (!undone.ok) return undone
  const messages = messagesOf(session.state.flat)
  const written = { sessionId: session.state.id, records, added: own.added }
  return { ok: true, report: { ...preview, tokensAfter: undone.tokens, messages }, written }
}
