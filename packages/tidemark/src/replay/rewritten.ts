/**
 * Rewrites that no event tells of. A conversation that only grows cannot shrink: where it did, something that had been
 * sent was taken out or shortened, and nobody says where.
 */
import type { Profile } from '@tidemark/core'
import { freshTokens, sentTokens, type TraceCall } from './trace.ts'

/**
 * Not where a new prompt goes to a model that is not shown the thinking of finished turns: the provider leaves that
 * out by itself and still finds the rest. More than was said in the turn that ended cannot have been thought in it.
 */
export function isRewritten(
  calls: readonly TraceCall[],
  index: number,
  { thinking }: Pick<Profile, 'thinking'>,
): boolean {
  const [before, call] = [calls[index - 1], calls[index]]
  if (before === undefined || call === undefined || sentTokens(call) >= sentTokens(before)) return false
  const gone = sentTokens(before) + before.outputTokens + freshTokens(call) - sentTokens(call)
  const isStripped = thinking.stripsFinishedTurns && beginsTurn(call) && gone <= saidInTurn(calls, index)
  return !isStripped
}

function beginsTurn({ added }: TraceCall): boolean {
  return added.length > 0 && added.every(({ kind }) => kind !== 'result')
}

/** By the model, in the turn that ended before this call. */
function saidInTurn(calls: readonly TraceCall[], index: number): number {
  let said = 0
  for (const call of calls.slice(0, index).toReversed()) {
    said += call.outputTokens
    if (beginsTurn(call)) break
  }
  return said
}
