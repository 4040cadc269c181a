/** Runs the calls of a reply side by side; each result is in the log as soon as it is there. */
import { blocksOf, isToolUse, type ToolResultBlock, type ToolUseBlock } from '../conversation/block.ts'
import type { Reply } from './reply.ts'
import { arrive, fromHistory } from './rewrite/arrive.ts'
import type { Halt, TurnEvent } from './turn-event.ts'
import type { ToolAnswer } from './turn-host.ts'
import { append, type TurnRun } from './turn-run.ts'

export interface PendingCall {
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

interface Ended {
  readonly index: number
  readonly call: ToolUseBlock
  readonly result: ToolResultBlock
}

export async function* runTools(
  run: TurnRun,
  calls: readonly PendingCall[],
): AsyncGenerator<TurnEvent, Halt | null> {
  for (const { call, isCut } of calls) if (!isCut) yield { type: 'tool-started', call }
  const running = new Map(calls.map((pending, index) => [index, ended(run, pending, index)]))
  while (running.size > 0) {
    const { index, call, result } = await Promise.race(running.values())
    running.delete(index)
    const arrived = yield* arrive(run, call, result)
    const halt = yield* append(run, [arrived.body])
    if (halt !== null) return await haltedAfter(running.values(), halt)
    yield { type: 'tool-ended', call, result: arrived.result }
  }
  return null
}

/** A turn that is over leaves no tool at work behind it. */
async function haltedAfter(running: Iterable<Promise<Ended>>, halt: Halt): Promise<Halt> {
  await Promise.all(running)
  return halt
}

async function ended(run: TurnRun, { call, isCut }: PendingCall, index: number): Promise<Ended> {
  const { content, is_error } = isCut ? CUT : await answerOf(run, call)
  const result = { type: 'tool_result' as const, tool_use_id: call.id, content }
  return { index, call, result: is_error === undefined ? result : { ...result, is_error } }
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
