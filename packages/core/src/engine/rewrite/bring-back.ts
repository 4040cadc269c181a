/** What the work depends on, from its sources of truth, for the view that a compaction leaves. */
import type { Carried, NotCarried } from '../../carry/carrier.ts'
import { carry } from '../../carry/carry.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { TurnRun } from '../turn-run.ts'
import { boundedCarriers } from './bounded-carriers.ts'
import type { CompactionPlan } from './compaction-plan.ts'
import type { Room } from './room.ts'

export interface Brought {
  readonly carried: readonly Carried[]
  readonly superseded: readonly string[]
  readonly skipped: readonly NotCarried[]
}

const NOTHING: Brought = { carried: [], superseded: [], skipped: [] }

/** Null where it was called off. */
export async function* bringBack(
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
