/** Five hundred calls: what holds of sixty holds of them. */
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { alarms, bodiesAfter, expectHighRate, expectMoney, offences } from './first-turn/laws.ts'
import { Talk } from './first-turn/talk.ts'

describe('five hundred calls', () => {
  it.each(['5m', '1h'] as const)('extend what was sent and read what was foreseen, at %s', async (ttl) => {
    const talk = new Talk({ journal: createMemoryJournal(), ttl })
    await talk.until(500)
    expect(offences(talk.calls)).toEqual({ rewritten: [], misread: [] })
    expectHighRate(talk.calls)
    const { told, due } = alarms(talk.calls)
    expect(told).toEqual(due)
    await expectMoney(talk)
  })

  it('and a new process sends the same bytes', async () => {
    const { here, there } = await bodiesAfter(500)
    expect(there).toBe(here)
  })
})
