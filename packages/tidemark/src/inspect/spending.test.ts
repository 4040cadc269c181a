import { modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { readAnthropicUsage } from '@tidemark/wire/providers/message-usage'
import { describe, expect, it } from 'vitest'
import type { ClearingCost, LoggedCacheBreak } from './report.ts'
import {
  createDayFormatter,
  type PricedLogCall,
  priceLogCall,
  sumCacheLosses,
  summarizeCosts,
} from './spending.ts'

function priceUsage(raw: object, estimated = 0, isFinal = false): PricedLogCall {
  const call = {
    key: 'k',
    model: 'claude-opus-4-6',
    at: '2026-02-10',
    agent: null,
    source: null,
    isCopy: false,
    isFinal,
    blocks: [],
  }
  return priceLogCall(
    { ...call, usage: readAnthropicUsage(raw) },
    { catalogue: modelCatalogue, format: 'claude-code', estimate: () => estimated },
  )
}

const run = (input: number, read = 0) => ({
  type: 'message',
  input_tokens: input,
  cache_read_input_tokens: read,
  output_tokens: 0,
})

describe('the amount saved by the cache is', () => {
  it.each([
    ['zero when nothing was cached, at any speed', { ...run(1_000_000), speed: 'fast' }, 0],
    ['the difference to the input price', run(0, 100_000), (100_000 * 4.5) / 1e6],
    [
      'computed for each iteration at its own price tier',
      { ...run(0), iterations: [run(0, 150_000), run(0, 150_000)] },
      1.35,
    ],
  ])('%s', (_, usage, saved) => {
    expect(summarizeCosts([priceUsage(usage)]).savedByCache).toBe(saved)
  })

  it('scaled like the price at another speed', () => {
    const [standard, fast] = ['standard', 'fast'].map((speed) => priceUsage({ ...run(0, 100_000), speed }))
    const factor = (fast?.money.total ?? 0) / (standard?.money.total ?? 0)
    expect(factor).toBeGreaterThan(1)
    expect(fast?.saved).toBeCloseTo((standard?.saved ?? 0) * factor, 12)
  })
})

describe('output tokens logged at the start of the stream', () => {
  it.each([
    ['no list of iterations', undefined, true],
    ['an empty list', [], true],
    ['a list without iterations', [null], true],
    ['an iteration', [run(5)], false],
  ])('with %s are replaced by the estimate only where they may be wrong: %j', (_, iterations, isReplaced) => {
    const usage = { input_tokens: 5, output_tokens: 1, ...(iterations === undefined ? {} : { iterations }) }
    expect(priceUsage(usage, 500).isOutputEstimated).toBe(isReplaced)
  })

  it('are never replaced where the log has them with the stop reason of the response', () => {
    const usage = { input_tokens: 5, output_tokens: 1 }
    expect(priceUsage(usage, 500, true).isOutputEstimated).toBe(false)
  })
})

it.each([
  ['UTC', '2026-03-09T23:30:00.000Z', '2026-03-09'],
  ['Europe/Berlin', '2026-03-09T23:30:00.000Z', '2026-03-10'],
  ['UTC', 'no time', null],
])('the day in %s of %s', (zone, at, expected) => {
  expect(createDayFormatter(zone)(at)).toBe(expected)
})

it.each([':/etc/localtime', ''])("a zone of %j is the machine's own", (zone) => {
  const at = '2026-03-09T12:00:00.000Z'
  expect(createDayFormatter(zone)(at)).toBe(createDayFormatter()(at))
})

function createBreak(costUsd: number | null): LoggedCacheBreak {
  return {
    at: '2026-03-09',
    tokensRewritten: 3_000,
    costUsd,
    cause: 'expired',
    evidence: '',
    line: 1,
    model: 'claude-opus-4-5',
  }
}

function createClearing(costUsd: number | null): ClearingCost {
  return { at: '2026-03-09', tokensRewritten: 3_000, costUsd, breakEvenCalls: null, by: 'host', model: 'm' }
}

describe('moneyLost', () => {
  it.each([
    {
      name: 'breaks are added up, with their share of the cost',
      breaks: [0.25, 0.2],
      clearings: [],
      spent: 1.125,
      lost: 0.45,
      share: 0.4,
      cleared: 0,
    },
    {
      name: 'clearings are counted separately',
      breaks: [0.2],
      clearings: [0.1, 0.3],
      spent: 2,
      lost: 0.2,
      share: 0.1,
      cleared: 0.4,
    },
    { name: 'nothing broke', breaks: [], clearings: [], spent: 1, lost: 0, share: 0, cleared: 0 },
    { name: 'nothing was spent', breaks: [], clearings: [], spent: 0, lost: 0, share: null, cleared: 0 },
    {
      name: 'a break has no price',
      breaks: [0.2, null],
      clearings: [null],
      spent: 1,
      lost: null,
      share: null,
      cleared: null,
    },
    {
      name: 'the total cost is unknown',
      breaks: [0.2],
      clearings: [],
      spent: null,
      lost: 0.2,
      share: null,
      cleared: 0,
    },
  ])('$name', ({ breaks, clearings, spent, lost, share, cleared: paid }) => {
    const found = {
      cacheBreaks: breaks.map(createBreak),
      clearingCosts: clearings.map(createClearing),
      hourWouldSave: null,
    }
    expect(sumCacheLosses(found, spent)).toEqual({
      lostToBreaks: lost,
      shareLostToBreaks: share,
      spentOnClearings: paid,
    })
  })
})
