/** Turns against the simulator: the prefix holds, the cache is foreseen and used, and the log is all there is. */
import { createMemoryJournal } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { alarms, bodiesAfter, expectHighRate, expectMoney, offences } from './first-turn/laws.ts'
import { Talk } from './first-turn/talk.ts'

const NONE = { rewritten: [], misread: [] }

describe('sixty calls', () => {
  it.each(['5m', '1h'] as const)('extend what was sent and read what was foreseen, at %s', async (ttl) => {
    const talk = new Talk({ journal: createMemoryJournal(), ttl })
    await talk.until(60)
    expect(offences(talk.calls)).toEqual(NONE)
    expect(talk.calls.filter(({ isDeclared }) => isDeclared)).toEqual([])
    expectHighRate(talk.calls)
    const { told, due } = alarms(talk.calls)
    expect([told, told.length > 0]).toEqual([due, ttl === '5m'])
    await expectMoney(talk)
  })

  it('to a model that loses the thinking of finished turns read what was foreseen for certain', async () => {
    const talk = new Talk({ journal: createMemoryJournal(), ttl: '1h', model: 'claude-sonnet-4-5' })
    await talk.until(60)
    const certain = talk.calls.filter(({ forecast }) => forecast.isCertain)
    expect([offences(certain), talk.calls.length - certain.length]).toEqual([NONE, 1])
    const reasons = new Set(talk.calls.map(({ forecast }) => forecast.why))
    expect([...reasons].toSorted()).toEqual(['first', 'rewritten', 'warm'])
    expect(alarms(talk.calls).told).toEqual([])
    await expectMoney(talk)
  })

  it('with a declared break are rewritten there alone', async () => {
    const talk = new Talk({ journal: createMemoryJournal(), ttl: '1h', breaks: true })
    await talk.until(60)
    expect(offences(talk.calls)).toEqual(NONE)
    const breaks = talk.calls.filter(({ isDeclared }) => isDeclared)
    expect(breaks.map(({ forecast, isExtended }) => [forecast.why, isExtended])).toEqual([['key', false]])
    const { told, due } = alarms(talk.calls)
    expect([told, told.length]).toEqual([due, 1])
    expect(talk.totals?.lostToBreaks.total).toBeGreaterThan(0)
    await expectMoney(talk)
  })
})

describe('a session opened again', () => {
  it('goes on from the cache it left', async () => {
    const talk = new Talk({ journal: createMemoryJournal(), ttl: '1h' })
    for (const calls of [10, 20, 30]) await talk.until(calls)
    expect(offences(talk.calls)).toEqual(NONE)
    expectHighRate(talk.calls)
  })

  it('in a new process sends the same bytes', async () => {
    const { here, there } = await bodiesAfter(30)
    expect(there).toBe(here)
    expect(JSON.parse(here).messages.length).toBeGreaterThan(50)
  })
})
