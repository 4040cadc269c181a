import picocolors from 'picocolors'
import type { ClearingCost, LoggedCacheBreak } from 'tidemark/internal'
import type { SessionReport } from 'tidemark/logs'
import { describe, expect, it } from 'vitest'
import { chooseSymbols, createTimeFormat, type Screen } from '../render/screen.ts'
import { renderCacheBreaks, renderCosts } from './session-costs.ts'

function screen(columns = 80, env: Readonly<Record<string, string>> = {}): Screen {
  const colors = picocolors.createColors(false)
  return { columns, colors, symbols: chooseSymbols(env), time: createTimeFormat('UTC') }
}

function broken(costUsd: number | null, given: Partial<LoggedCacheBreak> = {}): LoggedCacheBreak {
  return {
    at: '2026-03-09T09:14:00.000Z',
    tokensRewritten: 40_000,
    costUsd,
    cause: 'expired',
    evidence: '6 min 40 s since the request before, and what it wrote lives 5m; nothing was read',
    line: 4,
    model: 'claude-opus-4-5',
    ...given,
  }
}

function cleared(breakEvenCalls: number | null, by: ClearingCost['by'] = 'host'): ClearingCost {
  return {
    at: '2026-03-09T09:20:00.000Z',
    tokensRewritten: 91_000,
    costUsd: 0.87,
    breakEvenCalls,
    by,
    model: 'm',
  }
}

interface Given {
  readonly cacheBreaks?: readonly LoggedCacheBreak[]
  readonly clearingCosts?: readonly ClearingCost[]
  readonly share?: number | null
  readonly hourWouldSave?: number | null
}

function drawn(given: Given, on = screen()) {
  const { cacheBreaks = [], clearingCosts = [], share = 0.125, hourWouldSave = null } = given
  const money = { shareLostToBreaks: share }
  return renderCacheBreaks(
    { cacheBreaks, clearingCosts, hourWouldSave, money } as unknown as SessionReport,
    on,
  )
}

describe('the breaks of a session', () => {
  it('show time, tokens, cost and cause, the most expensive first, with their total', () => {
    const cause = 'server-side' as const
    const cacheBreaks = [
      broken(0.25),
      broken(1.5, { tokensRewritten: 135_000, cause, evidence: 'nothing changed' }),
    ]
    expect(drawn({ cacheBreaks })).toEqual([
      'Cache breaks                                    2, $1.75 lost, 12.5% of the cost',
      '  server side 1× $1.50, expired 1× $0.25',
      '  2026-03-09 09:14    135k     $1.50  server side',
      '      nothing changed',
      '  2026-03-09 09:14   40.0k     $0.25  expired',
      '      6 min 40 s since the request before, and what it wrote lives 5m; nothing',
      '      was read',
    ])
  })

  it('beyond the first five are counted, with a hint how to see them all', () => {
    const lines = drawn(
      { cacheBreaks: Array.from({ length: 9 }, (_, index) => broken(index + 1)) },
      screen(160),
    )
    expect(lines.filter((line) => /\$\d/.test(line)).map((line) => /\$[\d.]+/.exec(line)?.[0])).toEqual([
      '$45.00',
      '$9.00',
      '$8.00',
      '$7.00',
      '$6.00',
      '$5.00',
    ])
    expect(lines.at(-1)).toBe('  … and 4 cheaper (--json lists them all)')
  })

  it('are shown even if their price is not known', () => {
    expect(
      drawn({ cacheBreaks: [broken(null, { at: '', agent: 'helper' }), broken(0.5)], share: null }),
    ).toEqual([
      'Cache breaks                                                      2, >$0.50 lost',
      '  2026-03-09 09:14   40.0k     $0.50  expired',
      '      6 min 40 s since the request before, and what it wrote lives 5m; nothing',
      '      was read',
      '  ?                  40.0k         ?  expired (agent helper)',
      '      6 min 40 s since the request before, and what it wrote lives 5m; nothing',
      '      was read',
    ])
  })

  it('are kept apart from the cost of clearings', () => {
    expect(drawn({ clearingCosts: [cleared(82), cleared(102), cleared(null)] }, screen(120))).toEqual([
      `Cache breaks${' '.repeat(104)}none`,
      '  △ not breaks: 3 clearings by the host, 273k tokens re-cached for $2.61; each pays for itself after 82 to 102 calls',
    ])
  })

  it('name who made the clearings: the host, Tidemark or the provider', () => {
    const costs = [cleared(null, 'provider'), cleared(null, 'tidemark'), cleared(null, 'provider')]
    expect(drawn({ clearingCosts: costs }, screen(120)).at(-1)).toBe(
      '  △ not breaks: 2 clearings by the provider, 1 by Tidemark, 273k tokens re-cached for $2.61',
    )
  })

  it('have no section if there are none', () => {
    expect(drawn({})).toEqual([])
  })

  it('show no secret and no control characters', () => {
    const secret = `sk-ant-api03-${'a1B2'.repeat(20)}`
    const text = drawn({ cacheBreaks: [broken(1, { evidence: `${secret} \u001b[2J` })] }).join('')
    expect([text.includes(secret), text.includes('\u001b')]).toEqual([false, false])
  })
})

describe('a 1-hour TTL, if 5-minute entries expired', () => {
  it.each([
    [1.5, 'a 1-hour cache TTL would have saved $1.50 in this session'],
    [-0.25, 'a 1-hour cache TTL would have cost $0.25 more in this session'],
  ])('would have saved or cost %d', (hourWouldSave, line) => {
    expect(drawn({ cacheBreaks: [broken(0.25)], hourWouldSave })).toContain(`  ${line}`)
  })

  it('is not mentioned if nothing expired', () => {
    const cacheBreaks = [broken(0.25, { cause: 'restarted' })]
    expect(drawn({ cacheBreaks, hourWouldSave: 1 }).join()).not.toContain('1-hour')
  })
})

describe('calls that the log does not have', () => {
  function costs(notInLog: SessionReport['money']['notInLog']): readonly string[] {
    const none = { tokens: 0, usd: 0 }
    const byClass = {
      input: { tokens: 10, usd: 1 },
      cacheRead: none,
      write5m: none,
      write1h: none,
      output: none,
    }
    const known = { savedByCache: 0, spentOnCompaction: 0, spentOnClearings: 0, missing: [], assumed: [] }
    const money = { byClass, pricedUsd: 4, feesUsd: 0, ...known, notInLog }
    return renderCosts(
      { money, costUsd: 4, outputEstimatedCalls: 0 } as unknown as SessionReport,
      screen(),
    ).slice(2)
  }

  it("have a row if the host's own totals are in the log", () => {
    expect(costs({ summaries: 1, usd: 3, tokens: 9_000 })).toEqual([
      '  not in the log                 9.0k     $3.00',
      '  total                                   $4.00',
      "  the total is the host's own, with the calls that it does not log",
    ])
  })

  it.each([
    [1, '  not included: the call that wrote the summary, which the host does not log'],
    [2, '  not included: the calls that wrote 2 summaries, which the host does not log'],
  ])('are named otherwise: %d', (summaries, expected) => {
    expect(costs({ summaries, usd: null, tokens: null }).at(-1)).toBe(expected)
  })
})
