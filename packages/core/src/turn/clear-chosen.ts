/**
 * Clears the tool results that the user chose. Unlike an automatic clearing, this one need not free a minimum of
 * tokens, nor pay for itself. What must not be cleared (pinned, not yet seen by the model) stays.
 */

import type { ClearCandidate } from '../clearing/clear-candidates.ts'
import { buildClearProposal, type ClearProposalInput } from '../clearing/clear-proposal.ts'
import { findOldCandidates } from '../clearing/propose-clearing.ts'
import { ABORTED_REWRITE, type RefusedRewrite, refuseRewrite, type TurnEvent } from '../engine/events.ts'
import {
  gatherContextPlanInput,
  measureContext,
  updatePlanningStateInSlices,
} from '../engine/measure-context.ts'
import { refuseFailedAppend, type TurnContext } from '../engine/session-writer.ts'
import { computeCalibrationScale } from '../tokens/usage.ts'
import { appendClearing } from './reduce-context.ts'

export type ClearingResult =
  | { readonly ok: true; readonly results: number; readonly freedTokens: number }
  | RefusedRewrite

/**
 * Clears the results whose records, or whose calls' records, have these uuids, and later results that only refer to them.
 * Refuses if none of them can be cleared.
 */
export async function* clearChosenResults(
  turn: TurnContext,
  uuids: readonly string[],
): AsyncGenerator<TurnEvent, ClearingResult> {
  if (!(await updatePlanningStateInSlices(turn))) return ABORTED_REWRITE
  const { context, state } = gatherContextPlanInput(turn.state, turn.host, 'turn-end')
  turn.state = state
  if (context.tracking.openCalls > 0)
    return refuseRewrite('invalid', 'Tool calls are still without their results; nothing was cleared.')
  const { rates, write, calibration } = context
  const question: ClearProposalInput = {
    ...context,
    prices: { rates, write },
    context: measureContext(turn.state, turn.host),
    scale: computeCalibrationScale(calibration),
    target: 0,
  }
  const candidates = findChosen(question, new Set(uuids))
  if (candidates.length === 0)
    return refuseRewrite(
      'unknown-record',
      'There is nothing to clear: only results of tools can be cleared, once the model has answered them, unless they are pinned or hardly larger than their placeholder.',
    )
  const { proposal, why } = buildClearProposal(question, {
    way: 'budget',
    candidates,
    minimum: 1,
    isNeeded: true,
    because: 'The user chose it',
  })
  if (proposal === null) return refuseRewrite('invalid', `${why}. Nothing was cleared.`)
  const failure = yield* appendClearing(turn, proposal)
  if (failure === null) return { ok: true, results: candidates.length, freedTokens: proposal.freedTokens }
  return refuseFailedAppend(failure, 'The log has moved on; nothing was cleared.')
}

function findChosen(question: ClearProposalInput, chosen: ReadonlySet<string>): readonly ClearCandidate[] {
  const all = findOldCandidates(question, 0)
  const named = all.filter(({ result }) => chosen.has(result.uuid) || chosen.has(result.call.uuid))
  // A later result that only says "unchanged" makes no sense without the text, so it is cleared too.
  const dependents = new Set(named.flatMap((candidate) => candidate.dependents))
  return all.filter((candidate) => named.includes(candidate) || dependents.has(candidate.result.call.id))
}
