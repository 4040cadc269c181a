/** Writes the summary of a compaction: drives the chain of asking, rung by rung, on the model's port. */
import type { KnownRecord } from '../../conversation/record.ts'
import type { Ask, AskOutcome, Done, LocalAsk } from '../../summarize/ask.ts'
import { answered, nextAsk, startChain } from '../../summarize/chain.ts'
import { isDone } from '../../summarize/chain-settle.ts'
import { composeSummary } from '../../summarize/compose-summary.ts'
import { factsOf } from '../../summarize/facts.ts'
import { localSummary } from '../../summarize/local-summary.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { askModel } from './ask-model.ts'
import { chainContext, type SummaryAsked } from './chain-context.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { historyBefore } from './history-before.ts'
import { ABORTED, type RewriteRefused, refused } from './refused.ts'
import type { Room } from './room.ts'
import type { RawSummary, WriteSummary } from './written-summary.ts'

/** By the host where it writes its own; else by the chain of asking. */
export async function* writeSummary(
  run: TurnRun,
  room: Room,
  asked: SummaryAsked,
): AsyncGenerator<TurnEvent, RawSummary | RewriteRefused> {
  return room.writeSummary === undefined
    ? yield* writeByChain(run, room, asked)
    : await writtenByHost(run, room, { asked, write: room.writeSummary })
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
    return text === '' ? refused('no-summary', 'The host gave no summary.') : { ...BY_HOST, text }
  } catch (thrown) {
    return refused('no-summary', thrown instanceof Error ? thrown.message : String(thrown))
  }
}

const BY_HOST: Omit<RawSummary, 'text'> = {
  ok: true,
  summarizer: 'model',
  block: null,
  recordsCoveredLocally: 0,
  fallbackReason: null,
  steps: [],
}

async function* writeByChain(
  run: TurnRun,
  room: Room,
  asked: SummaryAsked,
): AsyncGenerator<TurnEvent, RawSummary | RewriteRefused> {
  let chain = startChain(chainContext(run, room, asked))
  for (;;) {
    const next = nextAsk(chain)
    if (isDone(next)) return ending(room, { asked, done: next })
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
  if (!done.ok) return done.aborted ? ABORTED : refused('no-summary', done.message)
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

interface Localised {
  readonly ask: LocalAsk
  readonly plan: CompactionPlan
}

/** From the whole history before the cut, so that nothing fades however often a session is compacted. */
function localText(run: TurnRun, room: Room, { ask, plan }: Localised): string {
  const history = historyBefore(run.state, plan)
  return summaryOf(history, room, { form: plan.span.form, tokens: ask.maximumTokens })
}

interface Covered {
  readonly records: readonly KnownRecord[]
  readonly plan: CompactionPlan
}

/** The share of a summary's size that what no model was shown may take. */
const COVER_TOKENS = 6_000

function coverText(room: Room, { records, plan }: Covered): string {
  return summaryOf(records, room, { form: plan.span.form, tokens: COVER_TOKENS })
}

interface Made {
  readonly form: CompactionPlan['span']['form']
  readonly tokens: number
}

function summaryOf(records: readonly KnownRecord[], { scaled, estimator }: Room, made: Made): string {
  const { userMessages, ledger } = scaled.budgets
  const rules = { ...made, messages: userMessages, files: ledger.files, estimate: estimator }
  return localSummary(factsOf(records), rules).text
}
