/** A tool result on its way into the log: large ones are put aside before the record is written. And the tool that reads them. */
import type { ToolResultBlock, ToolUseBlock } from '../../conversation/block.ts'
import { runHistory } from '../../retrieve/history.ts'
import { spill } from '../../retrieve/spill.ts'
import type { TurnEvent } from '../turn-event.ts'
import type { ToolAnswer } from '../turn-host.ts'
import type { TurnRun, Unlinked } from '../turn-run.ts'

export interface Arrived {
  readonly result: ToolResultBlock
  readonly body: Unlinked
}

export async function* arrive(
  { host }: TurnRun,
  call: ToolUseBlock,
  result: ToolResultBlock,
): AsyncGenerator<TurnEvent, Arrived> {
  const { room, policy } = host
  if (room?.blobs === undefined) return { result, body: bodyOf(result) }
  const outcome = await spill({
    result,
    tool: call.name,
    policy: policy.spill,
    budgets: room.scaled.budgets.spill,
    measure: room.estimator.text,
    blobs: room.blobs,
    paths: room.retrieval,
  })
  for (const why of outcome.failed) yield { type: 'spill-failed', toolUseId: call.id, why }
  const { spilled } = outcome
  if (spilled.length === 0) return { result: outcome.result, body: bodyOf(outcome.result) }
  yield { type: 'spilled', toolUseId: call.id, blobs: spilled.map(({ blob }) => blob) }
  return { result: outcome.result, body: { ...bodyOf(outcome.result), spilled } }
}

function bodyOf(result: ToolResultBlock): Unlinked & { readonly type: 'user' } {
  return { type: 'user', message: { role: 'user', content: [result] } }
}

/** Null where the call is not for the engine's own tool. */
export async function fromHistory({ state, host }: TurnRun, call: ToolUseBlock): Promise<ToolAnswer | null> {
  const { room, policy } = host
  if (room === undefined || call.name !== room.retrieval.historyTool) return null
  const { content, is_error } = await runHistory(call.input, {
    session: state.session,
    blobs: room.blobs ?? null,
    policy: policy.history,
    pageTokens: room.scaled.budgets.historyPage,
    measure: room.estimator.text,
  })
  return is_error === undefined ? { content } : { content, is_error }
}
