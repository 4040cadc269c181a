/**
 * Defines prices as data and computes the cost of a model call. Unknown prices stay unknown: tokens without a known
 * price make the total null and are named in `missing`; they never count as 0.
 */
import type { TokenUsage } from '../log/reply-report.ts'
import {
  type BilledModelRun,
  type ByPriceClass,
  listBilledModelRuns,
  PRICE_CLASSES,
  type PriceClass,
  type TokensByPriceClass,
  toTokenCount,
} from '../tokens/usage.ts'

/**
 * Dollars per million tokens, by price class; null if unknown. `writeShort` is the rate of a cache write with the
 * provider's default lifetime, `writeLong` the rate with the longer lifetime.
 */
export type TokenRates = ByPriceClass<number | null>

/**
 * The rates for an API request with a long prompt. They apply to the whole request if its prompt, including cached
 * tokens, has more than `above` tokens.
 */
export interface PriceTier extends TokenRates {
  readonly above: number
}

export interface ModelPrices extends TokenRates {
  readonly tiers?: readonly PriceTier[]
  /**
   * Factors that multiply every rate, by the name and value of one of the `terms` of usage, as in `{ speed: { fast: 2 } }`.
   * Without that term, no factor applies. An unlisted value is priced as standard, and the cost lists that assumption.
   */
  readonly factors?: Readonly<Record<string, Readonly<Record<string, number | null>>>>
  /** Dollars per use of a tool that the provider runs, by its name in `toolUses` of usage. */
  readonly fees?: Readonly<Record<string, number | null>>
}

/** Returns the rates for an API request whose prompt has this many tokens, including cached tokens. */
export function findTierRates(prices: ModelPrices, promptTokens: number): TokenRates {
  const reached = (prices.tiers ?? []).filter((tier) => promptTokens > tier.above)
  const highest = reached.toSorted((a, b) => b.above - a.above)[0]
  return scaleRates(highest ?? prices, 1)
}

/** The product of all price factors that apply to a usage; null if one of the factors is unknown. */
interface PriceFactor {
  readonly factor: number | null
  readonly assumed: readonly string[]
}

/** Returns the product of the factors that apply to a usage. */
export function findPriceFactor(usage: TokenUsage, prices: ModelPrices): PriceFactor {
  let factor: number | null = 1
  const assumed: string[] = []
  for (const [field, byValue] of Object.entries(prices.factors ?? {})) {
    const value = usage.terms?.[field]
    if (value === undefined) continue
    const found = Object.hasOwn(byValue, value) ? byValue[value] : undefined
    if (found === undefined) assumed.push(`${field} "${value}" is priced as standard`)
    else factor = found === null || factor === null ? null : factor * found
  }
  return { factor, assumed }
}

/** Multiplies all rates by the factor. An unknown rate or an unknown factor gives an unknown rate. */
export function scaleRates(rates: TokenRates, factor: number | null): TokenRates {
  return mapPriceClasses((name) => {
    const rate = rates[name]
    return rate === null || factor === null ? null : rate * factor
  })
}

/** Returns the prices of another model that ran a part of the model call (for example a fallback model); null if unknown. */
type PriceLookup = (model: string) => ModelPrices | null

export const UNKNOWN_RATES: TokenRates = mapPriceClasses(() => null)
const NO_FACTOR: PriceFactor = { factor: 1, assumed: [] }
const SAME_PRICES_ASSUMED = 'what another model answered is priced as this one'

/**
 * Returns the price of one model call. If the provider lists iterations of the call, their prices are added; each is
 * priced by the length of its own prompt. `pricesOf` returns the prices of other models that ran an iteration.
 */
export function priceUsage(usage: TokenUsage, prices: ModelPrices, pricesOf?: PriceLookup): Cost {
  const parts = listBilledModelRuns(usage).map((part) => pricePart(part, usage, prices, pricesOf))
  return [...parts, priceFees(usage, prices)].reduce(addCosts, ZERO_COST)
}

/**
 * Returns what the same model call would have cost without a prompt cache: every prompt token is priced as plain input.
 * The price tier and the factors stay the same.
 */
export function priceUsageUncached(usage: TokenUsage, prices: ModelPrices, pricesOf?: PriceLookup): Cost {
  const parts = listBilledModelRuns(usage).map((part) =>
    pricePart(withoutCache(part), usage, prices, pricesOf),
  )
  return [...parts, priceFees(usage, prices)].reduce(addCosts, ZERO_COST)
}

/**
 * Counts cached tokens as plain input. Assumptions about the cache lifetime are dropped, because they no longer affect
 * the price.
 */
function withoutCache(part: BilledModelRun): BilledModelRun {
  const { output } = part.tokens
  const tokens = { input: countPromptTokens(part.tokens), cacheRead: 0, writeShort: 0, writeLong: 0, output }
  return { ...part, tokens, assumed: [] }
}

