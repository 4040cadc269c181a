/**
 * Compacts a logged session up to one of its records, and undoes a compaction. Used by `tidemark compact`. The new
 * records stay in memory unless the caller gives a journal (a store of logs).
 */

import type { CompactionDraft } from '@tidemark/core/compaction/draft'
import type { CompactionOptions, CompactionPlan } from '@tidemark/core/compaction/plan-compaction'
import {
  type ContextEntry,
  isVisibleToModel,
  withProviderClearings,
} from '@tidemark/core/context/context-entry'
import { findUndoTarget } from '@tidemark/core/context/context-view'
import { toApiMessages } from '@tidemark/core/context/flatten-context'
import type { ApiMessage } from '@tidemark/core/context/payload'
import type { RefusedRewrite } from '@tidemark/core/engine/events'
import { findCurrentRates } from '@tidemark/core/engine/host'
import { measureContext, withPlanningState } from '@tidemark/core/engine/measure-context'
import { countPrefixTokens } from '@tidemark/core/engine/next-request'
import { isCompactBoundary, isKnownRecord } from '@tidemark/core/log/record'
import {
  type ContextTokens,
  computeCalibrationScale,
  readReportedContextTokens,
} from '@tidemark/core/tokens/usage'
import type { LogContents } from '../logs/read-log.ts'
import {
  type CompactionPreview,
  type CompactionPrice,
  type CompactionTraceStep,
  type CompactLogOptions,
  type CompactLogRefusal,
  type CompactLogResult,
  createTraceCollector,
  type LogCopy,
  type PlannedCompaction,
  priceCompaction,
  type RecordsAndTokens,
} from './compact-report.ts'
import { findLogModel, type LogModel } from './log-model.ts'
import {
  createScratchJournal,
  type LoggedSession,
  openLoggedSession,
  type ScratchJournal,
} from './open-logged-session.ts'
import {
  findRecordByIdStart,
  type LogCompactionCut,
  listRecordsInLineOrder,
  parseCompactionOptions,
  renumberRecords,
  selectLogCut,
} from './select-records.ts'
import { createLogCopy } from './write-log.ts'

/**
 * Compacts a session whose log has been read. Without `options.journal`, no file is changed, and the compacted log is
 * returned as `written`. A refusal of the engine, and `confirm` returning false, are results and not errors.
 */
export async function compactLog(
  log: LogContents,
  options: CompactLogOptions = {},
): Promise<CompactLogResult> {
  const opened = await openCompaction(log, options)
  if (!opened.ok) return opened
  const { session, asked, cut, journal } = opened
  const draft = await prepareLoggedDraft(session, asked)
  if (!draft.ok) return draft
  const preview = createPreview(log, opened, draft, options)
  if (options.confirm !== undefined && !(await options.confirm(preview))) return DECLINED
  const committed = await session.commit(draft)
  if (!committed.ok) return committed
  const { id, tokensAfter } = committed.compaction
  const messages = toApiMessages(session.state.flat)
  return {
    ok: true,
    report: { ...preview, tokensAfter, id, messages },
    written: createLogCopy(log, session.state.id, cut.records, journal?.added ?? ''),
  }
}

/** Prepares a draft: with notes from the log for a whole conversation without a summary model, else with a summary. */
async function prepareLoggedDraft(
  session: LoggedSession,
  asked: CompactionOptions,
): Promise<CompactionDraft | RefusedRewrite> {
  const before = measureLoggedContext(session)
  const plan = session.plan(asked)
  if (!plan.ok) return plan
  const withNotes = asked.form === undefined ? await session.planWithNotes(asked) : null
  const draft = withNotes === null ? null : await session.prepare(withLoggedSize(withNotes, before))
  if (draft?.ok === true || draft?.reason === 'aborted') return draft
  return session.prepare(withLoggedSize(plan, before))
}

