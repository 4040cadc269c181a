import { describe, expect, it } from 'vitest'
import type { CacheBreak, ClearingCost } from './cache-report.ts'
import { moneyLost } from './money-lost.ts'

function broken(costUsd: number | null): CacheBreak {
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

function cleared(costUsd: number | null): ClearingCost {
  return { at: '2026-03-09', tokensRewritten: 3_000, costUsd, breakEvenCalls: null, model: 'm' }
}

describe('moneyLost', () => {
  it.each([
    {
      name: 'breaks are added up, and their share told',
      breaks: [0.25, 0.2],
      clearings: [],
      spent: 1.125,
      lost: 0.45,
      share: 0.4,
      cleared: 0,
    },
    {
      name: 'clearings are told apart',
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
      name: 'the bill is not known',
      breaks: [0.2],
      clearings: [],
      spent: null,
      lost: 0.2,
      share: null,
      cleared: 0,
    },
  ])('$name', ({ breaks, clearings, spent, lost, share, cleared: paid }) => {
    const found = {
      cacheBreaks: breaks.map(broken),
      clearingCosts: clearings.map(cleared),
      hourWouldSave: null,
    }
    expect(moneyLost(found, spent)).toEqual({
      lostToBreaks: lost,
      shareLostToBreaks: share,
      spentOnClearings: paid,
    })
  })
})
