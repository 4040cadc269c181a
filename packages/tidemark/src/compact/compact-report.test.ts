import { expect, it } from 'vitest'
import { priceCompaction } from './compact-report.ts'

const rates = { input: 3, cacheRead: 0.3, write5m: 3.75, write1h: 6, output: 15 }

it.each([
  [
    'made without a model',
    100_000,
    20_000,
    null,
    { costUsd: 0.075, savedPerCallUsd: 0.024, breakEvenCalls: 4 },
  ],
  [
    'written by a model',
    100_000,
    20_000,
    { input: 100_000, output: 2_000 },
    { costUsd: 0.405, savedPerCallUsd: 0.024, breakEvenCalls: 17 },
  ],
  ['that saves nothing', 20_000, 20_000, null, { costUsd: 0.075, savedPerCallUsd: 0, breakEvenCalls: null }],
])('the price of a summary %s', (_, before, after, asked, expected) => {
  const found = priceCompaction(before, after, asked, rates)
  expect(found?.costUsd).toBeCloseTo(expected.costUsd, 9)
  expect(found?.savedPerCallUsd).toBeCloseTo(expected.savedPerCallUsd, 9)
  expect(found?.breakEvenCalls).toBe(expected.breakEvenCalls)
})

it('is not known where a rate is not', () => {
  expect(priceCompaction(2, 1, null, { ...rates, output: null })).toBe(null)
})