/** Returns the plan with the context size of the log. What the provider had already cleared does not count as freed. */
function withLoggedSize(plan: CompactionPlan, before: ContextTokens): CompactionPlan {
  const replacedTokens = Math.min(plan.replacedTokens, before.expected)
  const stayingTokens = Math.min(plan.stayingTokens, before.expected - replacedTokens)
  return { ...plan, before, replacedTokens, stayingTokens }
}

/**
 * Returns the context size as estimated from what the log contains, or as the provider counted it if that is less. The
 * provider also counts what the log lacks, such as system prompt and tools. A rewrite does not free that part, so the
 * sizes before and after it, and the target, leave it out.
 */
function measureLoggedContext(session: LoggedSession, scale = readScale(session)): ContextTokens {
  const size = measureContext(session.state, session.host)
  if (size.source === 'estimated' || session.state.prefix.current !== null) return size
  const expected = Math.min(size.expected, countShownTokens(session, scale))
  return { ...size, expected, high: Math.max(size.high - (size.expected - expected), expected) }
}

const DECLINED: CompactLogRefusal = { ok: false, reason: 'declined', message: 'Nothing was changed.' }

interface OpenedCompaction {
  readonly ok: true
  readonly session: LoggedSession
  readonly asked: CompactionOptions
  readonly cut: LogCompactionCut
  readonly model: LogModel
  /** The in-memory journal that collects the new log lines; null if the caller gave a journal. */
  readonly journal: ScratchJournal | null
  readonly notes: ReturnType<typeof createTraceCollector>
}

async function openCompaction(
  log: LogContents,
  options: CompactLogOptions,
): Promise<OpenedCompaction | CompactLogRefusal> {
  const all = listRecordsInLineOrder(log)
  const cut = selectLogCut(all, options)
  if (!cut.ok) return cut
  const asked = parseCompactionOptions(all, options)
  if (!asked.ok) return { ok: false, reason: 'bad-record', message: asked.message }
  const model = findLogModel(log, cut.records, options)
  const own = createScratchJournal(cut.records)
  const notes = createTraceCollector()
  const session = await openLoggedSession(log, options, {
    model,
    journal: options.journal ?? own,
    note: notes.take,
  })
  const journal = options.journal === undefined ? own : null
  return { ok: true, session, asked: asked.asked, cut, model, journal, notes }
}

// Undo of a compaction or clearing of a logged session. The undo is written to the log file if the caller gives a
// journal, otherwise it stays in memory.

interface UndoLogOptions
  extends Pick<
    CompactLogOptions,
    'model' | 'window' | 'journal' | 'transcript' | 'onEvent' | 'signal' | 'clock' | 'ids'
  > {
  /**
   * Undoes the compaction or clearing even if the restored context is so large that the next request would be blocked.
   */
  readonly force?: boolean
  readonly confirm?: (undoing: UndoPreview) => Promise<boolean>
}

interface UndoPreview {
  readonly file: string
  /** The uuid of the boundary record that the compaction or clearing left in the log. */
  readonly id: string
  readonly kind: 'compact' | 'clear'
  readonly tokensBefore: number
}

export interface UndoReport extends UndoPreview {
  readonly tokensAfter: number
  /** The messages that the next API request would contain after the undo. */
  readonly messages: readonly ApiMessage[]
}

type UndoLogResult =
  | { readonly ok: true; readonly report: UndoReport; readonly written: LogCopy }
  | CompactLogRefusal

/**
 * Returns null if `given` is the id of a record, or the beginning (6 characters or more) of one id alone; otherwise a
 * sentence that says why it names no record.
 */
export function findRecordIdProblem(log: LogContents, given: string): string | null {
  const named = findRecordByIdStart(listRecordsInLineOrder(log), given)
  return named.ok ? null : `${named.why}.`
}

/**
 * Undoes a compaction or clearing of a logged session. `given`: the uuid of its boundary record, or the beginning of
 * it. Without `options.journal`, no file is changed, and the log with the undo is returned as `written`.
 */
