import type { Usage } from '@tidemark/core'
import { modelCatalogue } from '@tidemark/wire'
import { describe, expect, it } from 'vitest'
import { moneySpent, type PricedCall, priceLogged } from './spending.ts'

function priced(usage: Usage, estimated = 0): PricedCall {
  const call = {
    key: 'k',
    model: 'claude-opus-4-6',
    at: '2026-02-10',
    agent: null,
    source: null,
    isCopy: false,
    blocks: [],
  }
  return priceLogged(
    { ...call, usage },
    { catalogue: modelCatalogue, format: 'claude-code', estimate: () => estimated },
  )
}

const run = (input: number, read = 0) => ({
  type: 'message',
  input_tokens: input,
  cache_read_input_tokens: read,
  output_tokens: 0,
})

describe('what the cache saved', () => {
  it.each([
    ['nothing where nothing was cached, at whatever speed', { ...run(1_000_000), speed: 'fast' }, 0],
    ['at standard speed', run(0, 100_000), (100_000 * 4.5) / 1e6],
    ['each run at its own step', { ...run(0), iterations: [run(0, 150_000), run(0, 150_000)] }, 1.35],
  ])('%s', (_, usage, saved) => {
    expect(moneySpent([priced(usage)]).savedByCache).toBe(saved)
  })

  it('at another speed in the proportion of its price', () => {
    const [standard, fast] = ['standard', 'fast'].map((speed) => priced({ ...run(0, 100_000), speed }))
    const factor = (fast?.money.total ?? 0) / (standard?.money.total ?? 0)
    expect(factor).toBeGreaterThan(1)
    expect(fast?.saved).toBeCloseTo((standard?.saved ?? 0) * factor, 12)
  })
})

describe('output that the log has from the start of the stream', () => {
  it.each([
    ['no list', undefined, true],
    ['an empty list of runs', [], true],
    ['a list of nothing', [null], true],
    ['runs', [run(5)], false],
  ])('is mended where there is %s: %j', (_, iterations, isMended) => {
    const usage = { input_tokens: 5, output_tokens: 1, ...(iterations === undefined ? {} : { iterations }) }
    expect(priced(usage as Usage, 500).isOutputEstimated).toBe(isMended)
  })
})
