/** A compaction from beginning to end: planned, prepared, committed, with the breaker told how it went. */
import { type RewriteRefused, type TurnEvent, untilDone } from '../engine/events.ts'
import type { Room } from '../engine/host.ts'
import { withRoom } from '../engine/measure-context.ts'
import { type AttemptEnd, afterAttempt, isOpen } from '../engine/session-state.ts'
import type { TurnRun } from '../engine/session-writer.ts'
import { type Committed, committed } from './commit.ts'
import { type CompactAsked, planCompaction } from './plan-compaction.ts'
import { preparedDraft } from './prepare-draft.ts'

export async function* compact(
  run: TurnRun,
  room: Room,
  asked: CompactAsked,
): AsyncGenerator<TurnEvent, Committed> {
  const end = yield* untilDone(attempt(run, room, asked))
  if (end.ok) return end
  if (end.reason !== 'aborted')
    yield { type: 'compact-failed', trigger: asked.trigger, cause: asked.cause, refused: end }
  if (asked.trigger === 'auto') yield* tellBreaker(run, room, end)
  return end
}

async function* attempt(run: TurnRun, room: Room, asked: CompactAsked): AsyncGenerator<TurnEvent, Committed> {
  const plan = planCompaction(run.state, asked, { host: run.host, room })
  if (!plan.ok) return plan
  const draft = yield* preparedDraft(run, room, plan)
  return draft.ok ? yield* committed(run, room, draft) : draft
}

function* tellBreaker(run: TurnRun, room: Room, end: RewriteRefused): Generator<TurnEvent, void> {
  const known = withRoom(run.state, room)
  const breaker = afterAttempt(known.room.breaker, attemptEnd(end), known.session.records.length - 1)
  run.state = { ...known, room: { ...known.room, breaker } }
  const { auto } = run.host.policy.turn
  if (isOpen(breaker, auto) && !isOpen(known.room.breaker, auto))
    yield { type: 'breaker-open', failures: breaker.failures, reason: end.message }
}

const NO_FAILURE = new Set(['empty-conversation', 'nothing-to-summarise', 'pending-call', 'off'])

function attemptEnd({ reason }: RewriteRefused): AttemptEnd {
  if (reason === 'aborted' || reason === 'blocked') return { kind: reason }
  return NO_FAILURE.has(reason) ? { kind: 'nothing-to-do' } : { kind: 'failed', reason }
}