export async function undoLog(
  log: LogContents,
  given: string,
  options: UndoLogOptions = {},
): Promise<UndoLogResult> {
  const { force = false, confirm, ...rest } = options
  const all = listRecordsInLineOrder(log)
  const named = findRecordByIdStart(all, given)
  if (!named.ok) return { ok: false, reason: 'bad-record', message: `${named.why}.` }
  const records = options.journal === undefined ? renumberRecords(all) : all
  const own = createScratchJournal(records)
  const model = findLogModel(log, all, options)
  const journal = options.journal ?? own
  const session = await openLoggedSession(log, rest, { model, journal, note: () => {} })
  // The size after the undo is estimated with this factor, too: the undo itself begins a new estimate without it.
  const scale = readScale(session)
  const before = measureLoggedContext(session, scale).expected
  const choice = findUndoTarget(session.state.view, named.uuid)
  if (!choice.ok) return { ok: false, reason: choice.reason, message: choice.message }
  const preview = { file: log.path, id: named.uuid, kind: choice.act.kind, tokensBefore: before }
  if (confirm !== undefined && !(await confirm(preview))) return DECLINED
  const undone = await session.undo({ id: named.uuid, force })
  if (!undone.ok) return undone
  const messages = toApiMessages(session.state.flat)
  const written = createLogCopy(log, session.state.id, records, own.added)
  const tokensAfter = measureLoggedContext(session, scale).expected
  return { ok: true, report: { ...preview, tokensAfter, messages }, written }
}

// The preview that is shown to the user before a compaction is committed.

function createPreview(
  log: LogContents,
  { session, cut, model, notes }: OpenedCompaction,
  draft: CompactionDraft,
  { instructions, summariser }: CompactLogOptions,
): CompactionPreview {
  const { plan, summary, after, receipt } = draft
  const prefixTokens = estimatePrefix(session)
  const price = priceDraft(session, draft)
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
    session: measureHistory(session),
    at: cut.at,
    movedFrom: cut.movedFrom,
    recordsAfter: cut.leftOut,
    plan: describePlan(draft, session),
    price,
    summarizer: summary.summarizer,
    fallbackReason: summary.fallbackReason,
    summary: summary.text,
    ledger: summary.ledger,
    receipt,
    trace: [createCompactionStep(draft, price), ...notes.steps(draft, readScale(session))],
    notes: [
      ...describeDamage(log),
      ...model.notes,
      ...(instructions === undefined || summariser !== undefined ? [] : [ignored]),
    ],
  }
}

function describeDamage({ damage }: LogContents): readonly string[] {
  const [first] = damage
  if (first === undefined) return []
  const count = damage.length === 1 ? 'a damaged place' : `${damage.length} damaged places`
  return [
    `the log has ${count}, so the draft may lack something. Line ${first.line}: ${first.why}. tidemark inspect lists all`,
  ]
}

function createCompactionStep(
  { plan, after }: CompactionDraft,
  price: CompactionPrice | null,
): CompactionTraceStep {
  const { span, before, target } = plan
  return {
    tier: 'compact',
    kind: span.form,
    outcome: 'accepted',
    chosen: true,
    why: target === null ? 'asked for by the user' : `asked for by the user, to at most ${target} tokens`,
    before: before.expected,
    after: after.expected,
    price: price?.costUsd ?? null,
    breakEven: price?.breakEvenCalls ?? null,
  }
}

function describePlan(
  { plan, sourcesBefore, sourcesAfter }: CompactionDraft,
  session: LoggedSession,
): PlannedCompaction {
  const { span, target } = plan
  // What the provider cleared on its side takes no space in the window, although the records in the spans still have it.
  const held = new Map(listHeldEntries(session).map((entry) => [entry.index, entry]))
  const measure = (entries: readonly ContextEntry[]): RecordsAndTokens =>
    measurePortion(
      session,
      entries.map((entry) => held.get(entry.index) ?? entry),
    )
  const back = [...sourcesBefore, ...sourcesAfter]
  const parts = {
    goes: measure(span.summarised),
    stays: measure([...span.kept, ...span.pinned]),
    unanswered: measure(span.unanswered),
  }
  const counted = measureContext(session.state, session.host)
  const isInLog = counted.source === 'estimated' || session.state.prefix.current !== null
  const estimated = plan.before.expected + estimatePrefix(session)
  return {
    ...parts,
    notEstimated: isInLog ? 0 : Math.max(0, counted.expected - estimated),
    form: span.form,
    target,
    comesBack: {
      records: back.length,
      tokens: Math.round(readScale(session) * addUp(back.map(({ tokens }) => tokens))),
    },
    note: span.note,
  }
}

