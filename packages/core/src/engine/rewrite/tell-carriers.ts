/** Between compactions: what changed about the work's state since the view last showed it is told, once. */
import { carryChanges } from '../../carry/changes.ts'
import { advanceShown } from '../../carry/shown.ts'
import type { Moment } from '../../plan/plan-context.ts'
import { mustHold } from '../../prompt/hold.ts'
import type { Halt, TurnEvent } from '../turn-event.ts'
import { append, type TurnRun } from '../turn-run.ts'
import { boundedCarriers } from './bounded-carriers.ts'

export async function* tellCarriers(run: TurnRun, _: Moment): AsyncGenerator<TurnEvent, Halt | null> {
  const { room, policy, profile } = run.host
  const carriers = (room?.carriers ?? []).filter(({ tellsChanges }) => tellsChanges)
  if (room === undefined || carriers.length === 0 || mustHold(run.state.flat, profile)) return null
  const { state } = run
  const shown = advanceShown(state.shown, state.view.entries)
  const end = await carryChanges(boundedCarriers(room, run.signal), {
    session: state.session,
    shown,
    policy,
    budgets: room.scaled.budgets,
    measure: room.estimator.text,
  })
  run.state = { ...run.state, shown }
  if (run.signal?.aborted === true) return { ok: false, reason: 'aborted' }
  for (const { carrier, why } of end.failed) yield { type: 'restore-failed', carrier, why }
  const bodies = end.carried.map(({ attachment }) => ({
    type: 'attachment' as const,
    isMeta: true,
    attachment,
  }))
  return yield* append(run, bodies)
}
