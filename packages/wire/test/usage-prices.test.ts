/** Prices of calls, by the usage that the Messages API reports. */

import {
  addCosts,
  type Cost,
  findTierRates,
  type ModelPrices,
  priceUsage as priceTokens,
  priceUsageUncached as priceTokensUncached,
  ZERO_COST,
} from '@tidemark/core/cost/prices'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readAnthropicUsage } from '../src/providers/message-usage.ts'

type Prices = Parameters<typeof priceTokens>
type RawUsage = Readonly<Record<string, unknown>>

const read = (raw: RawUsage): Prices[0] => readAnthropicUsage(raw) ?? expect.fail('no usage')
const priceUsage = (raw: RawUsage, ...more: [Prices[1], Prices[2]?]): Cost => priceTokens(read(raw), ...more)
const priceUsageUncached = (raw: RawUsage, ...more: [Prices[1], Prices[2]?]): Cost =>
  priceTokensUncached(read(raw), ...more)

const flat: ModelPrices = { input: 4, cacheRead: 0.2, writeShort: 5, writeLong: 8, output: 20 }
const stepped: ModelPrices = {
  input: 0.1,
  cacheRead: 0.01,
  writeShort: 0.125,
  writeLong: 0.2,
  output: 0.5,
  tiers: [{ above: 100_000, input: 0.5, cacheRead: 0.05, writeShort: 0.625, writeLong: 1, output: 2.5 }],
}
const split = (m5: number, h1: number) => ({
  cache_creation_input_tokens: m5 + h1,
  cache_creation: { ephemeral_5m_input_tokens: m5, ephemeral_1h_input_tokens: h1 },
})
const cents = (money: Cost) => Object.values(money.byClass).map((dollars) => round((dollars ?? NaN) * 100))
const round = (value: number) => Math.round(value * 1e9) / 1e9

describe('the price of a call', () => {
  it('is tokens times price, class by class', () => {
    const usage = {
      input_tokens: 2_000,
      cache_read_input_tokens: 140_000,
      output_tokens: 1_500,
      ...split(0, 8_000),
    }
    const money = priceUsage(usage, flat)
    expect(cents(money)).toEqual([0.8, 2.8, 0, 6.4, 3])
    expect(money.total).toBeCloseTo(0.13, 12)
    expect(money).toMatchObject({ fees: 0, missing: [], assumed: [] })
  })

  it('keeps the two lifetimes of cache writes apart', () => {
    const money = priceUsage({ input_tokens: 0, output_tokens: 0, ...split(100_000, 50_000) }, flat)
    expect(cents(money)).toEqual([0, 0, 50, 40, 0])
  })

  it.each([
    ['no breakdown', { cache_creation_input_tokens: 100_000 }],
    ['an empty breakdown', { cache_creation_input_tokens: 100_000, cache_creation: null }],
  ])('counts writes as 5-minute ones where there is %s, and says so', (_, writes) => {
    const money = priceUsage({ input_tokens: 0, output_tokens: 0, ...writes }, flat)
    expect(cents(money)).toEqual([0, 0, 50, 0, 0])
    expect(money.assumed).toEqual([
      'cache writes without a lifetime are counted as writes for the shortest one',
    ])
  })

  it('counts cache writes without a lifetime as 5-minute writes', () => {
    const writes = {
      cache_creation_input_tokens: 100_000,
      cache_creation: { ephemeral_1h_input_tokens: 60_000 },
    }
    const money = priceUsage({ input_tokens: 0, output_tokens: 0, ...writes }, flat)
    expect(cents(money)).toEqual([0, 0, 20, 48, 0])
    expect(money.assumed).toHaveLength(1)
  })

  it('is 0 if nothing was used', () => {
    expect(priceUsage({ input_tokens: 0, output_tokens: 0 }, flat)).toEqual(ZERO_COST)
  })
})

describe('price tiers', () => {
  it.each([
    ['at the step', { input_tokens: 40_000, cache_read_input_tokens: 60_000 }, [0.4, 0.06, 0, 0, 0.05]],
    [
      'over it by cached tokens',
      { input_tokens: 40_000, cache_read_input_tokens: 60_001 },
      [2, 0.300005, 0, 0, 0.25],
    ],
    ['over it by writes', { input_tokens: 1, ...split(100_000, 0) }, [0.00005, 0, 6.25, 0, 0.25]],
    ['over it by longer writes', { input_tokens: 1, ...split(0, 100_000) }, [0.00005, 0, 0, 10, 0.25]],
  ])('prices the whole request %s', (_, prompt, expected) => {
    expect(cents(priceUsage({ output_tokens: 1_000, ...prompt }, stepped))).toEqual(expected.map(round))
  })

  it('uses the highest tier that the prompt exceeds, in any order of the list', () => {
    const tier = (above: number, rate: number) => ({ ...flat, above, input: rate })
    const prices = { ...flat, tiers: [tier(200, 30), tier(100, 10), tier(400, 40)] }
    expect([100, 101, 201, 400, 401].map((tokens) => findTierRates(prices, tokens).input)).toEqual([
      4, 10, 30, 30, 40,
    ])
  })
})

