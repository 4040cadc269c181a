import { describe, expect, it } from 'vitest'
import { assumeTypicalCompactionSizes } from './context-plan.ts'
import {
  type CompactionBreakEvenInput,
  type CompactionResultSizes,
  findCompactionBreakEven,
} from './plan-input.ts'

const rates = (read: number) => ({ input: 1, cacheRead: read, writeShort: 1.25, writeLong: 2, output: 5 })
const QUESTION: Omit<CompactionBreakEvenInput, 'rates'> = {
  context: 158_000,
  expectedResult: { after: 54_000, summary: 3_000, reattached: 10_000 },
  growthPerCall: 1_163,
  write: 'writeShort',
  isWarm: true,
}

describe('the size from which a compaction pays', () => {
  it.each([
    [0.1, 83_197],
    [0.05, 93_741],
    [0.025, 109_074],
  ])('reads at %f of the input: %i tokens', (read, tokens) => {
    expect(findCompactionBreakEven({ ...QUESTION, rates: rates(read) })?.tokens).toBe(tokens)
  })

  it.each([
    ['on a cached prefix', true, 5.6],
    ['on none', false, 22.8],
  ])('pays back %s in %f calls', (_, isWarm, calls) => {
    const outlook: CompactionResultSizes = { after: 52_000, summary: 3_000, reattached: 20_000 }
    // A prefix that is not shared is written, at 1.25, by those who cache it; here it is plain input.
    const paid = findCompactionBreakEven({
      ...QUESTION,
      expectedResult: outlook,
      rates: { ...rates(0.1), input: 1.25 },
      isWarm,
    })
    expect(paid?.breakEvenCalls).toBeCloseTo(calls, 1)
  })

  it('cannot be told without prices or growth', () => {
    expect(findCompactionBreakEven({ ...QUESTION, rates: { ...rates(0.1), cacheRead: null } })).toBeNull()
    expect(findCompactionBreakEven({ ...QUESTION, rates: rates(0) })).toBeNull()
    expect(findCompactionBreakEven({ ...QUESTION, rates: rates(0.1), growthPerCall: 0 })).toBeNull()
  })

  it('goes by what compactions usually leave until there has been one', () => {
    expect(assumeTypicalCompactionSizes(30_000)).toEqual({
      after: 53_000,
      summary: 3_000,
      reattached: 20_000,
    })
  })
})
