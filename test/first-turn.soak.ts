/** Five hundred calls: what holds of sixty holds of them. */
import { describe, expect, it } from 'vitest'
import { changingWorld } from './first-turn/changing-world.ts'
import { alarms, expectHighRate, expectMoney, offences } from './first-turn/laws.ts'
import { SimulatedSession } from './support/simulated-session.ts'
import { nextBodies } from './support/two-processes.ts'

describe('five hundred calls', () => {
  it.each(['5m', '1h'] as const)('extend what was sent and read what was foreseen, at %s', async (ttl) => {
    const session = new SimulatedSession(changingWorld({ ttl }))
    await session.until(500)
    expect(offences(session.calls)).toEqual({ rewritten: [], misread: [] })
    expectHighRate(session.calls)
    const { told, due } = alarms(session.calls)
    expect(told).toEqual(due)
    await expectMoney(session)
  })

  it('and a new process sends the same bytes', async () => {
    const [body] = await nextBodies('changing world', changingWorld({ ttl: '5m' }), [
      { calls: 500, pauseMs: 45_000 },
    ])
    expect(body?.there).toBe(body?.here)
  })
})
