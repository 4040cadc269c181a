/**
 * What a call costs, from prices that are data. Unknown stays unknown: a class that was used and has no
 * price makes the total null and is named in `missing`; it never counts as 0.
 */
import { isObject } from '../conversation/json.ts'
import type { Usage } from '../conversation/record.ts'
import { type BilledPart, billedParts, PRICE_CLASSES, type PriceClass, type TokensByClass } from './billed.ts'
import { countOf } from './figure.ts'
import { addMoney, type Money, NO_MONEY } from './money.ts'
import { type Factor, factorOf, type Prices, type Rates, ratesFor, scaled } from './prices.ts'

/** The prices of another model that answered a part of the call; null where they are not known. */
export type PricesOf = (model: string) => Prices | null

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
