import type { ModelPrices } from '@tidemark/core/cost/prices'
import { describe, expect, it } from 'vitest'
import { computeRequestCost } from './request-log.ts'

const high = { above: 100_000, input: 8, cacheRead: 0.8, writeShort: 10, writeLong: 16, output: 40 }
const prices: ModelPrices = {
  input: 4,
  cacheRead: 0.4,
  writeShort: 5,
  writeLong: 8,
  output: 20,
  tiers: [high],
  factors: { speed: { standard: 1, fast: 2 } },
}
const run = (read: number, type = 'message') => ({
  type,
  input_tokens: 0,
  cache_read_input_tokens: read,
  output_tokens: 0,
})

describe('what the cache saved', () => {
  it.each([
    ['at standard speed', { ...run(50_000), speed: 'standard' }, (50_000 * 3.6) / 1e6],
    ['at a speed that costs twice', { ...run(50_000), speed: 'fast' }, (50_000 * 7.2) / 1e6],
    ['over the step', run(100_001), (100_001 * 7.2) / 1e6],
    [
      'in runs that are each below the step',
      { ...run(60_000), iterations: [run(60_000, 'compaction'), run(60_000)] },
      (120_000 * 3.6) / 1e6,
    ],
    ['where nothing was cached', { input_tokens: 150_000, output_tokens: 10, speed: 'fast' }, 0],
  ])('%s', (_, usage, saved) => {
    expect(computeRequestCost(usage, prices).saved).toBeCloseTo(saved, 12)
  })

  it('is known even if the price of output is not', () => {
    const { total, saved } = computeRequestCost(
      { ...run(50_000), output_tokens: 5 },
      { ...prices, output: null },
    )
    expect(total).toBeNull()
    expect(saved).toBeCloseTo(0.18, 12)
  })
})
