/**
 * Does a clearing pay? E tokens freed save their reading in every later call; the L tokens behind them are
 * written again once. With read price r and write price w it has paid after (w/r − 1) · L / E calls.
 */
import type { Rates } from '../measure/prices.ts'

export interface Prices {
  /** Dollars per million tokens; null where not known. */
  readonly rates: Rates | null
  /** Which write is paid for. */
  readonly write: 'write5m' | 'write1h'
}

/** What most providers ask for a 5-minute write, in reads: taken where prices are not known, and said. */
export const USUAL_WRITE_IN_READS = 12.5

export interface Weighed {
  /** Calls after which it has paid for itself; null: never. */
  readonly breakEvenCalls: number | null
  /** Dollars that writing again costs above reading; null where prices are not known. */
  readonly cost: number | null
  /** No prices are known, and the usual proportion was taken. */
  readonly isAssumed: boolean
}

/** What a warm rewrite costs. A cold one costs nothing that would not be paid anyway. */
export function weighRewrite(freed: number, rewritten: number, prices: Prices): Weighed {
  const read = prices.rates?.cacheRead ?? null
  const write = prices.rates?.[prices.write] ?? null
  const isAssumed = read === null || write === null
  const inReads = isAssumed ? USUAL_WRITE_IN_READS : write / read
  const cost = isAssumed ? null : (Math.max(0, write - read) * rewritten) / 1_000_000
  return { breakEvenCalls: breakEven(freed, rewritten, inReads), cost, isAssumed }
}

function breakEven(freed: number, rewritten: number, inReads: number): number | null {
  if (rewritten <= 0 || inReads <= 1) return 0
  if (freed <= 0 || !Number.isFinite(inReads)) return null
  return ((inReads - 1) * rewritten) / freed
}

export function pays({ breakEvenCalls }: Weighed, expectedCalls: number): boolean {
  return breakEvenCalls !== null && expectedCalls > breakEvenCalls
}
