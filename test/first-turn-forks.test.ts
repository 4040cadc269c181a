/** Forks against the simulator: they read their parent's cache, write none, and leave it as it was. */
import type { TurnEvent } from '@tidemark/core/engine/events'
import type { ForkRequestOptions } from '@tidemark/core/engine/side-call'
import { type ForkResult, runFork, runToEnd } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { changingWorld } from './first-turn/changing-world.ts'
import { offences } from './first-turn/laws.ts'
import { SimulatedSession } from './support/simulated-session.ts'

const QUESTION: ForkRequestOptions = { source: 'compact', messages: [{ role: 'user', content: 'Sum up.' }] }

async function fork(
  session: SimulatedSession,
  asked: ForkRequestOptions,
): Promise<{ readonly end: ForkResult; readonly events: readonly TurnEvent[] }> {
  const events: TurnEvent[] = []
  const stream = runFork(await session.open(), asked, session.host)
  return { end: await runToEnd(stream, (event) => void events.push(event)), events }
}

function longSession(): Promise<SimulatedSession> {
  return new SimulatedSession(changingWorld({ ttl: '1h' })).until(25)
}

describe('a fork of a long conversation', () => {
  it.each(['compact', 'session_memory'])(
    'for %s reads the whole prefix and writes nothing',
    async (source) => {
      const session = await longSession()
      const { end } = await fork(session, { ...QUESTION, source })
      if (!end.ok) throw new Error(end.reason)
      const { read } = end
      const left = session.calls.at(-1)?.usage
      const cached = left === undefined ? 0 : left.read + left.writes.short + left.writes.long
      expect([read.read, read.expected, read.missed]).toEqual([cached, cached, null])
      expect(read.share).toBeGreaterThan(0.95)
      expect(session.requests.at(-1)?.usage).toMatchObject({ write5m: 0, write1h: 0, cacheRead: cached })
    },
  )

  it('leaves its parent as it was', async () => {
    const session = await longSession()
    const { end } = await fork(session, QUESTION)
    const before = session.calls.length
    session.state = end.state
    await session.prompt('Go on with what is left.')
    const since = session.calls.slice(before)
    expect([since.length > 2, offences(since).misread]).toEqual([true, []])
    expect(since.map(({ broke, forecast }) => [broke, forecast.why])).toEqual(since.map(() => [null, 'warm']))
  })

  it('is on the bill, and apart', async () => {
    const session = await longSession()
    const { events } = await fork(session, QUESTION)
    const totals = events.flatMap((event) => (event.type === 'priced' ? [event.totals] : []))
    expect(totals[0]?.spentOnCompaction.total).toBeCloseTo(session.requests.at(-1)?.cost?.total ?? 0, 9)
    expect(totals[0]?.spent.total).toBeCloseTo(session.billed.total, 9)
  })

  it('behind a cache that has lapsed says so', async () => {
    const session = await longSession()
    await session.clock.advance(2 * 3_600_000)
    const { end } = await fork(session, QUESTION)
    expect(end.ok && end.read).toMatchObject({ read: 0, expected: 0, missed: expect.stringMatching(/1h/) })
  })
})
