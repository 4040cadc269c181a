/**
 * Runs the calls of a reply side by side; each result is in the log as soon as it is there. A turn that is called off
 * waits for nobody who does not listen: the calls that stay open are answered before the next request.
 */

import type { Halt, TurnEvent } from '../engine/events.ts'
import type { ToolAnswer } from '../engine/host.ts'
import type { Reply } from '../engine/reply.ts'
import { append, isAborted, type TurnRun, type Unlinked } from '../engine/session-writer.ts'
import { runHistory } from '../history/history-tool.ts'
import { spill } from '../history/spill.ts'
import { blocksOf, isToolUse, type ToolResultBlock, type ToolUseBlock } from '../log/block.ts'

interface PendingCall {
  readonly call: ToolUseBlock
  /** Its input broke off: it is answered, and not run. */
  readonly isCut: boolean
}

export function callsIn({ message, cutInputs }: Reply): readonly PendingCall[] {
  const cut = new Set(cutInputs.map(({ index }) => index))
  return blocksOf(message.content).flatMap((block, index) =>
    isToolUse(block) ? [{ call: block, isCut: cut.has(index) }] : [],
  )
}

const ABORTED: Halt = { ok: false, reason: 'aborted' }

interface Ended {
  readonly index: number
  readonly call: ToolUseBlock
  /** Null where the turn was called off and the tool did not end: it is left. */
  readonly result: ToolResultBlock | null
}

export async function* runTools(
  run: TurnRun,
  calls: readonly PendingCall[],
): AsyncGenerator<TurnEvent, Halt | null> {
  for (const { call, isCut } of calls) if (!isCut) yield { type: 'tool-started', call }
  if (isAborted(run)) return ABORTED
  const running = new Map(calls.map((pending, index) => [index, ended(run, pending, index)]))
  while (running.size > 0) {
    const { index, call, result } = await Promise.race(running.values())
    running.delete(index)
    if (result === null) continue
    const arrived = yield* arrive(run, call, result)
    const halt = yield* append(run, [arrived.body])
    if (halt !== null) return await haltedAfter(running.values(), halt)
    yield { type: 'tool-ended', call, result: arrived.result }
  }
  return isAborted(run) ? ABORTED : null
}

/** A turn that is over leaves no tool at work behind it that would listen. */
async function haltedAfter(running: Iterable<Promise<Ended>>, halt: Halt): Promise<Halt> {
  await Promise.all(running)
  return halt
}

async function ended(run: TurnRun, { call, isCut }: PendingCall, index: number): Promise<Ended> {
  const answer = isCut ? CUT : await unlessLeft(run, answerOf(run, call))
  if (answer === null) return { index, call, result: null }
  const { content, is_error } = answer
  const result = { type: 'tool_result' as const, tool_use_id: call.id, content }
  return { index, call, result: is_error === undefined ? result : { ...result, is_error } }
}

/** How long a tool has to end, and to say how far it came, once the turn is called off. */
const GRACE_MS = 250
/** Tools may take as long as they like; this is only how long one wait for them is. */
const ONE_WAIT_MS = 86_400_000

async function unlessLeft(
  { host, signal }: TurnRun,
  answer: Promise<ToolAnswer>,
): Promise<ToolAnswer | null> {
  const deadlines = host.room?.deadlines
  if (deadlines === undefined || signal === undefined) return answer
  for (;;) {
    const end = await deadlines.within(ONE_WAIT_MS, () => answer, signal)
    if (end.ok) return end.value
    if (end.why === 'timeout') continue
    const late = await deadlines.within(GRACE_MS, () => answer)
    return late.ok ? late.value : null
  }
}

const CUT: ToolAnswer = {
  content: 'The input of this call broke off, so it was not run. Call again with a whole input.',
  is_error: true,
}

async function answerOf(run: TurnRun, call: ToolUseBlock): Promise<ToolAnswer> {
  const { host, signal } = run
  try {
    return (await fromHistory(run, call)) ?? (await host.runTool(call, signal))
  } catch (thrown) {
    const content = thrown instanceof Error ? thrown.message : String(thrown)
    return { content: content.trim() === '' ? 'The tool failed.' : content, is_error: true }
  }
}

// A tool result on its way into the log: large ones are put aside before the record is written. And the tool that reads them.

interface Arrived {
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
