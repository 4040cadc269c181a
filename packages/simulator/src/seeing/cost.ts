/** What a response cost by the catalogue's prices, and what the cache saved. */
import { type Money, type Prices, priceOf, priceUncached, type Usage } from '@tidemark/core'
import type { JsonObject } from '../api.ts'
import type { CostFigures } from './record.ts'

export function costOf(usage: JsonObject, prices: Prices | null): CostFigures {
  if (prices === null) return { total: null, saved: null }
  const money = priceOf(usage as Usage, prices)
  const cached = promptPrice(money)
  const plain = promptPrice(priceUncached(usage as Usage, prices))
  return { total: money.total, saved: plain === null || cached === null ? null : plain - cached }
}

/** The prompt alone: what was saved on it is known though the price of output may not be. */
function promptPrice({ byClass: { input, cacheRead, write5m, write1h } }: Money): number | null {
  if (input === null || cacheRead === null || write5m === null || write1h === null) return null
  return input + cacheRead + write5m + write1h
}
