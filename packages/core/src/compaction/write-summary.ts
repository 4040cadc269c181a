/** Writes the summary of a compaction: drives the chain of asking, rung by rung, on the model's port. */

import { ABORTED, type RewriteRefused, refused, type TurnEvent } from '../engine/events.ts'
import type { RawSummary, Room, WriteSummary, WrittenSummary } from '../engine/host.ts'
import type { SessionState } from '../engine/session-state.ts'
import type { TurnRun } from '../engine/session-writer.ts'
import { isKnown, type KnownRecord } from '../log/record.ts'
import { recordAt } from '../log/session.ts'
import { SUMMARY_HEADING } from '../summary/accept-summary.ts'
import type { Ask, AskOutcome, Chain, ChainFailure, Done, LocalAsk } from '../summary/attempt.ts'
import { answered, isDone, nextAsk, startChain, unfit } from '../summary/attempts.ts'
import { passGate } from '../summary/check-summary.ts'
import { ledgerOf } from '../summary/ledger.ts'
import { composeSummary, localSummary } from '../summary/local-summary.ts'
import { redact } from '../summary/redact.ts'
import type { Span } from '../summary/select-span.ts'
import { type Facts, factsOf } from '../summary/session-facts.ts'
import type { CompactionPlan } from './plan-compaction.ts'
import { askModel, chainContext, keepAlive, type SummaryAsked } from './run-attempt.ts'

/** A summary, and the chain that brought it: it may be asked on. */
export interface Asking {
  readonly ok: true
  readonly summary: RawSummary
  /** Null where the host wrote it. */
  readonly chain: Chain | null
}

/** By the host where it writes its own; else by the chain of asking. */
export async function* writeSummary(
  run: TurnRun,
  room: Room,
  asked: SummaryAsked,
): AsyncGenerator<TurnEvent, Asking | RewriteRefused> {
  if (room.writeSummary === undefined)
    return yield* driven(run, room, { asked, chain: startChain(chainContext(run, room, asked)) })
  const writing = writtenByHost(run, room, { asked, write: room.writeSummary })
  const keepAliveMs = run.host.policy.compact.waiting.keepAliveSeconds * 1000
  const summary = yield* keepAlive(run, writing, { deadlines: room.deadlines, keepAliveMs })
  return summary.ok ? { ok: true, summary, chain: null } : summary
}

interface TooLarge {
  readonly asked: SummaryAsked
  readonly asking: Asking
  /** What was wrong with the one before. */
  readonly why: string
  /** Tokens that a summary may have. */
  readonly largestSummary: number
}

/** By the next rung of the chain; null where there is none left. */
export async function* writeSmaller(
  run: TurnRun,
  room: Room,
  { asked, asking, why, largestSummary }: TooLarge,
): AsyncGenerator<TurnEvent, Asking | RewriteRefused | null> {
  if (asking.chain === null) return null
  const next = yield* driven(run, room, { asked, chain: unfit(asking.chain, why, largestSummary) })
  return next.ok || next.reason === 'aborted' ? next : null
}

interface HostWriting {
  readonly asked: SummaryAsked
  readonly write: WriteSummary
}

async function writtenByHost(
  run: TurnRun,
  { deadlines }: Room,
  { asked, write }: HostWriting,
): Promise<RawSummary | RewriteRefused> {
  const { plan, instructions } = asked
  const question = { sessionId: run.state.id, span: plan.span, instructions }
  const seconds = run.host.policy.compact.waiting.attemptSeconds
  try {
    const end = await deadlines.within(seconds * 1000, (signal) => write(question, signal), run.signal)
    if (!end.ok && end.why === 'aborted') return ABORTED
    const text = end.ok ? (end.value?.trim() ?? '') : ''
    return text === ''
      ? refused('no-summary', 'The host gave no summary.')
      : { ...BY_HOST, text: headed(text) }
  } catch (thrown) {
    return refused('no-summary', thrown instanceof Error ? thrown.message : String(thrown))
  }
}

function headed(text: string): string {
  return text.startsWith(SUMMARY_HEADING) ? text : `${SUMMARY_HEADING}\n${text}`
}

const BY_HOST: Omit<RawSummary, 'text'> = {
  ok: true,
  summarizer: 'model',
  block: null,
  recordsCoveredLocally: 0,
  fallbackReason: null,
  steps: [],
}

interface Driving {
  readonly asked: SummaryAsked
  readonly chain: Chain
}

async function* driven(
  run: TurnRun,
  room: Room,
  { asked, chain: first }: Driving,
): AsyncGenerator<TurnEvent, Asking | RewriteRefused> {
  let chain = first
  for (;;) {
    const next = nextAsk(chain)
    if (isDone(next)) {
      const summary = ending(room, { asked, done: next })
      return summary.ok ? { ok: true, summary, chain } : summary
    }
    chain = answered(chain, yield* perform(run, room, { asked, ask: next }))
  }
}

interface Performed {
  readonly asked: SummaryAsked
  readonly ask: Ask
}

