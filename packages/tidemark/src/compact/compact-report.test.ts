import { expect, it } from 'vitest'
import { priceCompaction } from './compact-report.ts'

const rates = { input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }
const local = { calls: 0, input: 0, output: 0, cacheRead: 0, cacheWritten: 0 }
const byModel = { calls: 1, input: 1_000, output: 2_000, cacheRead: 100_000, cacheWritten: 0 }
const sizes = { before: 100_000, after: 20_000, unchanged: 0 }

it.each([
  ['made without a model', sizes, local, { costUsd: 0.075, paidUsd: 0, breakEvenCalls: 4 }],
  [
    'written by a model, which is paid',
    sizes,
    byModel,
    { costUsd: 0.075, paidUsd: 0.063, breakEvenCalls: 4 },
  ],
  [
    'behind a system prompt that stays cached',
    { ...sizes, unchanged: 10_000 },
    local,
    { costUsd: 0.0375, paidUsd: 0, breakEvenCalls: 2 },
  ],
  [
    'that saves nothing',
    { ...sizes, before: 20_000 },
    local,
    { costUsd: 0.075, paidUsd: 0, breakEvenCalls: null },
  ],
])('the price of a summary %s', (_, given, usage, expected) => {
  const found = priceCompaction(given, usage, rates)
  expect(found?.costUsd).toBeCloseTo(expected.costUsd, 9)
  expect(found?.paidUsd).toBeCloseTo(expected.paidUsd, 9)
  expect(found?.savedPerCallUsd).toBeCloseTo(((given.before - given.after) * 0.3) / 1_000_000, 9)
  expect(found?.breakEvenCalls).toBe(expected.breakEvenCalls)
})

it('is not known where a rate is not', () => {
  expect(priceCompaction(sizes, local, { ...rates, output: null })).toBe(null)
})
