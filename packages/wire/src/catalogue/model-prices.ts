/** What a model costs on a day and at a place. */
import type { Prices, Rates } from '@tidemark/core'
import type { ModelEntry } from './model-entry.ts'

/** On a day (YYYY-MM-DD, or a timestamp that begins with it): old logs were billed at old prices. */
export function pricesOn(model: ModelEntry, day: string): Prices {
  return model.pastPrices?.find(({ before }) => day < before)?.prices ?? model.prices
}

/** The model at an endpoint that multiplies every price, past ones too. */
export function timesFactor(model: ModelEntry, factor: number): ModelEntry {
  const scaled = { ...model, prices: pricesTimes(model.prices, factor) }
  if (model.pastPrices === undefined) return scaled
  const pastPrices = model.pastPrices.map((past) => ({ ...past, prices: pricesTimes(past.prices, factor) }))
  return { ...scaled, pastPrices }
}

function pricesTimes(prices: Prices, factor: number): Prices {
  const scaled = { ...prices, ...ratesTimes(prices, factor) }
  if (prices.tiers === undefined) return scaled
  return { ...scaled, tiers: prices.tiers.map((tier) => ({ ...tier, ...ratesTimes(tier, factor) })) }
}

function ratesTimes({ input, cacheRead, write5m, write1h, output }: Rates, factor: number): Rates {
  const by = (rate: number | null) => (rate === null ? null : exact(rate * factor))
  return {
    input: by(input),
    cacheRead: by(cacheRead),
    write5m: by(write5m),
    write1h: by(write1h),
    output: by(output),
  }
}

/** Prices have a few decimals; what a multiplication adds behind them is noise. */
export function exact(rate: number): number {
  return Math.round(rate * 1e6) / 1e6
}
