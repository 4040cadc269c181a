/**
 * Runs a whole compaction: with the notes of the session if that is possible, otherwise plan, prepare, commit. Counts
 * failures of automatic compactions, which are paused after several in a row.
 */
import {
  ABORTED_REWRITE,
  emitDonePhase,
  type RefusedRewrite,
  refuseRewrite,
  type TurnEvent,
} from '../engine/events.ts'
import type { CompactionServices } from '../engine/host.ts'
import { measureInSlices, withContextState } from '../engine/measure-context.ts'
import { applyCompactionAttempt, type CompactionAttemptEnd, isBreakerOpen } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { type CompactionResult, commitDraft } from './commit-draft.ts'
import { compactWithNotes } from './compact-with-notes.ts'
import { type CompactionOptions, planCompaction, withRoomBudgets } from './plan-compaction.ts'
import { prepareDraft } from './prepare-draft.ts'

/** Compacts the context. The conversation stays unchanged unless the compaction succeeds. */
export async function* compact(
  turn: TurnContext,
  compaction: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const end = yield* emitDonePhase(runSteps(turn, compaction, request))
  // An event has reported that the notes could not be used, and nothing else was wanted.
  if (end.ok || request.notesOnly === true) return end
  const { trigger, cause } = request
  if (end.reason !== 'aborted') yield { type: 'compact-failed', trigger, cause, refused: end }
  if (trigger === 'auto') yield* countCompactionFailure(turn, compaction, end)
  return end
}

async function* runSteps(
  turn: TurnContext,
  services: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  if (!(await measureInSlices(turn, services))) return ABORTED_REWRITE
  const compaction = withRoomBudgets(turn.state, turn.host, services)
  const { end, hooked } = yield* compactWithNotes(turn, compaction, request)
  if (end !== null) return end
  if (request.notesOnly === true) return refuseRewrite('no-summary', 'The notes cannot be used now.')
  const plan = planCompaction(turn.state, request, { host: turn.host, compaction })
  if (!plan.ok) return plan
  const draft = yield* prepareDraft(turn, compaction, plan, hooked)
  if (!draft.ok) return draft
  return yield* commitDraft(turn, compaction, draft)
}

/** Refusal reasons that do not count as failures, because a later compaction may succeed. */
const NOTHING_TO_DO = new Set(['empty-conversation', 'nothing-to-summarise', 'pending-call', 'off'])

/** Counts a failed automatic compaction, also one that was only being prepared. Emits an event if it was one too many. */
export function* countCompactionFailure(
  turn: TurnContext,
  compaction: CompactionServices,
  end: RefusedRewrite,
): Generator<TurnEvent, void> {
  const { reason } = end
  const attempt: CompactionAttemptEnd =
    reason === 'aborted' || reason === 'blocked'
      ? { kind: reason }
      : NOTHING_TO_DO.has(reason)
        ? { kind: 'nothing-to-do' }
        : { kind: 'failed', reason }
  const known = withContextState(turn.state, compaction)
  const breaker = applyCompactionAttempt(known.context.breaker, attempt, known.session.records.length - 1)
  turn.state = { ...known, context: { ...known.context, breaker } }
  const { auto } = turn.host.policy.turn
  if (isBreakerOpen(breaker, auto) && !isBreakerOpen(known.context.breaker, auto))
    yield { type: 'breaker-open', failures: breaker.failures, reason: end.message }
}
