/**
 * Prepares a compaction: hooks, summary, gate, what comes back, and the size it leaves. Appends nothing to the
 * conversation; whatever goes wrong, the session is as it was.
 */

import { arrange, formerCarried } from '../../carry/front.ts'
import type { TurnEvent } from '../turn-event.ts'
import { isAborted, type TurnRun } from '../turn-run.ts'
import { type Brought, bringBack } from './bring-back.ts'
import type { SummaryAsked } from './chain-context.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import type { CompactionDraft, Drafted } from './draft.ts'
import { epochAfter } from './epoch-after.ts'
import { type Fit, fit } from './fit.ts'
import { gated } from './gated.ts'
import { ABORTED, type RewriteRefused } from './refused.ts'
import type { Room } from './room.ts'
import { beforeCompaction, sessionStarts, toldAfter } from './run-hooks.ts'
import { NO_SUMMARY_USAGE, withReply } from './summary-usage.ts'
import { untilDone } from './until-done.ts'
import { type Asking, writeSmaller, writeSummary } from './write-summary.ts'

export function prepareCompaction(
  run: TurnRun,
  room: Room,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, CompactionDraft | RewriteRefused> {
  return untilDone(preparedDraft(run, room, plan))
}

/** The same without saying that it is over, for whoever goes on with it at once. */
export async function* preparedDraft(
  run: TurnRun,
  room: Room,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, CompactionDraft | RewriteRefused> {
  let usage = NO_SUMMARY_USAGE
  const events = drafting(run, room, plan)
  try {
    for (;;) {
      const step = await events.next()
      if (step.done === true) return step.value.ok ? { ...step.value, usage } : step.value
      if (step.value.type === 'side-reply') usage = withReply(usage, step.value.event)
      yield step.value
    }
  } finally {
    await events.return(ABORTED)
  }
}

async function* drafting(
  run: TurnRun,
  room: Room,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, CompactionDraft | RewriteRefused> {
  const started = run.host.clock.now()
  const hooked = yield* beforeCompaction(run, room, plan)
  if (!hooked.ok) return hooked
  yield { type: 'phase', phase: 'compacting' }
  const asked = { plan, instructions: hooked.instructions }
  const written = yield* writeSummary(run, room, asked)
  if (!written.ok) return written
  if (isAborted(run)) return ABORTED
  const brought = yield* bringBack(run, room, plan)
  if (brought === null || isAborted(run)) return ABORTED
  const hooks = yield* sessionStarts(run, room)
  if (isAborted(run)) return ABORTED
  const end = yield* fitted(run, room, { asked, written, brought, hooks })
  if (!end.ok) return end
  yield* restored(brought, end)
  return yield* told(run, room, { ...end, durationMs: run.host.clock.now() - started })
}

interface Ready {
  readonly asked: SummaryAsked
  readonly written: Asking
  readonly brought: Brought
  readonly hooks: Drafted['hooks']
}

/** The summary that was written, or, while that leaves too much and a smaller one could help, the next that is. */
async function* fitted(
  run: TurnRun,
  room: Room,
  ready: Ready,
): AsyncGenerator<TurnEvent, CompactionDraft | RewriteRefused> {
  const { asked } = ready
  let { written } = ready
  let best = await fitOf(run, room, ready)
  let last = best
  while (last.over > 0 && last.largestSummary > 0) {
    const why = `With this summary the conversation would be ${last.over} tokens too large.`
    const { largestSummary } = last
    const next = yield* writeSmaller(run, room, { asked, asking: written, why, largestSummary })
    if (next === null) break
    if (!next.ok || isAborted(run)) return ABORTED
    written = next
    last = await fitOf(run, room, { ...ready, written })
    if (last.over < best.over) best = last
  }
  return best.outcome
}

async function fitOf(run: TurnRun, room: Room, { asked, written, brought, hooks }: Ready): Promise<Fit> {
  const { plan } = asked
  const summary = gated(run, room, { plan, written: written.summary })
  const { superseded } = brought
  const kept = { span: plan.span, superseded, isBlock: summary.block !== null, late: [] }
  return fit(run, room, {
    plan,
    summary,
    ...arranged(run, brought, kept.isBlock),
    rendered: brought.carried,
    superseded,
    hooks,
    epoch: await epochAfter(run, kept),
    durationMs: 0,
  })
}

/** A provider's own summary stands in front of everything. */
function arranged(
  { state, host }: TurnRun,
  { carried }: Brought,
  isBlock: boolean,
): Pick<Drafted, 'front' | 'carried'> {
  if (isBlock || !host.policy.compact.carriersFirst) return { front: [], carried }
  const { front, behind } = arrange(carried, formerCarried(state.view))
  return { front, carried: behind }
}

function* restored({ carried, skipped }: Brought, draft: Drafted): Generator<TurnEvent, void> {
  if (carried.length + skipped.length === 0) return
  const keys = [...draft.front, ...draft.carried].map(({ key }) => key)
  const shed = carried.map(({ key }) => key).filter((key) => !keys.includes(key))
  yield { type: 'restored', keys, skipped, shed }
}

/** Hooks that are told of the finished summary may add to what the model reads, as long as that still fits. */
async function* told(
  run: TurnRun,
  room: Room,
  draft: CompactionDraft,
): AsyncGenerator<TurnEvent, CompactionDraft | RewriteRefused> {
  const added = yield* toldAfter(run, room, draft)
  if (isAborted(run)) return ABORTED
  if (added.length === 0) return draft
  const { outcome } = fit(run, room, { ...draft, hooks: [...draft.hooks, ...added] })
  return outcome.ok || outcome.reason === 'superseded' ? outcome : draft
}
