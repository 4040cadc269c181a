/** Many hands on one session: messages that arrive at any moment, a summary in the making, a second process. */

import { isTextBlock, isToolResult, toBlocks } from '@tidemark/core/log/block'
import { isFullRun } from '@tidemark/core/testing'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import type { Session, SessionEvent } from 'tidemark'
import { user } from 'tidemark'
import { createMemoryJournal, type MemoryStore } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createTestTidemark, type TestTidemark } from '../support/test-tidemark.ts'

const MARK = 'A word in between.'

function timesSaid(session: Session, text: string): number {
  const blocks = session.messages().flatMap(({ content }) => [...toBlocks(content)])
  return blocks.filter((block) => isTextBlock(block) && block.text === text).length
}

/** No message of a response stands apart from the rest of it, and every call is answered right behind it. */
function answersFollow(session: Session): boolean {
  const messages = session.messages()
  return messages.every(({ role, content }, index) => {
    const calls = toBlocks(content).flatMap(({ type, id }) => (type === 'tool_use' ? [String(id)] : []))
    if (role !== 'assistant' || calls.length === 0) return true
    const behind = toBlocks(messages[index + 1]?.content ?? '').filter(isToolResult)
    return calls.every((call) => behind.some(({ tool_use_id: id }) => id === call))
  })
}

async function interrupted(world: TestTidemark, at: number, waits: boolean) {
  const session = await world.tide.open(`at-${at}-${waits}`)
  const told: SessionEvent[] = []
  const appends: Promise<unknown>[] = []
  const run = session.run('Mend the sums.', world.tools)
  let seen = 0
  for await (const event of run) {
    told.push(event)
    if (seen === at) {
      const append = session.append(user(MARK))
      appends.push(append)
      if (waits) await append
    }
    seen += 1
  }
  await Promise.all(appends)
  return { session, told, seen, outcome: await run.outcome }
}

describe('a message at any moment of a run', () => {
  it.each([true, false])(
    'comes in once, behind the reply it met, and breaks no cache (awaited: %s)',
    async (waits) => {
      const world = createTestTidemark({ turns: 2, resultTokens: 60, thinkingTokens: 10 })
      const { seen: length } = await interrupted(world, -1, false)
      for (let at = 0; at < length; at += isFullRun() ? 1 : 7) {
        const { session, told, outcome } = await interrupted(world, at, waits)
        expect(outcome).toMatchObject({ ok: true })
        expect([at, timesSaid(session, MARK)]).toEqual([at, 1])
        expect([at, answersFollow(session)]).toEqual([at, true])
        expect([at, told.filter(({ type }) => type === 'cache-break')]).toEqual([at, []])
        expect(await session.run('Go on.', world.tools).outcome).toMatchObject({ ok: true })
      }
      expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
    },
  )
})

describe('while a summary is made', () => {
  it('messages come in and stand behind it; a turn goes on beside it', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    await session.run('Mend the sums.', world.tools).outcome
    const plan = await session.planCompaction()
    if (!plan.ok) throw new Error(plan.message)
    let isSaid = false
    session.on('summary-progress', () => {
      if (!isSaid) void session.append(user(MARK))
      isSaid = true
    })
    const draft = await session.prepare(plan)
    if (!draft.ok) throw new Error(draft.message)
    expect(isSaid).toBe(true)
    expect(await session.commit(draft)).toMatchObject({ ok: true })
    expect(timesSaid(session, MARK)).toBe(1)
    expect(session.messages().at(-1)?.role).toBe('user')
    expect(await session.run(null, world.tools).outcome).toMatchObject({ ok: true })
  })

  it('a run beside it keeps its own course, and the summary is committed after it', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    await session.run('Mend the sums.', world.tools).outcome
    const plan = await session.planCompaction()
    if (!plan.ok) throw new Error(plan.message)
    const [draft, outcome] = await Promise.all([
      session.prepare(plan),
      session.run('And the dates.', world.tools).outcome,
    ])
    if (!draft.ok) throw new Error(draft.message)
    expect(outcome).toMatchObject({ ok: true })
    expect(await session.commit(draft)).toMatchObject({ ok: true })
    expect(timesSaid(session, 'And the dates.')).toBe(1)
    expect(answersFollow(session)).toBe(true)
    expect(await session.run('Thanks.', world.tools).outcome).toMatchObject({ ok: true })
    expect(world.simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
  })

  it('an act that has the session is told to others as a value, and a second run as misuse', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const run = session.run('Mend the sums.', world.tools)
    expect(await session.compact()).toMatchObject({ ok: false, reason: 'busy' })
    expect(await session.undo()).toMatchObject({ ok: false, reason: 'busy' })
    expect(() => session.run('Again.')).toThrow(expect.objectContaining({ code: 'busy' }))
    await expect(session.next()).rejects.toMatchObject({ code: 'busy' })
    expect(await run.outcome).toMatchObject({ ok: true })
  })

  it('who breaks off the loop calls the run off, and what was said stands', async () => {
    const world = createTestTidemark()
    const session = await world.tide.open('a')
    const run = session.run('Mend the sums.', world.tools)
    for await (const event of run) if (event.type === 'tool-started') break
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    expect(timesSaid(session, 'Mend the sums.')).toBe(1)
    expect(await session.run(null, world.tools).outcome).toMatchObject({ ok: true })
  })
})

describe('a session that is closed', () => {
  it('calls its run off and waits for it; what was said stands, and nothing more is written', async () => {
    const store: MemoryStore = new Map()
    const world = createTestTidemark({ journal: createMemoryJournal(store) })
    const session = await world.tide.open('a')
    const run = session.run('Mend the sums.', world.tools)
    for await (const event of run) if (event.type === 'tool-started') await session.close()
    expect(await run.outcome).toMatchObject({ ok: false, reason: 'aborted' })
    const written = store.get('a')?.lines.length
    const again = await world.tide.open('a')
    expect(store.get('a')?.lines.length).toBe(written)
    expect(timesSaid(again, 'Mend the sums.')).toBe(1)
    expect(() => session.run('More.')).toThrow(expect.objectContaining({ code: 'closed' }))
  })
})

describe('a hundred appends at once', () => {
  it('are all in the log, in the order in which they were made', async () => {
    const session = await createTestTidemark().tide.open('a')
    const texts = Array.from({ length: 100 }, (_, index) => `message ${index}`)
    await Promise.all(texts.map((text) => session.append(user(text))))
    const said = session.messages().flatMap(({ content }) => [...toBlocks(content)])
    expect(said.map(({ text }) => text)).toEqual(texts)
    const payload = { model: 'm', max_tokens: 1, messages: session.messages() }
    expect(validateRequest(payload, defineMessagesProfile({ name: 'any' }))).toEqual([])
  })
})

describe('another process', () => {
  it('that wrote and let go is taken in; one that holds the session is told by name', async () => {
    const store: MemoryStore = new Map()
    const [here, there] = [store, store].map((shared) =>
      createTestTidemark({ journal: createMemoryJournal(shared) }),
    )
    const mine = await (here as TestTidemark).tide.open('a')
    const theirs = await (there as TestTidemark).tide.open('a')
    await theirs.append(user('from there'))
    await expect(mine.append(user('from here'))).rejects.toMatchObject({ code: 'locked' })
    expect(await mine.run('too early').outcome).toMatchObject({ ok: false, reason: 'locked' })
    await theirs.close()
    await mine.append(user('from here'))
    expect(mine.messages()).toEqual([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'from there' },
          { type: 'text', text: 'from here' },
        ],
      },
    ])
  })
})
