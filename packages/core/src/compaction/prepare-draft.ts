/**
 * Prepares a compaction: hooks, summary, gate, what comes back, and the size it leaves. Appends nothing to the
 * conversation; whatever goes wrong, the session is as it was.
 */

import {
  ABORTED,
  NO_SUMMARY_USAGE,
  type RewriteRefused,
  type TurnEvent,
  untilDone,
  withReply,
} from '../engine/events.ts'
import type { Room } from '../engine/host.ts'
import { type Keeping, thinkingLost } from '../engine/session-state.ts'
import { isAborted, type TurnRun } from '../engine/session-writer.ts'
import { boundedCarriers, presentNow } from '../engine/update-prefix.ts'
import type { Epoch } from '../log/record.ts'
import { turnEpoch } from '../request/prefix.ts'
import { arrange, carry, formerCarried } from '../sources/collect.ts'
import type { Carried, NotCarried } from '../sources/context-source.ts'
import type { CompactionDraft, Drafted } from './draft.ts'
import { type Fit, fit } from './fit-draft.ts'
import { beforeCompaction, sessionStarts, toldAfter } from './hooks.ts'
import type { CompactionPlan } from './plan-compaction.ts'
import type { SummaryAsked } from './run-attempt.ts'
import { type Asking, gated, writeSmaller, writeSummary } from './write-summary.ts'

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

// What the work depends on, from its sources of truth, for the view that a compaction leaves.

interface Brought {
  readonly carried: readonly Carried[]
  readonly superseded: readonly string[]
  readonly skipped: readonly NotCarried[]
}

const NOTHING: Brought = { carried: [], superseded: [], skipped: [] }

/** Null where it was called off. */
async function* bringBack(
  run: TurnRun,
  room: Room,
  plan: CompactionPlan,
): AsyncGenerator<TurnEvent, Brought | null> {
  if (room.carriers === undefined || room.carriers.length === 0) return NOTHING
  yield { type: 'phase', phase: 'bringing back context' }
  const { span } = plan
  const outcome = await carry(boundedCarriers(room, run.signal), {
    session: run.state.session,
    kept: [...span.kept, ...span.pinned, ...span.unanswered],
    policy: run.host.policy,
    budgets: room.scaled.budgets,
    measure: room.estimator.text,
  })
  if (run.signal?.aborted === true) return null
  const { carried, superseded, skipped, failed } = outcome
  for (const { carrier, why } of failed) yield { type: 'restore-failed', carrier, why }
  return { carried, superseded, skipped }
}

// The epoch that begins with a compaction: the cache behind the prefix is lost anyway, so what changed moves in.

/** Null where the prefix stays: nothing changed, thinking that is kept is bound to it, or the host has none to give. */
async function epochAfter(run: TurnRun, keeping: Keeping): Promise<Epoch | null> {
  const { span } = keeping
  const { standing } = run.state.told
  if (standing === null || span.form === 'from') return null
  const lost = new Set(thinkingLost(keeping, run.host.profile))
  const records = [...span.kept, ...span.pinned]
    .map(({ record }) => record)
    .filter((record) => record.type !== 'assistant' || !lost.has(record.message.id))
  const present = await presentNow({ ...run, state: { ...run.state, texts: new Map() } })
  if ('ok' in present) return null
  const { ttl } = standing.epoch
  const turn = turnEpoch(standing.epoch, ttl === undefined ? present : { ...present, ttl }, {
    records,
    profile: run.host.profile,
  })
  return turn.turns ? turn.epoch : null
}
