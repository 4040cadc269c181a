/** Turns against the simulator: the prefix holds, the cache is foreseen and used, and the log is all there is. */
import { describe, expect, it } from 'vitest'
import { changingWorld } from './first-turn/changing-world.ts'
import { alarms, expectHighRate, expectMoney, offences } from './first-turn/laws.ts'
import { SimulatedSession } from './support/simulated-session.ts'
import { nextBodies } from './support/two-processes.ts'

const NONE = { rewritten: [], misread: [] }

describe('sixty calls', () => {
  it.each(['5m', '1h'] as const)('extend what was sent and read what was foreseen, at %s', async (ttl) => {
    const session = new SimulatedSession(changingWorld({ ttl }))
    await session.until(60)
    expect(offences(session.calls)).toEqual(NONE)
    // Behind a pause that the cache does not outlive, a change is part of the system prompt and the tools.
    const declared = session.calls.filter(({ isDeclared }) => isDeclared)
    expect(declared.length > 0).toBe(ttl === '5m')
    expectHighRate(session.calls)
    const { told, due } = alarms(session.calls)
    expect([told, told.length > 0]).toEqual([due, ttl === '5m'])
    await expectMoney(session)
  })

  it('to a model that loses the thinking of finished turns read what was foreseen for certain', async () => {
    const session = new SimulatedSession(changingWorld({ ttl: '1h', model: 'claude-sonnet-4-5' }))
    await session.until(60)
    const certain = session.calls.filter(({ forecast }) => forecast.isCertain)
    // Uncertain are the first call and the one after a tool was added, which this model can only be told by a new prefix.
    expect([offences(certain), session.calls.length - certain.length]).toEqual([NONE, 2])
    const reasons = new Set(session.calls.map(({ forecast }) => forecast.why))
    expect([...reasons].toSorted()).toEqual(['first', 'rewritten', 'warm'])
    // A tool that is added can be called at once; on this model that costs one cache break, which is reported.
    expect(alarms(session.calls).told.map(([call, cause]) => `${cause} ${call}`)).toEqual([
      'tools-added 20',
      'tools-added 40',
    ])
    await expectMoney(session)
  })

  it('with a declared break are rewritten there alone', async () => {
    const session = new SimulatedSession(changingWorld({ ttl: '1h', breaks: true }))
    await session.until(60)
    expect(offences(session.calls)).toEqual(NONE)
    const breaks = session.calls.filter(({ isDeclared }) => isDeclared)
    expect(breaks.map(({ forecast, isExtended }) => [forecast.why, isExtended])).toEqual([['key', false]])
    const { told, due } = alarms(session.calls)
    expect([told, told.length]).toEqual([due, 1])
    expect(session.totals?.lostToBreaks.total).toBeGreaterThan(0)
    await expectMoney(session)
  })
})

describe('a session opened again', () => {
  it('goes on from the cache it left', async () => {
    const session = new SimulatedSession(changingWorld({ ttl: '1h' }))
    for (const calls of [10, 20, 30]) {
      session.state = null
      await session.until(calls)
    }
    expect(offences(session.calls)).toEqual(NONE)
    expectHighRate(session.calls)
  })

  it('in a new process sends the same bytes', async () => {
    const [body] = await nextBodies('changing world', changingWorld({ ttl: '5m' }), [
      { calls: 30, pauseMs: 45_000 },
    ])
    expect(body?.there).toBe(body?.here)
    expect(JSON.parse(body?.here ?? '{}').messages.length).toBeGreaterThan(50)
  })
})
