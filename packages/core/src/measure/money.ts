/** Dollars spent, by class of token, with what could not be priced said beside it. */
import type { PriceClass } from './billed.ts'

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
