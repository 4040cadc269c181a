/**
 * Prices as data, and the cost of a call. Unknown stays unknown: a class of token that was used and has no price makes
 * the total null and is named in `missing`; it never counts as 0.
 */
import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import {
  type BilledPart,
  type ByPriceClass,
  billedParts,
  byPriceClass,
  countOf,
  PRICE_CLASSES,
  type TokensByClass,
} from '../tokens/usage.ts'

/**
 * Dollars per million tokens, null if unknown. `write5m` is a cache write with the default lifetime, `write1h` one with
 * the longer lifetime, whatever the provider's lifetimes are.
 */
export type Rates = ByPriceClass<number | null>

/** The rates of a whole request whose prompt, cached tokens included, is longer than `above` tokens. */
export interface PriceTier extends Rates {
  readonly above: number
}

export interface Prices extends Rates {
  readonly tiers?: readonly PriceTier[]
  /**
   * Factors on every rate, by a field of the usage and its value: `{ speed: { standard: 1, fast: 2 } }`. A missing
   * field changes nothing; a value that is not listed is priced as standard, and `assumed` says so.
   */
  readonly factors?: Readonly<Record<string, Readonly<Record<string, number | null>>>>
  /** Dollars per request counted under `server_tool_use`, by its name there. */
  readonly fees?: Readonly<Record<string, number | null>>
}

/** The rates for a prompt of this many tokens, cached ones included. */
export function ratesFor(prices: Prices, promptTokens: number): Rates {
  const reached = (prices.tiers ?? []).filter((tier) => promptTokens > tier.above)
  const highest = reached.toSorted((a, b) => b.above - a.above)[0]
  return scaled(highest ?? prices, 1)
}

/** The combined factor for a usage; null if one of its fields has no known factor. */
interface Factor {
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
  return byPriceClass((name) => {
    const rate = rates[name]
    return rate === null || factor === null ? null : rate * factor
  })
}

/** The prices of another model that ran a part of the call; null if unknown. */
type PricesOf = (model: string) => Prices | null

export const UNKNOWN_RATES: Rates = byPriceClass(() => null)
const UNFACTORED: Factor = { factor: 1, assumed: [] }
const SAME_PRICES = 'what another model answered is priced as this one'

/** The price of tokens that have not been sent: one request, with no factors applied. */
export function priceTokens(tokens: Partial<TokensByClass>, prices: Prices): Money {
  const all: TokensByClass = { ...byPriceClass(() => 0), ...tokens }
  return priceAll(all, ratesFor(prices, promptTokens(all)))
}

/**
 * The price of one call: the sum over its iterations if the provider lists them, each at the tier of its own prompt.
 * `pricesOf` gives the prices for iterations that another model ran.
 */
export function priceOf(usage: Usage, prices: Prices, pricesOf?: PricesOf): Money {
  const parts = billedParts(usage).map((part) => pricePart(part, usage, prices, pricesOf))
  return [...parts, priceFees(usage, prices)].reduce(addMoney, NO_MONEY)
}

/** What the same call would have cost without a cache: all prompt tokens as input, at the same tier and factors. */
export function priceUncached(usage: Usage, prices: Prices, pricesOf?: PricesOf): Money {
  const parts = billedParts(usage).map((part) => pricePart(uncached(part), usage, prices, pricesOf))
  return [...parts, priceFees(usage, prices)].reduce(addMoney, NO_MONEY)
}

/** Cache lifetimes no longer matter, so nothing is assumed about them. */
function uncached(part: BilledPart): BilledPart {
  const { output } = part.tokens
  const tokens = { input: promptTokens(part.tokens), cacheRead: 0, write5m: 0, write1h: 0, output }
  return { ...part, tokens, assumed: [] }
}

function pricePart(part: BilledPart, usage: Usage, prices: Prices, pricesOf?: PricesOf): Money {
  const isOwn = part.model === null || pricesOf === undefined
  const own = isOwn ? prices : pricesOf(part.model)
  const { factor, assumed } = own === null ? UNFACTORED : factorOf(usage, own)
  const rates = own === null ? UNKNOWN_RATES : ratesFor(own, promptTokens(part.tokens))
  const borrowed = isOwn && part.isForeign ? [SAME_PRICES] : []
  return {
    ...priceAll(part.tokens, scaled(rates, factor)),
    assumed: [...part.assumed, ...borrowed, ...assumed],
  }
}

function promptTokens({ input, cacheRead, write5m, write1h }: TokensByClass): number {
  return input + cacheRead + write5m + write1h
}

function priceAll(tokens: TokensByClass, rates: Rates): Money {
  const byClass = byPriceClass((kind) => priceOne(tokens[kind], rates[kind]))
  const missing = PRICE_CLASSES.filter((kind) => byClass[kind] === null)
  const priced = PRICE_CLASSES.reduce((sum, kind) => sum + (byClass[kind] ?? 0), 0)
  return { total: missing.length === 0 ? priced : null, priced, byClass, fees: 0, missing, assumed: [] }
}

/** Unused tokens cost nothing, even without a known price. */
function priceOne(tokens: number, rate: number | null): number | null {
  if (tokens === 0) return 0
  return rate === null ? null : (tokens * rate) / 1_000_000
}

function priceFees(usage: Usage, prices: Prices): Money {
  const counts = isObject(usage.server_tool_use) ? usage.server_tool_use : {}
  return Object.entries(prices.fees ?? {}).reduce<Money>((sum, [name, each]) => {
    const count = countOf(counts[name])
    return count > 0 ? addMoney(sum, fee(name, count, each)) : sum
  }, NO_MONEY)
}

function fee(name: string, count: number, each: number | null): Money {
  if (each === null) return { ...NO_MONEY, total: null, fees: null, missing: [name] }
  return { ...NO_MONEY, total: count * each, priced: count * each, fees: count * each }
}

// Amounts of money, with what could not be priced.

export interface Money {
  /** Null if something that was used has no known price. */
  readonly total: number | null
  /** The sum of what could be priced: the total, or its lower bound. */
  readonly priced: number
  readonly byClass: ByPriceClass<number | null>
  /** Charged per request instead of per token (server-side web search). */
  readonly fees: number | null
  /** What was used and has no known price. */
  readonly missing: readonly string[]
  /** Assumptions behind these figures, in words. */
  readonly assumed: readonly string[]
}

export const NO_MONEY: Money = {
  total: 0,
  priced: 0,
  byClass: byPriceClass(() => 0),
  fees: 0,
  missing: [],
  assumed: [],
}

/** One unknown makes the total unknown; `priced` still adds what is known. */
export function addMoney(a: Money, b: Money): Money {
  return {
    total: plus(a.total, b.total),
    priced: a.priced + b.priced,
    byClass: byPriceClass((kind) => plus(a.byClass[kind], b.byClass[kind])),
    fees: plus(a.fees, b.fees),
    missing: [...new Set([...a.missing, ...b.missing])],
    assumed: [...new Set([...a.assumed, ...b.assumed])],
  }
}

function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b
}
