/**
 * Runs the tool calls of a response in parallel. Each result is appended as soon as it arrives; large results are
 * stored as blobs first. An aborted turn does not wait for tools that ignore the signal: the next turn appends an error
 * result for them.
 */

import type { TurnEvent, TurnFailure } from '../engine/events.ts'
import type { ToolResultContent } from '../engine/host.ts'
import type { Reply } from '../engine/reply.ts'
import {
  appendUnlinkedRecords,
  isTurnAborted,
  type TurnContext,
  type UnlinkedRecord,
  waitUnlessAborted,
} from '../engine/session-writer.ts'
import { describeMisfit, fitToolInput } from '../engine/tool-input.ts'
import { runHistoryTool } from '../history/history-tool.ts'
import { spillResult } from '../history/spill-results.ts'
import { isToolUse, type ToolResultBlock, type ToolUseBlock, toBlocks } from '../log/block.ts'
import type { JsonObject } from '../log/json.ts'
import { replaceLoneSurrogates } from '../log/well-formed-text.ts'

interface ToolCall {
  readonly call: ToolUseBlock
  /** True if the input of the tool call was cut off. The tool does not run, and the call gets an error result. */
  readonly isCut: boolean
}

/** Returns the tool calls of a response, in order. */
export function listToolCalls({ message, cutInputs }: Reply): readonly ToolCall[] {
  const cut = new Set(cutInputs.map(({ index }) => index))
  return toBlocks(message.content).flatMap((block, index) =>
    isToolUse(block) ? [{ call: block, isCut: cut.has(index) }] : [],
  )
}

const ABORTED: TurnFailure = { ok: false, reason: 'aborted' }

export async function* runTools(
  turn: TurnContext,
  calls: readonly ToolCall[],
): AsyncGenerator<TurnEvent, TurnFailure | null> {
  for (const { call, isCut } of calls) if (!isCut) yield { type: 'tool-started', call }
  if (isTurnAborted(turn)) return ABORTED
  const running = new Map(calls.map((toolCall, index) => [index, runToolCall(turn, toolCall, index)]))
  while (running.size > 0) {
    const { index, call, result } = await Promise.race(running.values())
    running.delete(index)
    if (result === null) continue
    const arrived = yield* spillLargeResult(turn, call, result)
    const failure = yield* appendUnlinkedRecords(turn, [arrived.body])
    if (failure !== null) {
      // Wait until all tools that obey the signal have ended, so that none runs after the turn.
      await Promise.all(running.values())
      return failure
    }
    yield { type: 'tool-ended', call, result: arrived.result }
  }
  return isTurnAborted(turn) ? ABORTED : null
}

interface ToolCallEnd {
  readonly index: number
  readonly call: ToolUseBlock
  /** Result of the tool; null if the turn was aborted and the tool did not stop. */
  readonly result: ToolResultBlock | null
}

async function runToolCall(
  turn: TurnContext,
  { call, isCut }: ToolCall,
  index: number,
): Promise<ToolCallEnd> {
  const answer = isCut ? { value: CUT_INPUT_RESULT } : await waitUnlessAborted(turn, callTool(turn, call))
  if (answer === null) return { index, call, result: null }
  const { content, is_error } = answer.value
  const result = { type: 'tool_result' as const, tool_use_id: call.id, content }
  return { index, call, result: is_error === undefined ? result : { ...result, is_error } }
}

const CUT_INPUT_RESULT: ToolResultContent = {
  content: 'The input of this call broke off, so it was not run. Call again with a whole input.',
  is_error: true,
}

/** Runs the tool of a call, with its input fitted to the tool's schema. A misfit or exception becomes an error result. */
async function callTool(turn: TurnContext, call: ToolUseBlock): Promise<ToolResultContent> {
  const { host, signal } = turn
  try {
    const answer = await answerHistoryCall(turn, call)
    if (answer !== null) return answer
    const { input, problems } = fitToolInput(host.modelSettings().tools, call.name, call.input)
    if (problems.length > 0) return { content: describeMisfit(call.name, problems), is_error: true }
    return await host.runTool(input === call.input ? call : { ...call, input: input as JsonObject }, signal)
  } catch (thrown) {
    const content = thrown instanceof Error ? thrown.message : String(thrown)
    return { content: content.trim() === '' ? 'The tool failed.' : content, is_error: true }
  }
}

/** Creates the record of a tool result. A large result is stored as blobs and shown with its beginning and end only. */
export async function* spillLargeResult(
  { host }: TurnContext,
  call: ToolUseBlock,
  arrived: ToolResultBlock,
): AsyncGenerator<TurnEvent, { readonly result: ToolResultBlock; readonly body: UnlinkedRecord }> {
  const compaction = host.compaction
  const given = replaceLoneSurrogates(arrived)
  const { result, spilled, failed } =
    compaction?.blobs === undefined
      ? { result: given, spilled: [], failed: [] }
      : await spillResult({
          result: given,
          tool: call.name,
          policy: host.policy.spill,
          budgets: compaction.scaled.budgets.spill,
          measure: compaction.estimator.text,
          blobs: compaction.blobs,
          paths: compaction.retrieval,
        })
  for (const why of failed) yield { type: 'spill-failed', toolUseId: call.id, why }
  const body = { type: 'user' as const, message: { role: 'user' as const, content: [result] } }
  if (spilled.length === 0) return { result, body }
  yield { type: 'spilled', toolUseId: call.id, blobs: spilled.map(({ blob }) => blob) }
  return { result, body: { ...body, spilled } }
}

/** Runs the call if it is for the engine's history tool; returns null if it is for another tool. */
export async function answerHistoryCall(
  { state, host }: TurnContext,
  call: ToolUseBlock,
): Promise<ToolResultContent | null> {
  const compaction = host.compaction
  if (compaction === undefined || call.name !== compaction.retrieval.historyTool) return null
  const { content, is_error } = await runHistoryTool(call.input, {
    session: state.session,
    blobs: compaction.blobs ?? null,
    policy: host.policy.history,
    pageTokens: compaction.scaled.budgets.historyPage,
    measure: compaction.estimator.text,
  })
  return is_error === undefined ? { content } : { content, is_error }
}
