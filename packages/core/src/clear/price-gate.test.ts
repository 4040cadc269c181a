import { describe, expect, it } from 'vitest'
import { pays, weighRewrite } from './price-gate.ts'

const rates = (read: number) => ({ input: 1, cacheRead: read, write5m: 1.25, write1h: 2, output: 5 })

describe('break-even of a rewrite', () => {
  it.each([
    [0.1, 'write5m', 11.5],
    [0.05, 'write5m', 24],
    [0.025, 'write5m', 49],
    [0.1, 'write1h', 19],
    [0.05, 'write1h', 39],
    [0.025, 'write1h', 79],
  ] as const)('reads at %f, %s: %f calls for each token behind one freed', (read, write, factor) => {
    const { breakEvenCalls } = weighRewrite(1_000, 1_000, { rates: rates(read), write })
    expect(breakEvenCalls).toBeCloseTo(factor)
    expect(weighRewrite(2_000, 1_000, { rates: rates(read), write }).breakEvenCalls).toBeCloseTo(factor / 2)
  })

  it('costs what writing costs above reading', () => {
    expect(weighRewrite(1, 1_000_000, { rates: rates(0.1), write: 'write5m' }).cost).toBeCloseTo(1.15)
  })

  it.each([
    ['nothing behind', 5, 0, 0.1, 0],
    ['nothing freed', 0, 5, 0.1, null],
    ['reads for nothing', 5, 5, 0, null],
    ['writes no dearer than reads', 5, 5, 1.25, 0],
  ] as const)('%s', (_, freed, behind, read, expected) => {
    expect(weighRewrite(freed, behind, { rates: rates(read), write: 'write5m' }).breakEvenCalls).toBe(
      expected,
    )
  })

  it('takes the usual proportion where prices are not known, and says so', () => {
    expect(weighRewrite(10, 10, { rates: null, write: 'write5m' })).toEqual({
      breakEvenCalls: 11.5,
      cost: null,
      isAssumed: true,
    })
  })

  it('must have paid before the calls are over', () => {
    const weighed = { breakEvenCalls: 23, cost: 0, isAssumed: false }
    expect([pays(weighed, 24), pays(weighed, 23), pays({ ...weighed, breakEvenCalls: null }, 1e9)]).toEqual([
      true,
      false,
      false,
    ])
  })
})
