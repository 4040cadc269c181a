/** Prices as data, and which of them are in force for a request. */

import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import {
  type BilledPart,
  billedParts,
  countOf,
  PRICE_CLASSES,
  type PriceClass,
  type TokensByClass,
} from '../tokens/usage.ts'

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
  const by = (rate: number | null) => (rate === null || factor === null ? null : rate * factor)
  return {
    input: by(rates.input),
    cacheRead: by(rates.cacheRead),
    write5m: by(rates.write5m),
    write1h: by(rates.write1h),
    output: by(rates.output),
  }
}

// What a call costs, from prices that are data. Unknown stays unknown: a class that was used and has no
// price makes the total null and is named in `missing`; it never counts as 0.

/** The prices of another model that answered a part of the call; null where they are not known. */
type PricesOf = (model: string) => Prices | null

const UNKNOWN: Rates = { input: null, cacheRead: null, write5m: null, write1h: null, output: null }
const UNFACTORED: Factor = { factor: 1, assumed: [] }
const SAME_PRICES = 'what another model answered is priced as this one'

/** The price of tokens that nobody has sent yet: one request, at standard speed and place. */
export function priceTokens(tokens: Partial<TokensByClass>, prices: Prices): Money {
  const all: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0, ...tokens }
  return priceAll(all, ratesFor(prices, promptTokens(all)))
}

/**
 * The price of one call. The bill is the sum over its iterations where the provider lists them, each at the
 * tier of its own prompt; `pricesOf` is asked for those that another model answered.
 */
export function priceOf(usage: Usage, prices: Prices, pricesOf?: PricesOf): Money {
  const parts = billedParts(usage).map((part) => pricePart({ part, usage, prices, pricesOf }))
  return [...parts, priceFees(usage, prices)].reduce(addMoney, NO_MONEY)
}

/**
 * What the same call would have cost without a cache: every token of a prompt as plain input, at the tier and
 * the factors that the call itself had.
 */
export function priceUncached(usage: Usage, prices: Prices, pricesOf?: PricesOf): Money {
  const parts = billedParts(usage).map((part) => pricePart({ part: uncached(part), usage, prices, pricesOf }))
  return [...parts, priceFees(usage, prices)].reduce(addMoney, NO_MONEY)
}

/** How long a write was to live no longer matters, so nothing is assumed of it. */
function uncached(part: BilledPart): BilledPart {
  const { output } = part.tokens
  const tokens = { input: promptTokens(part.tokens), cacheRead: 0, write5m: 0, write1h: 0, output }
  return { ...part, tokens, assumed: [] }
}

interface Pricing {
  readonly part: BilledPart
  readonly usage: Usage
  readonly prices: Prices
  readonly pricesOf: PricesOf | undefined
}

function pricePart({ part, usage, prices, pricesOf }: Pricing): Money {
  const isOwn = part.model === null || pricesOf === undefined
  const own = isOwn ? prices : pricesOf(part.model)
  const { factor, assumed } = own === null ? UNFACTORED : factorOf(usage, own)
  const rates = own === null ? UNKNOWN : ratesFor(own, promptTokens(part.tokens))
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
  const one = (kind: PriceClass) => priceOne(tokens[kind], rates[kind])
  const byClass = {
    input: one('input'),
    cacheRead: one('cacheRead'),
    write5m: one('write5m'),
    write1h: one('write1h'),
    output: one('output'),
  }
  const missing = PRICE_CLASSES.filter((kind) => byClass[kind] === null)
  const priced = PRICE_CLASSES.reduce((sum, kind) => sum + (byClass[kind] ?? 0), 0)
  return { total: missing.length === 0 ? priced : null, priced, byClass, fees: 0, missing, assumed: [] }
}

/** What was not used costs nothing, known price or not. */
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

// Dollars spent, by class of token, with what could not be priced said beside it.

export interface Money {
  /** Null where something that was used has no known price. */
  readonly total: number | null
  /** The sum of what could be priced: the total, or the least it can be. */
  readonly priced: number
  readonly byClass: { readonly [Class in PriceClass]: number | null }
  /** Charged by the request and not by the token (a provider's own web search). */
  readonly fees: number | null
  /** What was used and has no known price. */
  readonly missing: readonly string[]
  /** What had to be taken for granted to arrive at these figures, in words. */
  readonly assumed: readonly string[]
}

export const NO_MONEY: Money = {
  total: 0,
  priced: 0,
  byClass: { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 },
  fees: 0,
  missing: [],
  assumed: [],
}

/** One unknown makes the sum unknown; `priced` goes on counting what is known. */
export function addMoney(a: Money, b: Money): Money {
  const both = (kind: PriceClass) => plus(a.byClass[kind], b.byClass[kind])
  return {
    total: plus(a.total, b.total),
    priced: a.priced + b.priced,
    byClass: {
      input: both('input'),
      cacheRead: both('cacheRead'),
      write5m: both('write5m'),
      write1h: both('write1h'),
      output: both('output'),
    },
    fees: plus(a.fees, b.fees),
    missing: union(a.missing, b.missing),
    assumed: union(a.assumed, b.assumed),
  }
}

function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b
}

function union(a: readonly string[], b: readonly string[]): readonly string[] {
  return [...new Set([...a, ...b])]
}