describe('iterations', () => {
  const message = { type: 'message', input_tokens: 10_000, output_tokens: 1_000 }
  const compaction = { type: 'compaction', input_tokens: 150_000, output_tokens: 5_000 }

  it('are the bill: the totals leave a compaction out', () => {
    const usage = { input_tokens: 10_000, output_tokens: 1_000, iterations: [compaction, message] }
    expect(priceUsage(usage, flat).total).toBeCloseTo(0.6 + 0.1 + 0.04 + 0.02, 12)
  })

  it('are each priced at the tier of their own prompt', () => {
    const usage = { input_tokens: 0, output_tokens: 0, iterations: [compaction, message] }
    const high = (150_000 * 0.5 + 5_000 * 2.5) / 1e6
    const low = (10_000 * 0.1 + 1_000 * 0.5) / 1e6
    expect(priceUsage(usage, stepped).total).toBeCloseTo(high + low, 12)
  })

  it.each([[null], [[]]])('%j means there are none', (iterations) => {
    expect(priceUsage({ input_tokens: 10_000, output_tokens: 1_000, iterations }, flat).total).toBeCloseTo(
      0.06,
      12,
    )
  })

  it('of another model are priced as that model', () => {
    const usage = {
      input_tokens: 0,
      output_tokens: 0,
      iterations: [message, { ...message, type: 'fallback_message', model: 'other' }],
    }
    const own = (10_000 * 4 + 1_000 * 20) / 1e6
    const other = (10_000 * 0.1 + 1_000 * 0.5) / 1e6
    expect(priceUsage(usage, flat, () => stepped).total).toBeCloseTo(own + other, 12)
    expect(priceUsage(usage, flat, () => null)).toMatchObject({
      total: null,
      priced: own,
      missing: ['input', 'output'],
    })
  })

  it.each([
    [{ ...message, type: 'advisor_message', model: 'other' }],
    [{ ...message, type: 'advisor_message' }],
  ])('%j of another model borrow the prices where nothing better is known, and say so', (advice) => {
    const money = priceUsage({ input_tokens: 0, output_tokens: 0, iterations: [advice] }, flat)
    expect(money.total).toBeCloseTo(0.06, 12)
    expect(money.assumed).toEqual(['what another model answered is priced as this one'])
  })
})

describe('what is not known', () => {
  const unsure: ModelPrices = { ...flat, writeLong: null, output: null }

  it('makes the total unknown, names the class, and never counts as 0', () => {
    const money = priceUsage({ input_tokens: 1_000_000, output_tokens: 10 }, unsure)
    expect(money).toEqual({
      total: null,
      priced: 4,
      byClass: { input: 4, cacheRead: 0, writeShort: 0, writeLong: 0, output: null },
      fees: 0,
      missing: ['output'],
      assumed: [],
    })
  })

  it('does not matter if the class was not used', () => {
    expect(priceUsage({ input_tokens: 1_000_000, output_tokens: 0 }, unsure)).toMatchObject({
      total: 4,
      missing: [],
    })
  })
})

describe('what changes every rate', () => {
  const prices: ModelPrices = {
    ...flat,
    factors: {
      service_tier: { standard: 1, batch: 0.5 },
      speed: { standard: 1, fast: 2, slow: null },
      inference_geo: { us: 1.1 },
    },
    fees: { web_search_requests: 0.01, oracle_requests: null },
  }
  const usage = { input_tokens: 1_000_000, output_tokens: 0 }

  it.each([
    [{ service_tier: 'standard', speed: null }, 4],
    [{ service_tier: 'batch' }, 2],
    [{ service_tier: 'standard', speed: 'fast', inference_geo: 'us' }, 8.8],
  ])('%j', (fields, expected) => {
    const money = priceUsage({ ...usage, ...fields }, prices)
    expect(money.total).toBeCloseTo(expected, 12)
    expect(money.assumed).toEqual([])
  })

  it('is priced as standard if the value is not listed, and says so', () => {
    const money = priceUsage({ ...usage, service_tier: 'priority', speed: 'constructor' }, prices)
    expect(money).toMatchObject({
      total: 4,
      assumed: ['service_tier "priority" is priced as standard', 'speed "constructor" is priced as standard'],
    })
  })

  it('is unknown if the factor is', () => {
    expect(priceUsage({ ...usage, speed: 'slow' }, prices)).toMatchObject({ total: null, missing: ['input'] })
  })

  it('adds fees per request', () => {
    const searched = { ...usage, server_tool_use: { web_search_requests: 3, web_fetch_requests: 9 } }
    expect(priceUsage(searched, prices)).toMatchObject({ total: 4.03, fees: 0.03 })
    expect(priceUsage({ ...usage, server_tool_use: { oracle_requests: 1 } }, prices)).toMatchObject({
      total: null,
      priced: 4,
      fees: null,
      missing: ['oracle_requests'],
    })
  })
})

