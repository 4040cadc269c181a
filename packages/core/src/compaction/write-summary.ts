/** Writes the summary of a compaction: runs the attempts until one succeeds, then checks and completes the text. */

import { ABORTED, type RewriteRefused, refused, type TurnEvent } from '../engine/events.ts'
import type { RawSummary, Room, WriteSummary, WrittenSummary } from '../engine/host.ts'
import { withRoom } from '../engine/measure-context.ts'
import type { SessionState } from '../engine/session-state.ts'
import { isAborted, type TurnRun } from '../engine/session-writer.ts'
import { isKnown, type KnownRecord } from '../log/record.ts'
import { recordAt } from '../log/session.ts'
import { SUMMARY_HEADING } from '../summary/accept-summary.ts'
import type { AskOutcome, Chain, ChainContext, Done } from '../summary/attempt.ts'
import { answered, isDone, nextAsk, startChain, unfit } from '../summary/attempts.ts'
import { passGate } from '../summary/check-summary.ts'
import { ledgerOf } from '../summary/ledger.ts'
import { composeSummary, localSummary } from '../summary/local-summary.ts'
import { redact } from '../summary/redact.ts'
import type { Span } from '../summary/select-span.ts'
import { type Facts, factsOf } from '../summary/session-facts.ts'
import { sizeOf } from '../tokens/usage.ts'
import type { CompactionPlan } from './plan-compaction.ts'
import { askModel, isWarm, keepAlive } from './run-attempt.ts'

export interface SummaryAsked {
  readonly plan: CompactionPlan
  /** Instructions of user, policy and hooks, within their limit; null if there are none. */
  readonly instructions: string | null
}

/** A summary, and the state of the attempts behind it, from which further ones can be made. */
export interface Asking {
  readonly ok: true
  readonly summary: RawSummary
  /** Null if the host wrote it. */
  readonly chain: Chain | null
}

/** Written by the host if it has its own writer, else by the attempts that policy allows. */
export async function* writeSummary(
  turn: TurnRun,
  compaction: Room,
  task: SummaryAsked,
): AsyncGenerator<TurnEvent, Asking | RewriteRefused> {
  if (compaction.writeSummary === undefined)
    return yield* runAttempts(turn, compaction, task, startChain(chainContext(turn, compaction, task)))
  const { keepAliveSeconds } = turn.host.policy.compact.waiting
  const writing = writeByHost(turn, compaction, task, compaction.writeSummary)
  const { deadlines } = compaction
  const summary = yield* keepAlive(turn, writing, { deadlines, keepAliveMs: keepAliveSeconds * 1000 })
  return summary.ok ? { ok: true, summary, chain: null } : summary
}

/** The next attempt after a summary that is too large; null if there is none left. */
export async function* writeSmaller(
  turn: TurnRun,
  compaction: Room,
  task: SummaryAsked,
  {
    last: { chain },
    why,
    largestSummary,
  }: { readonly last: Asking; readonly why: string; readonly largestSummary: number },
): AsyncGenerator<TurnEvent, Asking | RewriteRefused | null> {
  if (chain === null) return null
  const next = yield* runAttempts(turn, compaction, task, unfit(chain, why, largestSummary))
  return next.ok || next.reason === 'aborted' ? next : null
}

async function writeByHost(
  turn: TurnRun,
  { deadlines }: Room,
  { plan, instructions }: SummaryAsked,
  write: WriteSummary,
): Promise<RawSummary | RewriteRefused> {
  const input = { sessionId: turn.state.id, span: plan.span, instructions }
  const ms = turn.host.policy.compact.waiting.attemptSeconds * 1000
  try {
    const end = await deadlines.within(ms, (signal) => write(input, signal), turn.signal)
    if (!end.ok && end.why === 'aborted') return ABORTED
    const text = end.ok ? (end.value?.trim() ?? '') : ''
    if (text === '') return refused('no-summary', 'The host gave no summary.')
    return {
      ok: true,
      text: text.startsWith(SUMMARY_HEADING) ? text : `${SUMMARY_HEADING}\n${text}`,
      summarizer: 'model',
      block: null,
      recordsCoveredLocally: 0,
      fallbackReason: null,
      steps: [],
    }
  } catch (thrown) {
    return refused('no-summary', thrown instanceof Error ? thrown.message : String(thrown))
  }
}

/** What the attempts need to know about the session. */
export function chainContext({ state, host }: TurnRun, compaction: Room, task: SummaryAsked): ChainContext {
  const { estimator, scaled, summariser } = compaction
  const { before, span, asked } = task.plan
  const { compact, estimate } = host.policy
  const { meter, register } = withRoom(state, compaction).room
  const { model, tools } = host.offered()
  const calibrated = (tokens: number): number => sizeOf(meter.calibration, tokens, estimate).expected
  const own = {
    model,
    profile: host.profile,
    window: host.profile.window,
    outputTokens: scaled.known ? scaled.summaryOutput : compact.direct.outputTokens,
  }
  return {
    span,
    policy:
      asked.summarizer === 'local' ? { ...compact, chain: { ...compact.chain, local: 'only' } } : compact,
    instructions: task.instructions,
    own,
    direct: summariser?.summariser ?? own,
    parent: state.sent === null ? null : { tokens: before.expected },
    isWarm: isWarm(state, host),
    // The provider's own count lacks what it cleared by itself; an estimate of the context does not.
    unclearedTokens: before.expected + (meter.anchor === null ? 0 : (register.native?.tokens ?? 0)),
    tools,
    tokensOf: (entry) => calibrated(estimator.entry(entry)),
    tokensOfText: (text) => calibrated(estimator.text(text)),
  }
}

