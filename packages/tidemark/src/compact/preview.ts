/** From a plan and its draft to what a person or a program is told of them. */
import {
  type CompactionDraft,
  type CompactionPlan,
  contextOf,
  type Entry,
  type Estimator,
  isCompactBoundary,
  isKnown,
  isShown,
  ratesFor,
  type SessionRecord,
} from '@tidemark/core'
import type { ReadLog } from '../logs/read-session.ts'
import {
  type CompactionPreview,
  type CompactionPrice,
  type CompactionStep,
  type PlannedCompaction,
  type Portion,
  priceOf,
} from './compact-report.ts'
import type { LogModel } from './log-model.ts'
import type { LogSession } from './log-session.ts'
import type { LogAsOf } from './select-records.ts'

export interface PreviewQuestion {
  readonly log: ReadLog
  readonly cut: LogAsOf
  readonly model: LogModel
  readonly session: LogSession
  readonly draft: CompactionDraft
  readonly trace: readonly CompactionStep[]
  readonly notes: readonly string[]
}

export function previewOf(question: PreviewQuestion): CompactionPreview {
  const { log, cut, model, session, draft, trace, notes } = question
  const { plan, summary, after, receipt } = draft
  const prefixTokens = prefixBeside(session)
  const price = priceIn(session, draft, prefixTokens)
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
    trace: [compactionStep(draft, price), ...trace],
    notes,
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
    comesBack: { records: back.length, tokens: Math.round(back.reduce((sum, one) => sum + one.tokens, 0)) },
    note: span.note,
  }
}

function portion(entries: readonly Entry[], estimator: Estimator): Portion {
  const shown = entries.filter(isShown)
  return { records: shown.length, tokens: Math.round(sum(shown.map(estimator.entry))) }
}

/** Every record of the branch that says something, summaries of earlier compactions aside. */
function historyPortion({ state, room }: LogSession): Portion {
  const entries = [...state.view.branch].flatMap((index) => entryAt(state.session.records.at(index), index))
  return portion(
    entries.filter(({ record }) => record.isCompactSummary !== true),
    room.estimator,
  )
}

function entryAt(record: SessionRecord | undefined, index: number): readonly Entry[] {
  return record !== undefined && isKnown(record) ? [{ record, index }] : []
}

/**
 * What requests sent beside the messages that the log has: the least that a first call, of the log or behind a
 * compaction, sent more than was said by then. 0 where the log has the prompt itself.
 */
export function prefixBeside({ state, room }: LogSession): number {
  if (state.told.standing !== null) return 0
  const sent = firstCalls({ state, room })
  return sent.length === 0 ? 0 : Math.max(0, Math.round(Math.min(...sent)))
}

function firstCalls({ state, room }: Pick<LogSession, 'state' | 'room'>): readonly number[] {
  let said = 0
  let isFirst = true
  const sent: number[] = []
  for (const index of state.view.branch) {
    const [entry] = entryAt(state.session.records.at(index), index)
    if (entry === undefined) continue
    if (isCompactBoundary(entry.record)) [said, isFirst] = [0, true]
    const context = entry.record.type === 'assistant' ? contextOf(entry.record.message.usage) : 0
    if (isFirst && context > 0) {
      sent.push(context - said)
      isFirst = false
    }
    if (isFirst && isShown(entry)) said += room.estimator.entry(entry)
  }
  return sent
}

/** Of what the view shows now, by the same estimate as what it would show. */
export function shownTokens({ state, room }: LogSession): number {
  return portion([...state.view.entries], room.estimator).tokens
}

/** What was measured holds the prompt too, and an estimate of the log does not. */
export function measuredPrefix({ before }: CompactionPlan, prefixTokens: number): number {
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
  return priceOf({
    before,
    after: after.expected + measuredPrefix(plan, prefixTokens),
    asked: summary.summarizer === 'local' ? null : { input: before, output },
    rates: ratesFor(prices, before),
  })
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}
