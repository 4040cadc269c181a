/**
 * Runs a whole compaction: plan, prepare, commit. Counts failures of automatic compactions, which are paused after
 * several in a row.
 */
import { emitDonePhase, type RefusedRewrite, type TurnEvent } from '../engine/events.ts'
import type { CompactionServices } from '../engine/host.ts'
import { withContextState } from '../engine/measure-context.ts'
import { applyCompactionAttempt, type CompactionAttemptEnd, isBreakerOpen } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { type CompactionResult, commitDraft } from './commit-draft.ts'
import { type CompactionOptions, planCompaction } from './plan-compaction.ts'
import { prepareDraft } from './prepare-draft.ts'

/** Compacts the context. The conversation stays unchanged unless the compaction succeeds. */
export async function* compact(
  turn: TurnContext,
  compaction: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const end = yield* emitDonePhase(runSteps(turn, compaction, request))
  if (end.ok) return end
  const { trigger, cause } = request
  if (end.reason !== 'aborted') yield { type: 'compact-failed', trigger, cause, refused: end }
  if (trigger === 'auto') yield* recordFailure(turn, compaction, end)
  return end
}

async function* runSteps(
  turn: TurnContext,
  compaction: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const plan = planCompaction(turn.state, request, { host: turn.host, compaction: compaction })
  if (!plan.ok) return plan
  const draft = yield* prepareDraft(turn, compaction, plan)
  if (!draft.ok) return draft
  return yield* commitDraft(turn, compaction, draft)
}

/** Refusal reasons that do not count as failures, because a later compaction may succeed. */
const NOTHING_TO_DO = new Set(['empty-conversation', 'nothing-to-summarise', 'pending-call', 'off'])

function* recordFailure(
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
