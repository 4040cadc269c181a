/**
 * Prepares a compaction: hooks, summary, gate, what comes back, and the size it leaves. Appends nothing to the
 * conversation; whatever goes wrong, the session is as it was.
 */

import type { Carried } from '../../carry/carrier.ts'
import { arrange, formerCarried } from '../../carry/front.ts'
import { shed } from '../../carry/shed.ts'
import type { ContextTokens } from '../../measure/usage.ts'
import { receiptOf } from '../../summarize/receipt.ts'
import { redact } from '../../summarize/redact.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { type Brought, bringBack } from './bring-back.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import { type CompactionDraft, type Drafted, recordsOf } from './draft.ts'
import { epochAfter } from './epoch-after.ts'
import { floorOf } from './floor.ts'
import { gated } from './gated.ts'
import { measureNow } from './plan-now.ts'
import { ABORTED, type RewriteRefused, refused } from './refused.ts'
import type { Room } from './room.ts'
import { beforeCompaction, sessionStarts, toldAfter } from './run-hooks.ts'
import { trial } from './trial.ts'
import { writeSummary } from './write-summary.ts'

export async function* prepareCompaction(
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
  const summary = gated(run, room, { plan, written })
  const brought = yield* bringBack(run, room, plan)
  if (brought === null || isAborted(run)) return ABORTED
  const starts = yield* sessionStarts(run, room)
  const arranged = arrangedOf(run, brought)
  const drafted: Drafted = {
    plan,
    summary,
    ...arranged,
    superseded: brought.superseded,
    hooks: starts,
    epoch: await epochAfter(run, plan),
    durationMs: run.host.clock.now() - started,
  }
  const fitted = fit(run, room, drafted)
  if (!fitted.ok) return fitted
  return yield* told(run, room, fitted)
}

function isAborted({ signal }: TurnRun): boolean {
  return signal?.aborted === true
}

function arrangedOf({ state, host }: TurnRun, { carried }: Brought): Pick<Drafted, 'front' | 'carried'> {
  if (!host.policy.compact.carriersFirst) return { front: [], carried }
  const { front, behind } = arrange(carried, formerCarried(state.view))
  return { front, carried: behind }
}

/** Sheds what may go until it fits; what still does not is refused, with what fills it. */
function fit(run: TurnRun, room: Room, drafted: Drafted): CompactionDraft | RewriteRefused {
  const whole = measured(run, room, drafted)
  if (whole === null) return refused('superseded', SUPERSEDED)
  const { plan } = drafted
  const over = plan.target === null ? 0 : whole.after.high - plan.target
  if (over <= 0) return judged(room, { drafted, ...whole })
  const all = [...drafted.front, ...drafted.carried]
  const { kept } = shed(all, over, run.host.policy.compact.target)
  const less = (list: readonly Carried[]): readonly Carried[] => list.filter((one) => kept.includes(one))
  const shorter = { ...drafted, front: less(drafted.front), carried: less(drafted.carried) }
  const again = measured(run, room, shorter)
  if (again === null) return refused('superseded', SUPERSEDED)
  return judged(room, { drafted: shorter, ...again })
}

export const SUPERSEDED =
  'The conversation was rewritten by somebody else while the summary was made. Nothing was changed; compact again if it is still needed.'

interface Measured {
  readonly after: ContextTokens
  readonly state: TurnRun['state']
}

function measured(run: TurnRun, room: Room, drafted: Drafted): Measured | null {
  const records = recordsOf(run, room, drafted, null)
  if (records === null) return null
  const state = trial(run.state, records)
  return { after: measureNow(state, run.host, room), state }
}

interface Judged extends Measured {
  readonly drafted: Drafted
}

function judged(room: Room, { drafted, after, state }: Judged): CompactionDraft | RewriteRefused {
  const { plan } = drafted
  if (after.expected >= plan.before.expected) {
    return refused(
      'not-smaller',
      `The result would have ${after.expected} tokens, and there are ${plan.before.expected} now: nothing is gained.`,
    )
  }
  const limit = plan.asked.target ?? plan.line
  if (limit !== null && after.high >= limit) return floorOf({ drafted, after, state, room, limit })
  const receipt = receiptOf({
    before: plan.entries.toArray(),
    after: state.view.entries.toArray(),
    summarised: plan.span.summarised,
    carried: [...drafted.front, ...drafted.carried],
    clean: redact,
    messages: room.scaled.budgets.userMessages,
    estimate: room.estimator,
  })
  return { ...drafted, ok: true, after, receipt }
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
  const more = fit(run, room, { ...draft, hooks: [...draft.hooks, ...added] })
  return more.ok || more.reason === 'superseded' ? more : draft
}