function pricePart(
  part: BilledModelRun,
  usage: TokenUsage,
  prices: ModelPrices,
  pricesOf?: PriceLookup,
): Cost {
  const isOwn = part.model === null || pricesOf === undefined
  const own = isOwn ? prices : pricesOf(part.model)
  const { factor, assumed } = own === null ? NO_FACTOR : findPriceFactor(usage, own)
  const rates = own === null ? UNKNOWN_RATES : findTierRates(own, countPromptTokens(part.tokens))
  const borrowed = isOwn && part.isForeign ? [SAME_PRICES_ASSUMED] : []
  return {
    ...priceTokenClasses(part.tokens, scaleRates(rates, factor)),
    assumed: [...part.assumed, ...borrowed, ...assumed],
  }
}

function countPromptTokens({ input, cacheRead, writeShort, writeLong }: TokensByPriceClass): number {
  return input + cacheRead + writeShort + writeLong
}

function priceTokenClasses(tokens: TokensByPriceClass, rates: TokenRates): Cost {
  const byClass = mapPriceClasses((kind) => priceTokenClass(tokens[kind], rates[kind]))
  const missing = PRICE_CLASSES.filter((kind) => byClass[kind] === null)
  const priced = PRICE_CLASSES.reduce((sum, kind) => sum + (byClass[kind] ?? 0), 0)
  return { total: missing.length === 0 ? priced : null, priced, byClass, fees: 0, missing, assumed: [] }
}

/** Returns the price in dollars of tokens of one price class. Zero tokens cost 0, even if the rate is unknown. */
function priceTokenClass(tokens: number, rate: number | null): number | null {
  if (tokens === 0) return 0
  return rate === null ? null : (tokens * rate) / 1_000_000
}

function priceFees(usage: TokenUsage, prices: ModelPrices): Cost {
  const counts = usage.toolUses ?? {}
  return Object.entries(prices.fees ?? {}).reduce<Cost>((sum, [name, each]) => {
    const count = toTokenCount(counts[name])
    return count > 0 ? addCosts(sum, priceFee(name, count, each)) : sum
  }, ZERO_COST)
}

function priceFee(name: string, count: number, each: number | null): Cost {
  if (each === null) return { ...ZERO_COST, total: null, fees: null, missing: [name] }
  return { ...ZERO_COST, total: count * each, priced: count * each, fees: count * each }
}

// The declarations below add costs in dollars, and record what could not be priced.

/** Dollars of one or several calls, with what is unknown in them. */
export interface Cost {
  /** Total dollars; null if something that was used has no known price. */
  readonly total: number | null
  /** Dollars for everything with a known price. If `total` is null, this is a lower bound of the cost. */
  readonly priced: number
  readonly byClass: ByPriceClass<number | null>
  /** Dollars charged per request instead of per token, for example for web search by a server tool; null if unknown. */
  readonly fees: number | null
  /** Names of the token classes and fees that were used and have no known price. */
  readonly missing: readonly string[]
  /** Assumptions made when pricing, as text for the user. */
  readonly assumed: readonly string[]
}

export const ZERO_COST: Cost = {
  total: 0,
  priced: 0,
  byClass: mapPriceClasses(() => 0),
  fees: 0,
  missing: [],
  assumed: [],
}

/** Adds two costs. If the total of either is unknown, the total of the sum is unknown; `priced` adds the known parts. */
export function addCosts(a: Cost, b: Cost): Cost {
  if (b === ZERO_COST) return a
  return {
    total: addNullable(a.total, b.total),
    priced: a.priced + b.priced,
    byClass: mapPriceClasses((kind) => addNullable(a.byClass[kind], b.byClass[kind])),
    fees: addNullable(a.fees, b.fees),
    missing: joinTexts(a.missing, b.missing),
    assumed: joinTexts(a.assumed, b.assumed),
  }
}

/** Returns the texts of both lists, each once. */
function joinTexts(some: readonly string[], more: readonly string[]): readonly string[] {
  return more.length === 0 ? some : [...new Set([...some, ...more])]
}

function addNullable(a: number | null, b: number | null): number | null {
  return a === null || b === null ? null : a + b
}

/** Returns a record with a value for each price class. */
export function mapPriceClasses<T>(value: (name: PriceClass) => T): ByPriceClass<T> {
  return {
    input: value('input'),
    cacheRead: value('cacheRead'),
    writeShort: value('writeShort'),
    writeLong: value('writeLong'),
    output: value('output'),
  }
}

// Functions that format token counts, dollars and durations as text.

/** Formats a number with thousands separators, such as 12,345. */
export function formatCount(count: number): string {
  return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, ',')
}

/** Formats an amount with two decimals ($0.46), or with four below 10 cents ($0.0046). */
export function formatDollars(dollars: number): string {
  return `$${dollars.toFixed(dollars < 0.1 ? 4 : 2)}`
}

/** Formats a time in at most two units, such as 45 s, 5 min or 2 h 10 min. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000)
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  const parts =
    minutes < 120
      ? ([
          [minutes, 'min'],
          [seconds % 60, 's'],
        ] as const)
      : ([
          [Math.floor(minutes / 60), 'h'],
          [minutes % 60, 'min'],
        ] as const)
  return parts.flatMap(([count, unit]) => (count === 0 ? [] : [`${count} ${unit}`])).join(' ')
}