describe('without a cache', () => {
  const fast = { ...stepped, factors: { speed: { fast: 2 } }, fees: { web_search_requests: 0.01 } }
  const run = { type: 'message', input_tokens: 10_000, cache_read_input_tokens: 50_000, output_tokens: 0 }

  it.each([
    ['reads and writes are input', { ...run, ...split(10_000, 20_000) }, (90_000 * 0.1) / 1e6],
    ['the factors stay', { ...run, speed: 'fast' }, (60_000 * 0.2) / 1e6],
    ['the step stays', { ...run, cache_read_input_tokens: 90_001 }, (100_001 * 0.5) / 1e6],
    ['each run has its own step', { ...run, iterations: [run, run] }, (120_000 * 0.1) / 1e6],
    ['fees stay', { ...run, server_tool_use: { web_search_requests: 3 } }, 0.03 + (60_000 * 0.1) / 1e6],
  ])('%s', (_, usage, dollars) => {
    expect(priceUsageUncached(usage, fast).total).toBeCloseTo(dollars, 12)
  })

  it('another model keeps its own prices', () => {
    const usage = { ...run, iterations: [run, { ...run, model: 'other' }] }
    expect(priceUsageUncached(usage, stepped, () => flat).total).toBeCloseTo((60_000 * (0.1 + 4)) / 1e6, 12)
    expect(priceUsageUncached(usage, stepped, () => null)).toMatchObject({ total: null, missing: ['input'] })
  })

  it('a call without cached tokens costs exactly the same', () => {
    const tokens = fc.nat({ max: 3_000_000 })
    const speed = fc.constantFrom('fast', 'slow', null)
    fc.assert(
      fc.property(tokens, tokens, speed, (input_tokens, output_tokens, at) => {
        const usage = { input_tokens, output_tokens, speed: at }
        expect(priceUsageUncached(usage, fast)).toEqual(priceUsage(usage, fast))
      }),
    )
  })

  it('no lifetime of cache writes is assumed', () => {
    const usage = { input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 1_000 }
    expect(priceUsageUncached(usage, flat).assumed).toEqual([])
  })
})

it('infinite figures cost nothing', () => {
  const endless = Number('1e999')
  const usage = { input_tokens: endless, output_tokens: 0, server_tool_use: { web_search_requests: endless } }
  const prices = { ...flat, fees: { web_search_requests: 0.01 } }
  expect(priceUsage(usage, prices).total).toBe(0)
  expect(priceUsage({ ...usage, iterations: [usage, usage] }, prices).total).toBe(0)
})

it('cached tokens count towards the price tier of their request', () => {
  const usage = { input_tokens: 10_001, cache_read_input_tokens: 90_000, output_tokens: 0 }
  expect(priceUsage(usage, stepped).total).toBeCloseTo(0.0045 + 0.0050005, 12)
})

describe('sums', () => {
  const tokens = fc.nat({ max: 3_000_000 })
  const usages = fc.record({ input_tokens: tokens, output_tokens: tokens, cache_read_input_tokens: tokens })

  it('of calls are the sum of their prices, and one unknown makes them unknown', () => {
    fc.assert(
      fc.property(fc.array(usages), fc.boolean(), (calls, isKnown) => {
        const prices: ModelPrices = isKnown ? stepped : { ...stepped, tiers: [], output: null }
        const each = calls.map((usage) => priceUsage(usage, prices))
        const sum = each.reduce(addCosts, ZERO_COST)
        expect(sum.priced).toBeCloseTo(
          each.reduce((total, money) => total + money.priced, 0),
          9,
        )
        expect(sum.total === null).toBe(!isKnown && calls.some((usage) => usage.output_tokens > 0))
      }),
    )
  })

  it('list an assumption once', () => {
    const money = priceUsage({ input_tokens: 0, output_tokens: 0, cache_creation_input_tokens: 1 }, flat)
    expect(addCosts(money, money).assumed).toHaveLength(1)
  })
})
