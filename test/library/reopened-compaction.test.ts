/** A compaction as the first model call of a session that was opened again, such as by `tidemark chat --continue`. */
import { createManualClock } from '@tidemark/simulator'
import type { Session } from 'tidemark'
import { createMemoryJournal } from 'tidemark/testing'
import { expect, it } from 'vitest'
import { createTestTidemark } from '../support/test-tidemark.ts'

const SYSTEM = 'You are a careful engineer. '.repeat(400)

/** Holds a conversation, closes it, waits, opens it again and compacts it. Returns the request for the summary. */
async function compactReopened(pauseMs: number) {
  const clock = createManualClock()
  const journal = createMemoryJournal(new Map())
  const { tide, tools, simulator } = createTestTidemark({
    turns: 6,
    resultTokens: 2_000,
    system: SYSTEM,
    journal,
    clock,
    blobs: null,
  })
  const open = (): Promise<Session> => tide.open('talk', tools)
  const session = await open()
  await session.run('Raise the limits.').outcome
  await session.close()
  await clock.advance(pauseMs)
  const again = await open()
  const before = simulator.requests.length
  expect(await again.compact()).toMatchObject({ ok: true })
  return { last: simulator.requests[before - 1]?.usage, summary: simulator.requests[before]?.usage }
}

it('reads what the closed session left in the cache', async () => {
  const { last, summary } = await compactReopened(60_000)
  expect(summary?.cacheRead).toBe((last?.cacheRead ?? 0) + (last?.write5m ?? 0))
})

it('is a call of its own if the cache has expired meanwhile', async () => {
  const { summary } = await compactReopened(3_700_000)
  expect([summary?.cacheRead, summary?.write5m, summary?.write1h]).toEqual([0, 0, 0])
})

it('after a compaction, a session has the same size when it is opened again', async () => {
  const journal = createMemoryJournal(new Map())
  const { tide, tools } = createTestTidemark({
    turns: 6,
    resultTokens: 2_000,
    system: SYSTEM,
    journal,
    blobs: null,
  })
  const session = await tide.open('talk', tools)
  await session.run('Raise the limits.').outcome
  await session.compact({ summarizer: 'local' })
  const { tokens, high } = session.contextRemaining()
  await session.close()
  expect((await tide.open('talk', tools)).contextRemaining()).toMatchObject({ tokens, high })
})
