/** Sessions that can be brought to any size, and what a failed summary may not change about them. */
import { createFillerText, isSummaryRequest } from '@tidemark/simulator/internal'
import { assistant, type MessageInput, toolResult, user } from 'tidemark'
import { expect } from 'vitest'
import { SESSION, type TestSession } from '../support/test-tidemark.ts'

/** The messages and the log of a session, which a failure may not change. */
export interface SessionSnapshot {
  readonly messages: string
  readonly log: readonly string[]
}

export function takeSnapshot({ session, store }: TestSession): SessionSnapshot {
  return { messages: JSON.stringify(session.messages()), log: [...(store.get(SESSION)?.lines ?? [])] }
}

/** Messages and log begin as they did, to the byte, and no compaction was written since. */
export function expectUntouched(stage: TestSession, { messages, log }: SessionSnapshot): void {
  const now = takeSnapshot(stage)
  expect(now.messages.slice(0, messages.length - 1)).toBe(messages.slice(0, -1))
  expect(now.log.slice(0, log.length)).toEqual(log)
  expect(now.log.slice(log.length).filter((line) => /compact_boundary|isCompactSummary/.test(line))).toEqual(
    [],
  )
}

export function isSummaryBody(body: string): boolean {
  const { messages, compaction } = JSON.parse(body)
  return compaction !== undefined || isSummaryRequest({ kind: 'message', messages })
}

const ROUNDS_TO_FILL = 30

/** Appends rounds, mostly text that cannot be cleared, until the session has so many tokens by the high estimate. */
export async function fillTo({ session }: TestSession, tokens: number, name: string): Promise<void> {
  const each = Math.ceil(tokens / ROUNDS_TO_FILL)
  for (let number = 0; session.contextRemaining().high < tokens; number += 1)
    await session.append(...buildRound(`${name}-${number}`, each))
}

function buildRound(name: string, tokens: number): readonly MessageInput[] {
  const call = { type: 'tool_use', id: `toolu_${name}`, name: 'Read', input: { file_path: `src/${name}.ts` } }
  return [
    user(`Task ${name}: look at src/${name}.ts.`),
    assistant({ content: [{ type: 'text', text: createFillerText(name, Math.ceil(tokens * 0.9)) }, call] }),
    toolResult(call.id, 'export {}'),
    assistant(`${name} is looked at.`),
  ]
}

/** Waits for `work` while the clock advances, so that whatever hangs is ended by its deadline. */
export async function advanceUntilDone<Value>(
  { clock }: Pick<TestSession, 'clock'>,
  work: Promise<Value>,
): Promise<Value> {
  let isOver = false
  const over = (): void => {
    isOver = true
  }
  work.then(over, over)
  for (let beats = 0; !isOver && beats < 20_000; beats += 1) {
    for (let turn = 0; turn < 20 && !isOver; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    if (!isOver) await clock.advance(30_000)
  }
  return work
}
