/** What a session says about itself: its records on all branches, what can be undone, its compactions, what a fork inherits. */
import { createCoder, withSummaries } from '@tidemark/simulator'
import type { Session } from 'tidemark'
import {
  isCompactBoundary,
  isPrompt,
  isToolResult,
  readToolResultText,
  readUserTypedText,
  toBlocks,
} from 'tidemark/records'
import { describe, expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'
import { createBranchWorld, say } from './branch-world.ts'

async function listPrompts(session: Session, branches: 'current' | 'all' = 'current') {
  const records = await session.records({ branches })
  return records.flatMap(({ record, leftBy }) =>
    isPrompt(record) ? [{ text: readUserTypedText(record), uuid: record.uuid, leftBy }] : [],
  )
}

describe('the records of a session', () => {
  it('are those of the conversation, also what a compaction has replaced, and of left branches if they are asked for', async () => {
    const session = await createBranchWorld().tide.open('talk')
    await say(session, 'One', 'Two')
    expect((await session.compact()).ok).toBe(true)
    await say(session, 'Three')
    const [, second] = await listPrompts(session)
    await session.rewind(second?.uuid ?? '')
    expect((await listPrompts(session)).map(({ text }) => text)).toEqual(['One'])
    expect(
      (await listPrompts(session, 'all')).map(({ text, leftBy }) => [text, leftBy?.type ?? null]),
    ).toEqual([
      ['One', null],
      ['Two', 'system'],
      ['Three', 'system'],
    ])
  })

  it('have large results in short form, and whole if that is asked for', async () => {
    const coder = createCoder({ turns: 1, resultTokens: 200 })
    const { tide } = createTestTidemark({ script: withSummaries(coder.script) })
    const session = await tide.open('large')
    const large = Array.from({ length: 40_000 }, (_, row) => `row ${row}`).join('\n')
    await session.run('Read it.', { tools: coder.tools, runTool: () => large }).outcome
    const read = async (isWhole: boolean): Promise<readonly string[]> =>
      (await session.records({ isWhole })).flatMap(({ record }) =>
        record.type === 'user' && 'message' in record
          ? toBlocks(record.message.content as string)
              .filter(isToolResult)
              .map(({ content }) => readToolResultText(content))
          : [],
      )
    expect((await read(false))[0]?.length).toBeLessThan(large.length / 2)
    expect(await read(true)).toContain(large)
  })
})

describe('undo points', () => {
  it('say what an undo takes back, how large the context is then, and that it can be taken back', async () => {
    const session = await createBranchWorld().tide.open('talk')
    expect(session.undoPoints()).toEqual({ undo: null, redo: null, inEffect: [] })
    await say(session, 'One', 'Two')
    const before = session.contextRemaining().tokens
    const done = await session.compact()
    if (!done.ok) throw new Error(done.message)
    const { undo, redo, inEffect } = session.undoPoints()
    expect(redo).toBeNull()
    expect(inEffect).toEqual([{ id: undo?.id, kind: 'compact' }])
    expect(isCompactBoundary(undo?.record as never)).toBe(true)
    expect(Math.abs((undo?.tokens ?? 0) - before)).toBeLessThan(before / 10)
    const undone = await session.undo(undo?.id)
    expect(undone).toMatchObject({ ok: true, kind: 'compact' })
    expect(session.undoPoints().inEffect).toEqual([])
  })

  it('count the messages that leave the context with an undo', async () => {
    const session = await createBranchWorld().tide.open('talk')
    await say(session, 'One', 'Two')
    const [, second] = await listPrompts(session)
    await session.rewind(second?.uuid ?? '')
    await say(session, 'Three', 'Four')
    const { undo } = session.undoPoints()
    expect([undo?.leaving, readUserTypedText(undo?.returning as never)]).toEqual([2, 'Two'])
    await session.undo()
    const { redo } = session.undoPoints()
    expect(redo).toMatchObject({ leaving: 0, record: { subtype: 'conversation_rewound' } })
    expect(await session.undo(redo?.id)).toMatchObject({ ok: true })
    expect((await listPrompts(session)).map(({ text }) => text)).toEqual(['One', 'Three', 'Four'])
  })
})

describe('a compaction in the log', () => {
  it('can be read again with its summary, the instructions for it, and a receipt of what left the context', async () => {
    const session = await createBranchWorld().tide.open('talk')
    await say(session, 'One', 'Two')
    const done = await session.compact({ instructions: 'Keep the numbers.' })
    if (!done.ok) throw new Error(done.message)
    const logged = session.compaction(session.undoPoints().undo?.id ?? '')
    expect(logged).toMatchObject({
      instructions: 'Keep the numbers.',
      summary: expect.stringContaining('One'),
    })
    expect(Object.keys(logged?.makeReceipt() ?? {})).toEqual(Object.keys(done.compaction.receipt))
    expect(session.compaction('no such id')).toBeNull()
  })
})

describe('a fork', () => {
  it('knows what its copied part has cost, which it does not count as its own', async () => {
    const session = await createBranchWorld().tide.open('talk')
    await say(session, 'One', 'Two')
    expect(session.copiedCost()).toBeNull()
    const fork = await session.fork('copy')
    expect(fork.copiedCost()).toEqual({ from: 'talk', totals: expect.objectContaining({ calls: 2 }) })
    expect(fork.copiedCost()?.totals.spent).toEqual(session.money().spent)
    expect(fork.money().calls).toBe(0)
  })
})