async function* perform(
  run: TurnRun,
  room: Room,
  { asked, ask }: Performed,
): AsyncGenerator<TurnEvent, AskOutcome> {
  if (run.signal?.aborted === true) return { kind: 'aborted' }
  if (ask.kind === 'local') return { kind: 'text', text: localText(run, room, { ask, plan: asked.plan }) }
  return yield* askModel(run, room, ask)
}

interface Ended {
  readonly asked: SummaryAsked
  readonly done: Done
}

function ending(room: Room, { asked, done }: Ended): RawSummary | RewriteRefused {
  if (!done.ok) return done.aborted ? ABORTED : noSummary(done)
  const covered = done.covered.map(({ record }) => record)
  const cover =
    covered.length === 0
      ? null
      : { text: coverText(room, { records: covered, plan: asked.plan }), records: covered.length }
  const { summarizer, block, fallbackReason, trace } = done
  return {
    ok: true,
    text: composeSummary(done.summary, cover),
    summarizer,
    block,
    recordsCoveredLocally: covered.length,
    fallbackReason,
    steps: trace,
  }
}

function noSummary({ message, fallbackReason, trace }: ChainFailure): RewriteRefused {
  const steps = trace
  return refused('no-summary', message, fallbackReason === null ? { steps } : { steps, fallbackReason })
}

interface Localised {
  readonly ask: LocalAsk
  readonly plan: CompactionPlan
}

/** From the whole history before the cut, so that nothing fades however often a session is compacted. */
function localText(run: TurnRun, room: Room, { ask, plan }: Localised): string {
  return summaryOf(factsBefore(run.state, plan), room, { form: plan.span.form, tokens: ask.maximumTokens })
}

interface Covered {
  readonly records: readonly KnownRecord[]
  readonly plan: CompactionPlan
}

/** The share of a summary's size that what no model was shown may take. */
const COVER_TOKENS = 6_000

function coverText(room: Room, { records, plan }: Covered): string {
  return summaryOf(factsOf(records), room, { form: plan.span.form, tokens: COVER_TOKENS })
}

interface Made {
  readonly form: CompactionPlan['span']['form']
  readonly tokens: number
}

function summaryOf(facts: Facts, { scaled, estimator }: Room, made: Made): string {
  const { userMessages, ledger } = scaled.budgets
  const rules = { ...made, messages: userMessages, files: ledger.files, estimate: estimator }
  return localSummary(facts, rules).text
}

// All that was said before a cut, whatever of it is still shown: what facts are made from.

/**
 * The records of the branch that the summary answers for: up to its last summarised record; for `from`, from the
 * first summarised one on. What stays verbatim in the view is left out.
 */
export function historyBefore(state: SessionState, { span }: CompactionPlan): readonly KnownRecord[] {
  return remembered(histories, span, () => historyOf(state, span))
}

/** The facts of it. Summary and gate ask for the same, and reading them off a long history takes its time. */
function factsBefore(state: SessionState, plan: CompactionPlan): Facts {
  return remembered(facts, plan.span, () => factsOf(historyBefore(state, plan)))
}

/** What lies before a cut never changes: what comes later comes behind it, and a rewind leaves the plan void. */
const histories = new WeakMap<Span, readonly KnownRecord[]>()
const facts = new WeakMap<Span, Facts>()

function remembered<T>(known: WeakMap<Span, T>, span: Span, make: () => T): T {
  const value = known.get(span) ?? make()
  known.set(span, value)
  return value
}

function historyOf({ session, view }: SessionState, span: Span): readonly KnownRecord[] {
  const shown = new Set([...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record.uuid))
  const last = span.summarised.reduce((most, { index }) => Math.max(most, index), -1)
  const least = span.summarised.reduce((so, { index }) => Math.min(so, index), last)
  const first = span.form === 'from' ? least : 0
  const records: KnownRecord[] = []
  for (let position = 0; position < view.branch.length; position += 1) {
    const index = view.branch.at(position) ?? -1
    if (index < first || index > last) continue
    const record = recordAt(session, index)
    if (isKnown(record) && !shown.has(record.uuid)) records.push(record)
  }
  return records
}

// The summary after the gate: what the log knows for certain is in it, and what is secret is not.

interface GateQuestion {
  readonly plan: CompactionPlan
  readonly written: RawSummary
}

export function gated({ state, host }: TurnRun, room: Room, { plan, written }: GateQuestion): WrittenSummary {
  const history = historyBefore(state, plan)
  const facts = factsBefore(state, plan)
  const { userMessages, ledger } = room.scaled.budgets
  const { text, repairs, unfit } = passGate(written.text, facts, {
    messages: userMessages,
    files: ledger.files,
    errors: host.policy.ledger.errors,
    tokens: userMessages.total + ledger.files + ledger.names,
    estimate: room.estimator,
  })
  const names = ledgerOf(history, { tokens: ledger.names, estimate: room.estimator })
  const listed = names.text === '' ? [] : [redact(names.text)]
  const lines = names.lines.map(redact)
  if (written.block !== null)
    return { ...written, beside: [...repairs, ...listed].join('\n\n'), ledger: lines, unfit }
  return { ...written, text: [text, ...listed].join('\n\n'), beside: '', ledger: lines, unfit }
}
