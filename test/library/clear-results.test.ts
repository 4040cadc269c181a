/** `session.clearResults`: the user clears chosen results of tools, and gets them back. */
import type { Session } from 'tidemark'
import { expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

async function openAfterTurn() {
  const { tide, tools, simulator } = createTestTidemark({ turns: 6, resultTokens: 800 })
  const session = await tide.open('clear-results')
  const { ok } = await session.run('Fix the tests.', tools).outcome
  expect(ok).toBe(true)
  return { session, tools, simulator }
}

/** The uuids of the largest messages of the user, which are results of tools. */
function listResults(session: Session): readonly string[] {
  const { messages } = session.breakdown()
  const ofUser = messages.filter(({ kind }) => kind === 'user')
  return ofUser.toSorted((one, other) => other.tokens - one.tokens).map(({ uuid }) => uuid)
}

it('a chosen result is replaced by a placeholder, and an undo gives exactly the messages from before', async () => {
  const { session } = await openAfterTurn()
  const before = session.messages()
  const [largest = ''] = listResults(session)
  const outcome = await session.clearResults([largest])
  expect(outcome).toMatchObject({ ok: true, results: 1 })
  expect(outcome.ok && outcome.freedTokens).toBeGreaterThan(300)
  expect(JSON.stringify(session.messages())).toContain('[Old tool result content cleared]')
  expect(await session.undo()).toMatchObject({ ok: true, kind: 'clear' })
  expect(session.messages()).toEqual(before)
})

it('the session goes on after it, and the loss in the cache is told as our own, not as a cache break', async () => {
  const { session, tools, simulator } = await openAfterTurn()
  const types: string[] = []
  session.on('*', ({ type }) => types.push(type))
  await session.clearResults(listResults(session).slice(0, 2))
  expect(await session.run('Go on.', tools).outcome).toMatchObject({ ok: true })
  expect(types).toContain('microcompact')
  expect(types).not.toContain('cache-break')
  expect(simulator.requests.filter(({ status }) => status !== 200)).toEqual([])
})

it('a pinned result, a message that is no result and an unknown uuid are refused, and nothing changes', async () => {
  const { session } = await openAfterTurn()
  const before = session.messages()
  const [largest = ''] = listResults(session)
  await session.pin(largest)
  const prompt = session.breakdown().messages.find(({ kind }) => kind === 'user')?.uuid ?? ''
  for (const uuids of [[largest], ['nobody'], [prompt], []])
    expect(await session.clearResults(uuids)).toMatchObject({ ok: false, reason: 'unknown-record' })
  expect(session.messages()).toEqual(before)
  await expect(session.clearResults('x' as never)).rejects.toThrow(/not a list of uuids/)
})
