import { describe, expect, it } from 'vitest'
import { isBreak, moneyLost, ratesOf, tokensLost } from './loss.ts'

const LIMITS = { percent: 5, tokens: 2_000 }

function billed(cacheRead: number, write5m: number, others: { write1h?: number; input?: number } = {}) {
  return { cacheRead, write5m, write1h: 0, input: 0, output: 0, ...others }
}

describe('isBreak', () => {
  it.each([
    { expected: 100_000, read: 95_000, anew: 9_000, is: false, why: 'exactly five per cent' },
    { expected: 100_000, read: 94_999, anew: 9_000, is: true, why: 'more than five per cent' },
    { expected: 10_000, read: 8_000, anew: 9_000, is: false, why: 'exactly two thousand' },
    { expected: 10_000, read: 7_999, anew: 9_000, is: true, why: 'more than two thousand' },
    { expected: 100_000, read: 50_000, anew: 2_000, is: false, why: 'nothing was paid for again' },
    { expected: 100_000, read: 110_000, anew: 9_000, is: false, why: 'more was read than expected' },
    { expected: 0, read: 0, anew: 90_000, is: false, why: 'nothing was expected' },
  ])('$why: $is', ({ expected, read, anew, is }) => {
    expect(isBreak({ expected, tokens: billed(read, anew) }, LIMITS)).toBe(is)
  })
})

describe('tokensLost', () => {
  it('is what is missing, as far as it was paid for', () => {
    const readings = [
      { expected: 50_000, tokens: billed(10_000, 45_000) },
      { expected: 50_000, tokens: billed(10_000, 30_000, { input: 5_000 }) },
      { expected: 50_000, tokens: billed(60_000, 1_000) },
    ]
    expect(readings.map(tokensLost)).toEqual([40_000, 35_000, 0])
  })
})

describe('moneyLost', () => {
  const rates = { input: 2, cacheRead: 0.2, write5m: 2.5, write1h: 4, output: 10 }

  it.each([
    { name: '5-minute writes', lost: 10_000, tokens: billed(0, 20_000), dollars: 0.023 },
    { name: '1-hour writes', lost: 10_000, tokens: billed(0, 0, { write1h: 20_000 }), dollars: 0.038 },
    {
      name: 'both, by their shares',
      lost: 10_000,
      tokens: billed(0, 5_000, { write1h: 15_000 }),
      dollars: 0.03425,
    },
    {
      name: 'plain input, where not enough was written',
      lost: 10_000,
      tokens: billed(0, 4_000, { input: 6_000 }),
      dollars: 0.02,
    },
    { name: 'nothing', lost: 0, tokens: billed(0, 0), dollars: 0 },
  ])('of $name', ({ lost, tokens, dollars }) => {
    expect(moneyLost(lost, tokens, rates)).toBeCloseTo(dollars, 12)
  })

  it.each([
    { name: 'no prices at all', rates: null },
    { name: 'no price of a read', rates: { ...rates, cacheRead: null } },
    { name: 'no price of what was written', rates: { ...rates, write5m: null } },
  ])('is not known with $name', ({ rates: given }) => {
    expect(moneyLost(10_000, billed(0, 20_000), given)).toBeNull()
  })

  it('needs no price of what was not used', () => {
    expect(moneyLost(10_000, billed(0, 20_000), { ...rates, write1h: null, input: null })).toBeCloseTo(
      0.023,
      12,
    )
  })
})

describe('ratesOf', () => {
  const prices = {
    input: 1,
    cacheRead: 0.1,
    write5m: 1.25,
    write1h: 2,
    output: 5,
    tiers: [{ above: 100_000, input: 5, cacheRead: 0.5, write5m: 6.25, write1h: 10, output: 25 }],
    factors: { speed: { fast: 2 } },
  }
  const usage = { input_tokens: 0, output_tokens: 0 }

  it('goes by the size of the prompt and by what the usage says', () => {
    const small = ratesOf(usage, billed(90_000, 10_000), prices)
    const large = ratesOf(usage, billed(90_000, 10_001), prices)
    const fast = ratesOf({ ...usage, speed: 'fast' }, billed(0, 0), prices)
    expect([small?.write5m, large?.write5m, fast?.write5m, ratesOf(usage, billed(0, 0), null)]).toEqual([
      1.25,
      6.25,
      2.5,
      null,
    ])
  })
})
