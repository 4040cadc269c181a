/** A compaction from start to end: plan, prepare, commit. Reports the outcome to the breaker. */
import { type RewriteRefused, type TurnEvent, untilDone } from '../engine/events.ts'
import type { Room } from '../engine/host.ts'
import { withRoom } from '../engine/measure-context.ts'
import { type AttemptEnd, afterAttempt, isOpen } from '../engine/session-state.ts'
import type { TurnRun } from '../engine/session-writer.ts'
import { type Committed, committed } from './commit.ts'
import { type CompactAsked, planCompaction } from './plan-compaction.ts'
import { preparedDraft } from './prepare-draft.ts'

/** Nothing has changed unless it succeeds. */
export async function* compact(
  turn: TurnRun,
  compaction: Room,
  request: CompactAsked,
): AsyncGenerator<TurnEvent, Committed> {
  const end = yield* untilDone(runSteps(turn, compaction, request))
  if (end.ok) return end
  const { trigger, cause } = request
  if (end.reason !== 'aborted') yield { type: 'compact-failed', trigger, cause, refused: end }
  if (trigger === 'auto') yield* recordFailure(turn, compaction, end)
  return end
}

async function* runSteps(
  turn: TurnRun,
  compaction: Room,
  request: CompactAsked,
): AsyncGenerator<TurnEvent, Committed> {
  const plan = planCompaction(turn.state, request, { host: turn.host, room: compaction })
  if (!plan.ok) return plan
  const draft = yield* preparedDraft(turn, compaction, plan)
  if (!draft.ok) return draft
  return yield* committed(turn, compaction, draft)
}

/** Reasons that say nothing about whether another attempt would fail. */
const NOTHING_TO_DO = new Set(['empty-conversation', 'nothing-to-summarise', 'pending-call', 'off'])

function* recordFailure(turn: TurnRun, compaction: Room, end: RewriteRefused): Generator<TurnEvent, void> {
  const { reason } = end
  const attempt: AttemptEnd =
    reason === 'aborted' || reason === 'blocked'
      ? { kind: reason }
      : NOTHING_TO_DO.has(reason)
        ? { kind: 'nothing-to-do' }
        : { kind: 'failed', reason }
  const known = withRoom(turn.state, compaction)
  const breaker = afterAttempt(known.room.breaker, attempt, known.session.records.length - 1)
  turn.state = { ...known, room: { ...known.room, breaker } }
  const { auto } = turn.host.policy.turn
  if (isOpen(breaker, auto) && !isOpen(known.room.breaker, auto))
    yield { type: 'breaker-open', failures: breaker.failures, reason: end.message }
}
