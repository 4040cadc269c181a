import { describe, expect, it } from 'vitest'
import { chooseSession, readSince, since, sortReports } from './choice.ts'
import type { SessionReport } from './report.ts'

/** Only what choosing looks at. */
function report(sessionId: string, given: Partial<SessionReport> = {}): SessionReport {
  const usage = { input: 0, cacheRead: 0, cacheCreation: 0, output: 0 }
  const fields = {
    sessionId,
    apiCalls: 0,
    usage,
    hitRate: null,
    costUsd: 0,
    startedAt: null,
    endedAt: null,
    ...given,
  }
  return { money: { pricedUsd: 0 }, ...fields } as SessionReport
}

const ids = (reports: readonly SessionReport[]) => reports.map(({ sessionId }) => sessionId)

describe('sorting', () => {
  const used = (input: number) => ({ input, cacheRead: 0, cacheCreation: 0, output: 0 })
  const reports = [
    report('a', { costUsd: 1, apiCalls: 3, startedAt: '2026-01-02T00:00:00Z', usage: used(5), hitRate: 0.5 }),
    report('b', { costUsd: 9, apiCalls: 1, startedAt: '2026-01-03T00:00:00Z', usage: used(1) }),
    report('c', { costUsd: null, apiCalls: 3, startedAt: null, usage: used(9), hitRate: 0.9 }),
  ]

  it.each([
    ['cost', ['b', 'a', 'c']],
    ['tokens', ['c', 'a', 'b']],
    ['calls', ['a', 'c', 'b']],
    ['date', ['b', 'a', 'c']],
    ['hit', ['c', 'a', 'b']],
  ] as const)('by %s', (key, expected) => {
    expect(ids(sortReports(reports, key))).toEqual(expected)
  })
})

describe('the one chosen', () => {
  const reports = [report('2f00'), report('2fab'), report('7'), report('x')]

  it.each([
    ['its number', '2', '2fab'],
    ['its whole id comes before a number', '7', '7'],
    ['the beginning of its id', '2f0', '2f00'],
  ])('by %s', (_how, wanted, id) => {
    expect(chooseSession(reports, wanted)).toEqual({
      ok: true,
      report: reports.find((one) => one.sessionId === id),
    })
  })

  it.each([
    ['2f', '2 sessions have an id that begins with 2f: give more of it'],
    ['9', 'no session is number 9 or has an id that begins so'],
    ['0', 'no session is number 0 or has an id that begins so'],
    ['zz', 'no session is number zz or has an id that begins so'],
  ])('%s is none', (wanted, why) => {
    expect(chooseSession(reports, wanted)).toEqual({ ok: false, why })
  })
})

describe('since', () => {
  const now = Date.parse('2026-11-15T12:00:00Z')
  const hour = 3_600_000

  it.each([
    ['7d', now - 7 * 24 * hour],
    ['12h', now - 12 * hour],
    ['1.5h', now - 1.5 * hour],
    ['90m', now - 1.5 * hour],
    ['2w', now - 14 * 24 * hour],
    ['2026-11-01', new Date(2026, 10, 1).getTime()],
    ['2026-11-01T10:00Z', Date.parse('2026-11-01T10:00:00Z')],
    ['2026-11-01T10:00:00+02:00', Date.parse('2026-11-01T08:00:00Z')],
  ])('%s', (text, expected) => {
    expect(readSince(text, now)).toBe(expected)
  })

  it.each(['', 'd', '7', '7y', 'yesterday', '2026-13-01', '11/01/2026', '2026-11-01x'])(
    '%j is no moment',
    (text) => {
      expect(readSince(text, now)).toBe(null)
    },
  )

  it('keeps what went on then or later, and what has no time', () => {
    const reports = [
      report('before', { endedAt: '2026-11-14T12:00:00Z' }),
      report('after', { endedAt: '2026-11-15T12:00:00Z' }),
      report('timeless'),
    ]
    expect(ids(since(reports, now))).toEqual(['after', 'timeless'])
  })
})
