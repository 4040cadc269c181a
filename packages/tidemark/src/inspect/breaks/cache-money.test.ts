import { modelCatalogue } from '@tidemark/wire'
import { describe, expect, it } from 'vitest'
import type { Call } from '../calls.ts'
import { priceCall } from '../spending.ts'
import { cacheMoneyOf } from './cache-money.ts'
import type { CacheBreak } from './cache-report.ts'

function priced(model: string, read: number, written: number) {
  const usage = {
    input_tokens: 0,
    output_tokens: 0,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    cache_creation: { ephemeral_5m_input_tokens: written, ephemeral_1h_input_tokens: 0 },
  }
  const call: Call = { key: 'k', model, at: '2026-03-09', agent: null, isCopy: false, usage, blocks: [] }
  return priceCall(call, { catalogue: modelCatalogue, format: 'claude-code', estimate: () => 0 })
}

function lost(costUsd: number | null): CacheBreak {
  return { at: '2026-03-09', tokensRewritten: 3_000, costUsd, cause: 'expired', evidence: '', line: 1 }
}

describe('cacheMoneyOf', () => {
  const calls = [priced('claude-opus-4-5', 1_000_000, 100_000)]

  it('tells what was spent, saved and lost, and the share of it', () => {
    const { byClass, ...figures } = cacheMoneyOf(calls, [lost(0.25), lost(0.2)])
    expect(figures).toEqual({ spent: 1.125, savedByCache: 4.375, lostToBreaks: 0.45, shareLostToBreaks: 0.4 })
    expect([byClass.cacheRead, byClass.write5m]).toEqual([
      { tokens: 1_000_000, usd: 0.5 },
      { tokens: 100_000, usd: 0.625 },
    ])
  })

  it('lost nothing where nothing broke', () => {
    const { lostToBreaks, shareLostToBreaks } = cacheMoneyOf(calls, [])
    expect([lostToBreaks, shareLostToBreaks]).toEqual([0, 0])
  })

  it('does not know what it cannot price', () => {
    const unknown = cacheMoneyOf([priced('no-such-model', 1_000, 1_000)], [lost(null)])
    expect([unknown.spent, unknown.savedByCache, unknown.lostToBreaks, unknown.shareLostToBreaks]).toEqual([
      null,
      null,
      null,
      null,
    ])
  })
})