async function* runAttempts(
  turn: TurnRun,
  compaction: Room,
  task: SummaryAsked,
  first: Chain,
): AsyncGenerator<TurnEvent, Asking | RewriteRefused> {
  const { plan } = task
  for (let chain = first; ; ) {
    const next = nextAsk(chain)
    if (isDone(next)) {
      const summary = toRawSummary(compaction, plan, next)
      return summary.ok ? { ok: true, summary, chain } : summary
    }
    let result: AskOutcome
    if (isAborted(turn)) result = { kind: 'aborted' }
    else if (next.kind === 'local') {
      // From the whole history before the cut, so that nothing fades however often a session is compacted.
      const facts = factsBefore(turn.state, plan)
      result = { kind: 'text', text: writeLocally(facts, compaction, plan, next.maximumTokens) }
    } else result = yield* askModel(turn, compaction, next)
    chain = answered(chain, result)
  }
}

/** Tokens for the local summary of records that no model was shown. */
const COVER_TOKENS = 6_000

function toRawSummary(compaction: Room, plan: CompactionPlan, done: Done): RawSummary | RewriteRefused {
  if (!done.ok) {
    if (done.aborted) return ABORTED
    const { message, fallbackReason, trace: steps } = done
    return refused('no-summary', message, fallbackReason === null ? { steps } : { steps, fallbackReason })
  }
  const { summarizer, block, fallbackReason, trace } = done
  const covered = done.covered.map(({ record }) => record)
  const cover =
    covered.length === 0
      ? null
      : { text: writeLocally(factsOf(covered), compaction, plan, COVER_TOKENS), records: covered.length }
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

function writeLocally(
  facts: Facts,
  { scaled, estimator }: Room,
  { span }: CompactionPlan,
  tokens: number,
): string {
  const { userMessages, ledger } = scaled.budgets
  const rules = { messages: userMessages, files: ledger.files, estimate: estimator }
  return localSummary(facts, { form: span.form, tokens, ...rules }).text
}

/** The summary, checked and repaired: it contains the facts that the log holds, and no secrets. */
export function gated(
  { state, host }: TurnRun,
  { scaled, estimator }: Room,
  plan: CompactionPlan,
  written: RawSummary,
): WrittenSummary {
  const history = historyBefore(state, plan)
  const { userMessages, ledger } = scaled.budgets
  const { text, repairs, unfit } = passGate(written.text, factsBefore(state, plan), {
    messages: userMessages,
    files: ledger.files,
    errors: host.policy.ledger.errors,
    tokens: userMessages.total + ledger.files + ledger.names,
    estimate: estimator,
  })
  const names = ledgerOf(history, { tokens: ledger.names, estimate: estimator })
  const listed = names.text === '' ? [] : [redact(names.text)]
  const beside = [...repairs, ...listed].join('\n\n')
  const checked: WrittenSummary = { ...written, beside, ledger: names.lines.map(redact), unfit }
  return written.block === null ? { ...checked, text: [text, ...listed].join('\n\n'), beside: '' } : checked
}

// What lies before a cut never changes: later records come after it, and a rewind makes the plan stale.
const histories = new WeakMap<Span, readonly KnownRecord[]>()
const factsBySpan = new WeakMap<Span, Facts>()

/** The facts of the history; summary and check need the same ones, and reading them from a long log takes time. */
function factsBefore(state: SessionState, plan: CompactionPlan): Facts {
  const facts = factsBySpan.get(plan.span) ?? factsOf(historyBefore(state, plan))
  factsBySpan.set(plan.span, facts)
  return facts
}

/**
 * The records of the branch that the summary stands for, shown in the context or not: up to the last summarized one;
 * for `from`, starting with the first summarized one. Without those kept verbatim.
 */
export function historyBefore(
  { session, view }: SessionState,
  { span }: CompactionPlan,
): readonly KnownRecord[] {
  const known = histories.get(span)
  if (known !== undefined) return known
  const shown = new Set([...span.kept, ...span.pinned, ...span.unanswered].map(({ record }) => record.uuid))
  const indexes = span.summarised.map(({ index }) => index)
  const last = indexes.reduce((most, index) => Math.max(most, index), -1)
  const first = span.form === 'from' ? indexes.reduce((least, index) => Math.min(least, index), last) : 0
  const records: KnownRecord[] = []
  for (let position = 0; position < view.branch.length; position += 1) {
    const index = view.branch.at(position) ?? -1
    if (index < first || index > last) continue
    const record = recordAt(session, index)
    if (isKnown(record) && !shown.has(record.uuid)) records.push(record)
  }
  histories.set(span, records)
  return records
}
