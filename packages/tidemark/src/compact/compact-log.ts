/** Compacts the session of a log up to one of its records, in memory or in its own file, and undoes it. For `tidemark compact`. */
import {
  type ApiMessage,
  type CompactAsked,
  type CompactionDraft,
  type CompactionPlan,
  chooseUndo,
  contextOf,
  type Entry,
  type Estimator,
  isCompactBoundary,
  isKnown,
  isShown,
  measureNow,
  messagesOf,
  type RewriteRefused,
  ratesFor,
} from '@tidemark/core'
import type { ReadLog } from '../logs/read-session.ts'
import {
  type CompactedLog,
  type CompactionPreview,
  type CompactionPrice,
  type CompactionStep,
  type CompactLogOptions,
  type CompactLogRefusal,
  createTraceNotes,
  type PlannedCompaction,
  type Portion,
  priceOf,
  type WrittenLog,
} from './compact-report.ts'
import { type LogModel, modelOfLog } from './log-model.ts'
import { createLogJournal, type LogJournal, type LogSession, sessionOn } from './log-session.ts'
import { askedOf, cutOf, type LogAsOf, namedRecord, restamped, wholeLog } from './select-records.ts'

/** Nothing is written to the log unless a journal is given. */
export async function compactLog(log: ReadLog, options: CompactLogOptions = {}): Promise<CompactedLog> {
  const opened = await openCompaction(log, options)
  if (!opened.ok) return opened
  const { session, asked, cut, journal } = opened
  const plan = session.plan(asked)
  if (!plan.ok) return plan
  const draft = await draftOf(session, plan)
  if (!draft.ok) return draft
  const preview = previewOf(log, opened, draft, options)
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
 * If the log lacks the system prompt, the measured size before includes it and the estimate after does not. It is taken
 * off the first, so that both can be compared when the draft is checked for a gain.
 */
async function draftOf(session: LogSession, plan: CompactionPlan): Promise<CompactionDraft | RewriteRefused> {
  const { before } = plan
  const beside = measuredPrefix(plan, prefixBeside(session))
  const expected = Math.max(before.expected - beside, Math.min(before.expected, shownTokens(session)))
  const comparable = { ...before, expected, high: Math.max(before.high - beside, expected) }
  const draft = await session.prepare({ ...plan, before: comparable })
  return draft.ok ? { ...draft, plan } : draft
}

const DECLINED: CompactLogRefusal = { ok: false, reason: 'declined', message: 'Nothing was changed.' }

interface Opened {
  readonly ok: true
  readonly session: LogSession
  readonly asked: CompactAsked
  readonly cut: LogAsOf
  readonly model: LogModel
  /** Null if the caller gave a journal. */
  readonly journal: LogJournal | null
  readonly notes: ReturnType<typeof createTraceNotes>
}

async function openCompaction(log: ReadLog, options: CompactLogOptions): Promise<Opened | CompactLogRefusal> {
  const all = wholeLog(log)
  const cut = cutOf(all, options)
  if (!cut.ok) return cut
  const asked = askedOf(all, options)
  if (!asked.ok) return { ok: false, reason: 'bad-record', message: asked.message }
  const model = modelOfLog(log, cut.records, options)
  const own = createLogJournal(cut.records)
  const notes = createTraceNotes()
  const session = await sessionOn(log, options, { model, journal: options.journal ?? own, note: notes.take })
  const journal = options.journal === undefined ? own : null
  return { ok: true, session, asked: asked.asked, cut, model, journal, notes }
}

// Undoing a compaction or a clearing of a log's session, in its own file or in memory for a copy of it.

export interface UndoLogOptions
  extends Pick<
    CompactLogOptions,
    'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal' | 'clock' | 'ids'
  > {
  /** Also if the restored context is above the line where requests are blocked. */
  readonly force?: boolean
  readonly confirm?: (undoing: UndoPreview) => Promise<boolean>
}

export interface UndoPreview {
  readonly file: string
  /** uuid of the boundary of the compaction or clearing. */
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
  if (confirm !== undefined && !(await confirm(preview))) return DECLINED
  const undone = await session.undo({ id: named.uuid, force })
  if (!undone.ok) return undone
  const messages = messagesOf(session.state.flat)
  const written = { sessionId: session.state.id, records, added: own.added }
  return { ok: true, report: { ...preview, tokensAfter: undone.tokens, messages }, written }
}

// The preview of a compaction, from its draft.

function previewOf(
  log: ReadLog,
  { session, cut, model, notes }: Opened,
  draft: CompactionDraft,
  { instructions, summariser }: CompactLogOptions,
): CompactionPreview {
  const { plan, summary, after, receipt } = draft
  const prefixTokens = prefixBeside(session)
  const price = priceIn(session, draft, prefixTokens)
  const ignored = 'instructions are for a model: a summary that is made without one follows fixed rules'
  return {
    file: log.path,
    format: log.format,
    sessionId: log.meta.sessionId,
    model: model.id,
    window: model.window,
    tokensBefore: plan.before.expected,
    tokensAfter: after.expected,
    prefixTokens,
    session: historyPortion(session),
    at: cut.at,
    movedFrom: cut.movedFrom,
    recordsAfter: cut.leftOut,
    plan: plannedOf(draft, session.room.estimator),
    price,
    summarizer: summary.summarizer,
    fallbackReason: summary.fallbackReason,
    summary: summary.text,
    ledger: summary.ledger,
    receipt,
    trace: [compactionStep(draft, price), ...notes.steps(draft)],
    notes: [...model.notes, ...(instructions === undefined || summariser !== undefined ? [] : [ignored])],
  }
}

function compactionStep({ plan, after }: CompactionDraft, price: CompactionPrice | null): CompactionStep {
  const { span, before, target } = plan
  return {
    tier: 'compact',
    kind: span.form,
    outcome: 'accepted',
    chosen: true,
    why: target === null ? 'asked for by the person' : `asked for by the person, to at most ${target} tokens`,
    before: before.expected,
    after: after.expected,
    price: price?.costUsd ?? null,
    breakEven: price?.breakEvenCalls ?? null,
  }
}

function plannedOf({ plan, front, carried }: CompactionDraft, estimator: Estimator): PlannedCompaction {
  const { span, target } = plan
  const back = [...front, ...carried]
  return {
    form: span.form,
    target,
    goes: portion(span.summarised, estimator),
    stays: portion([...span.kept, ...span.pinned], estimator),
    unanswered: portion(span.unanswered, estimator),
    comesBack: { records: back.length, tokens: Math.round(sum(back.map(({ tokens }) => tokens))) },
    note: span.note,
  }
}

function portion(entries: readonly Entry[], estimator: Estimator): Portion {
  const shown = entries.filter(isShown)
  return { records: shown.length, tokens: Math.round(sum(shown.map(estimator.entry))) }
}

/** Every record of the branch with content, without the summaries of earlier compactions. */
function historyPortion(session: LogSession): Portion {
  const entries = branchEntries(session).filter(({ record }) => record.isCompactSummary !== true)
  return portion(entries, session.room.estimator)
}

function branchEntries({ state }: LogSession): readonly Entry[] {
  return [...state.view.branch].flatMap((index): readonly Entry[] => {
    const record = state.session.records.at(index)
    return record !== undefined && isKnown(record) ? [{ record, index }] : []
  })
}

/**
 * Estimated tokens of the system prompt and tools that the log does not have: the least by which a first call, of the log
 * or after a compaction, exceeded the entries before it. 0 if the log has the prompt.
 */
function prefixBeside(session: LogSession): number {
  if (session.state.told.standing !== null) return 0
  let said = 0
  let isFirst = true
  let least = Number.POSITIVE_INFINITY
  for (const entry of branchEntries(session)) {
    if (isCompactBoundary(entry.record)) [said, isFirst] = [0, true]
    const context = entry.record.type === 'assistant' ? contextOf(entry.record.message.usage) : 0
    if (isFirst && context > 0) {
      least = Math.min(least, context - said)
      isFirst = false
    }
    if (isFirst && isShown(entry)) said += session.room.estimator.entry(entry)
  }
  return Number.isFinite(least) ? Math.max(0, Math.round(least)) : 0
}

/** Estimated tokens of the context now, by the same estimate as for the context after the compaction. */
function shownTokens({ state, room }: LogSession): number {
  return portion([...state.view.entries], room.estimator).tokens
}

/** A measured size includes the prefix; an estimate of the log does not. */
function measuredPrefix({ before }: CompactionPlan, prefixTokens: number): number {
  return before.source === 'estimated' ? 0 : prefixTokens
}

function priceIn(
  { host, room }: LogSession,
  { plan, summary, after }: CompactionDraft,
  prefixTokens: number,
): CompactionPrice | null {
  const now = new Date(host.clock.now()).toISOString()
  const prices = host.pricesOf(host.offered().model, now)
  if (prices === null) return null
  const before = plan.before.expected
  const output = Math.round(room.estimator.text(summary.text))
  const asked = summary.summarizer === 'local' ? null : { input: before, output }
  const comparable = after.expected + measuredPrefix(plan, prefixTokens)
  return priceOf(before, comparable, asked, ratesFor(prices, before))
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
