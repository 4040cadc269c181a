/** When a read is too small, by how much, and what that cost. */
import type { Usage } from '../conversation/record.ts'
import type { TokensByClass } from '../measure/billed.ts'
import { factorOf, type Prices, type Rates, ratesFor, scaled } from '../measure/prices.ts'
import type { BreaksPolicy } from '../policy/groups/cache-policy.ts'
import { paidAnew } from './figures.ts'

export interface Reading {
  /** What should have been read: what the last call left behind, as far as this one repeats it. */
  readonly expected: number
  /** What the call was billed for. */
  readonly tokens: TokensByClass
}

/**
 * What had to be processed again. More cannot have been than was paid for: what is missing from the read and
 * was not paid for either is no longer in the request.
 */
export function tokensLost({ expected, tokens }: Reading): number {
  return Math.max(0, Math.min(expected - tokens.cacheRead, paidAnew(tokens)))
}

export type BreakLimits = Pick<BreaksPolicy, 'percent' | 'tokens'>

/** More than so many per cent and more than so many tokens below what was expected. */
export function isBreak(reading: Reading, { percent, tokens }: BreakLimits): boolean {
  const lost = tokensLost(reading)
  return lost > tokens && lost * 100 > reading.expected * percent
}

/** The rates in force for a call of that usage; null where the model has no prices. */
export function ratesOf(usage: Usage, tokens: TokensByClass, prices: Prices | null): Rates | null {
  if (prices === null) return null
  return scaled(ratesFor(prices, paidAnew(tokens) + tokens.cacheRead), factorOf(usage, prices).factor)
}

/** Dollars paid above the price of a read; null where a price that counts is not known. */
export function moneyLost(lost: number, tokens: TokensByClass, rates: Rates | null): number | null {
  if (lost === 0) return 0
  const paid = rates === null ? null : paidFor(lost, tokens, rates)
  if (rates === null || paid === null || rates.cacheRead === null) return null
  return (paid - lost * rates.cacheRead) / 1_000_000
}

/** What is written comes before what is not: a marker stands at its end. Within what is written the lifetimes share. */
function paidFor(lost: number, { write5m, write1h }: TokensByClass, rates: Rates): number | null {
  const written = Math.min(lost, write5m + write1h)
  const share = written === 0 ? 0 : written / (write5m + write1h)
  const parts = [
    { tokens: write5m * share, rate: rates.write5m },
    { tokens: write1h * share, rate: rates.write1h },
    { tokens: lost - written, rate: rates.input },
  ]
  return parts.reduce<number | null>((sum, { tokens, rate }) => {
    if (tokens === 0 || sum === null) return sum
    return rate === null ? null : sum + tokens * rate
  }, 0)
}
