import { describe, expect, it } from 'vitest'
import { chooseSession, filterSessionsSince, parseSinceTime, shortenSessionIds } from './choose-session.ts'
import { sortSessions } from './inspect-files.ts'
import type { SessionReport } from './report.ts'

/** Only the fields that sorting and choosing read. */
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
    expect(ids(sortSessions(reports, key))).toEqual(expected)
  })
})

it('copies that share an id are named by their files, since more of the id does not help', () => {
  const copies = [report('839b35f7-1', { file: 'a.jsonl' }), report('839b35f7-1', { file: 'b.jsonl' })]
  expect(chooseSession(copies, '839b')).toEqual({
    ok: false,
    why: '2 sessions have the id 839b35f7-1. Give the file instead: a.jsonl or b.jsonl',
  })
})

describe('a session is chosen by', () => {
  const reports = [report('2f00'), report('2fab'), report('7'), report('x'), report('08c1')]

  it.each([
    ['its number', '2', '2fab'],
    ['its whole id, before a row number', '7', '7'],
    ['the beginning of its id', '2f0', '2f00'],
    ['its id when the number has a leading zero', '08', '08c1'],
    ['its id when no row has that number', '0', '08c1'],
  ])('%s', (_how, wanted, id) => {
    expect(chooseSession(reports, wanted)).toEqual({
      ok: true,
      report: reports.find((one) => one.sessionId === id),
    })
  })

  it.each([
    ['2f', '2 sessions have an id that begins with 2f: 2f00, 2fab. Give more of it'],
    ['9', 'no session has number 9 or an id that begins with 9'],
    ['05', 'no session has an id that begins with 05'],
    ['zz', 'no session has an id that begins with zz'],
  ])('nothing for %s, and the reason is given', (wanted, why) => {
    expect(chooseSession(reports, wanted)).toEqual({ ok: false, why })
  })
})

describe('an ambiguous choice', () => {
  const many = Array.from({ length: 1_300 }, (_, index) => report(`s${index + 1}`))

  it('is refused when a row number is also a whole id', () => {
    const reports = [report('aaaa'), report('1')]
    expect(chooseSession(reports, '1')).toEqual({
      ok: false,
      why: '1 is both number 1 (aaaa) and the beginning of an id: 1. Give more of the id',
    })
  })

  it('means the row when a short number also begins an id', () => {
    expect(chooseSession([report('a'), report('b'), report('2f00')], '2')).toMatchObject({
      report: { sessionId: 'b' },
    })
  })

  it('is refused when four digits are both a row number and the beginning of an id', () => {
    expect(chooseSession([...many, report('1284c080-1')], '1284')).toEqual({
      ok: false,
      why: '1284 is both number 1284 (s1284) and the beginning of an id: 1284c080. Give more of the id',
    })
  })

  it('cannot arise without row numbers: a number is the beginning of an id', () => {
    const reports = [report('2a'), report('b')]
    expect(chooseSession(reports, '2', 0)).toMatchObject({ report: { sessionId: '2a' } })
  })

  it('of several files with one id names the files', () => {
    const reports = [report('same', { file: '/a/one.jsonl' }), report('same', { file: '/a/two.jsonl' })]
    expect(chooseSession(reports, 'same')).toEqual({
      ok: false,
      why: '2 sessions have the id same. Give the file instead: /a/one.jsonl or /a/two.jsonl',
    })
  })

  it('names at most five candidates', () => {
    const { why } = chooseSession(many, 's') as { readonly why: string }
    expect(why).toBe(
      '1300 sessions have an id that begins with s: s1, s2, s3, s4, s5 and 1295 more. Give more of it',
    )
  })
})

it('ids are shortened to the length at which they differ, at least eight characters', () => {
  const reports = [report('0123456789-a'), report('0123456789-b'), report('fedcba9876543')]
  expect(shortenSessionIds(reports)).toEqual(['0123456789-a', '0123456789-b', 'fedcba987654'])
  expect(shortenSessionIds([report('0123456789-a'), report('0123456789-a')])).toEqual([
    '01234567',
    '01234567',
  ])
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
    expect(parseSinceTime(text, now)).toBe(expected)
  })

  it.each(['', 'd', '7', '7y', 'yesterday', '2026-13-01', '11/01/2026', '2026-11-01x'])(
    '%j is no time',
    (text) => {
      expect(parseSinceTime(text, now)).toBe(null)
    },
  )

  it('keeps sessions that ended then or later, and those without a time', () => {
    const reports = [
      report('before', { endedAt: '2026-11-14T12:00:00Z' }),
      report('after', { endedAt: '2026-11-15T12:00:00Z' }),
      report('timeless'),
    ]
    expect(ids(filterSessionsSince(reports, now))).toEqual(['after', 'timeless'])
  })
})
