/** Prices as data, and which of them are in force for a request. */
import type { Usage } from '../conversation/record.ts'
import type { PriceClass } from './billed.ts'

/**
 * Dollars per million tokens, null where not known. `write5m` is the cache write of the default lifetime,
 * `write1h` that of the longer one, whatever those lifetimes are at the provider.
 */
export type Rates = { readonly [Class in PriceClass]: number | null }

/** The rates of a whole request whose prompt, cached tokens included, is longer than `above`. */
export interface PriceTier extends Rates {
  readonly above: number
}

export interface Prices extends Rates {
  readonly tiers?: readonly PriceTier[]
  /**
   * What a field of the usage does to every rate, by its value: `{ speed: { standard: 1, fast: 2 } }`.
   * A field that is absent or null changes nothing; a value not listed is priced as standard, and said.
   */
  readonly factors?: Readonly<Record<string, Readonly<Record<string, number | null>>>>
  /** Dollars for each request counted under `server_tool_use`, by its name there. */
  readonly fees?: Readonly<Record<string, number | null>>
}

/** The rates in force for a prompt of that many tokens, cached ones included. */
export function ratesFor(prices: Prices, promptTokens: number): Rates {
  const reached = (prices.tiers ?? []).filter((tier) => promptTokens > tier.above)
  const highest = reached.toSorted((a, b) => b.above - a.above)[0]
  return scaled(highest ?? prices, 1)
}

/** What the fields of a usage do to the rates together; null where one of them has no known factor. */
export interface Factor {
  readonly factor: number | null
  readonly assumed: readonly string[]
}

export function factorOf(usage: Usage, prices: Prices): Factor {
  let factor: number | null = 1
  const assumed: string[] = []
  for (const [field, byValue] of Object.entries(prices.factors ?? {})) {
    const value = usage[field]
    if (typeof value !== 'string') continue
    const found = Object.hasOwn(byValue, value) ? byValue[value] : undefined
    if (found === undefined) assumed.push(`${field} "${value}" is priced as standard`)
    else factor = found === null || factor === null ? null : factor * found
  }
  return { factor, assumed }
}

/** All rates times the factor; unknown times anything is unknown. */
export function scaled(rates: Rates, factor: number | null): Rates {
  const by = (rate: number | null) => (rate === null || factor === null ? null : rate * factor)
  return {
    input: by(rates.input),
    cacheRead: by(rates.cacheRead),
    write5m: by(rates.write5m),
    write1h: by(rates.write1h),
    output: by(rates.output),
  }
}
