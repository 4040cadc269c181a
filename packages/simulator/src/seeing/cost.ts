/** What a response cost by the catalogue's prices, and what the cache saved. */
import { type Prices, priceOf, priceTokens, type Usage } from '@tidemark/core'
import type { JsonObject } from '../api.ts'
import type { CacheSplit } from '../cache/split.ts'
import type { CostFigures } from './record.ts'

export function costOf(usage: JsonObject, split: CacheSplit, prices: Prices | null): CostFigures {
  if (prices === null) return { total: null, saved: null }
  const { total } = priceOf(usage as Usage, prices)
  const { read, write5m, write1h, input } = split
  const cached = priceTokens({ input, cacheRead: read, write5m, write1h }, prices).total
  const plain = priceTokens({ input: input + read + write5m + write1h }, prices).total
  return { total, saved: plain === null || cached === null ? null : plain - cached }
}