/** Returns the factor by which the responses in the log have corrected the estimates. */
function readScale({ state, host }: LoggedSession): number {
  return computeCalibrationScale(withPlanningState(state, host).context.meter.calibration)
}

/** Counts the entries that the model can see, and their estimated tokens. */
function measurePortion(
  session: LoggedSession,
  entries: readonly ContextEntry[],
  scale = readScale(session),
): RecordsAndTokens {
  const { services: room } = session
  const shown = entries.filter(isVisibleToModel)
  return { records: shown.length, tokens: Math.round(scale * addUp(shown.map(room.estimator.entry))) }
}

/**
 * Counts the records and estimated tokens of the whole conversation: everything on the current branch that the model
 * can see, except summaries of earlier compactions.
 */
function measureHistory(session: LoggedSession): RecordsAndTokens {
  const entries = listBranchEntries(session).filter(({ record }) => record.isCompactSummary !== true)
  return measurePortion(session, entries)
}

function listBranchEntries({ state }: LoggedSession): readonly ContextEntry[] {
  return [...state.view.branch].flatMap((index): readonly ContextEntry[] => {
    const record = state.session.records.at(index)
    return record !== undefined && isKnownRecord(record) ? [{ record, index }] : []
  })
}

/**
 * Estimates the tokens of system prompt and tools if the log does not contain them; otherwise returns 0. The first call
 * of the log, the first after each compaction, and the newest call have more prompt tokens than the messages before
 * them. The smallest such difference is the estimate: where the log begins in mid-conversation, or the host cleared
 * content without a record of it, the others also include messages.
 */
function estimatePrefix(session: LoggedSession): number {
  const { state, host } = session
  if (state.prefix.current !== null) return 0
  const size = measureContext(state, host)
  const rest = size.expected - countShownTokens(session)
  const first = estimateFirstPrefix(session)
  return size.source === 'estimated' ? first : Math.max(0, Math.min(first, rest))
}

/** Returns the smallest difference for the first call of the log and the first call after each compaction. */
function estimateFirstPrefix(session: LoggedSession): number {
  let said = 0
  let isFirst = true
  let least = Number.POSITIVE_INFINITY
  for (const entry of listBranchEntries(session)) {
    if (isCompactBoundary(entry.record)) [said, isFirst] = [0, true]
    const context = entry.record.type === 'assistant' ? readReportedContextTokens(entry.record.usage) : 0
    if (isFirst && context > 0) {
      least = Math.min(least, context - said)
      isFirst = false
    }
    if (isFirst && isVisibleToModel(entry)) said += session.services.estimator.entry(entry)
  }
  return Number.isFinite(least) ? Math.max(0, Math.round(least)) : 0
}

/**
 * Estimates the tokens of the current context. The same estimator measures the compacted context, so the two sizes can
 * be compared.
 */
function countShownTokens(session: LoggedSession, scale = readScale(session)): number {
  return measurePortion(session, listHeldEntries(session), scale).tokens
}

/** Returns the entries of the context as the provider holds them: what it cleared on its side is shown as cleared. */
function listHeldEntries({ state, host }: LoggedSession): readonly ContextEntry[] {
  return withProviderClearings(state.view.entries, host.policy.clear).toArray()
}

function priceDraft(
  { host, state }: LoggedSession,
  { plan, after, usage }: CompactionDraft,
): CompactionPrice | null {
  const before = plan.before.expected
  const rates = findCurrentRates(host, before)
  if (rates === null) return null
  const unchanged = countPrefixTokens(state, host)
  return priceCompaction({ before, after: after.expected, unchanged }, usage, rates)
}

function addUp(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
