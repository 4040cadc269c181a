/** Forks against the simulator: they read their parent's cache, write none, and leave it as it was. */
import { type ForkAsked, type ForkEnd, runFork, type SessionState, type TurnEvent } from '@tidemark/core'
import type { RequestRecord } from '@tidemark/simulator'
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { offences } from './first-turn/laws.ts'
import { Talk } from './first-turn/talk.ts'

const QUESTION: ForkAsked = { source: 'compact', messages: [{ role: 'user', content: 'Sum up.' }] }

interface Forked {
  readonly end: ForkEnd
  readonly events: readonly TurnEvent[]
}

async function forked(talk: Talk, state: SessionState, asked: ForkAsked): Promise<Forked> {
  const events: TurnEvent[] = []
  const stream = runFork(state, asked, talk.host)
  for (;;) {
    const step = await stream.next()
    if (step.done === true) return { end: step.value, events }
    events.push(step.value)
  }
}

async function talked(): Promise<{ talk: Talk; state: SessionState; requests: readonly RequestRecord[] }> {
  const requests: RequestRecord[] = []
  const talk = new Talk({ journal: createMemoryJournal(), ttl: '1h', onRequest: (one) => requests.push(one) })
  return { talk, state: await talk.until(25), requests }
}

describe('a fork of a long conversation', () => {
  it.each(['compact', 'session_memory'])(
    'for %s reads the whole prefix and writes nothing',
    async (source) => {
      const { talk, state, requests } = await talked()
      const { end } = await forked(talk, state, { ...QUESTION, source })
      if (!end.ok) throw new Error(end.reason)
      const { read } = end
      const left = talk.calls.at(-1)?.usage
      const cached = (left?.cache_read_input_tokens ?? 0) + (left?.cache_creation_input_tokens ?? 0)
      expect([read.read, read.expected, read.missed]).toEqual([cached, cached, null])
      expect(read.share).toBeGreaterThan(0.95)
      expect(requests.at(-1)?.usage).toMatchObject({ write5m: 0, write1h: 0, cacheRead: cached })
    },
  )

  it('leaves its parent as it was', async () => {
    const { talk, state } = await talked()
    const { end } = await forked(talk, state, QUESTION)
    const before = talk.calls.length
    const outcome = await talk.turn(end.state, 'Go on with what is left.')
    const since = talk.calls.slice(before)
    expect([outcome.ok, since.length > 2, offences(since).misread]).toEqual([true, true, []])
    expect(since.map(({ broke, forecast }) => [broke, forecast.why])).toEqual(since.map(() => [null, 'warm']))
  })

  it('is on the bill, and apart', async () => {
    const { talk, state, requests } = await talked()
    const { events } = await forked(talk, state, QUESTION)
    const totals = events.flatMap((event) => (event.type === 'priced' ? [event.totals] : []))
    expect(totals[0]?.spentOnCompaction.total).toBeCloseTo(requests.at(-1)?.cost?.total ?? 0, 9)
    expect(totals[0]?.spent.total).toBeCloseTo(talk.billed.total, 9)
  })

  it('behind a cache that has lapsed says so', async () => {
    const { talk, state } = await talked()
    await talk.clock.advance(2 * 3_600_000)
    const { end } = await forked(talk, state, QUESTION)
    expect(end.ok && end.read).toMatchObject({ read: 0, expected: 0, missed: expect.stringMatching(/1h/) })
  })

  it('is refused more output, with the reason', async () => {
    const { talk, state, requests } = await talked()
    const before = requests.length
    const { end } = await forked(talk, state, { ...QUESTION, overrides: { max_tokens: 20_000 } })
    expect(end).toMatchObject({
      ok: false,
      reason: 'override',
      message: expect.stringMatching(/thinking budget/),
    })
    expect(requests.length).toBe(before)
  })
})
