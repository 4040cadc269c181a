/** Laws of every session that is cleared, whichever way. Each returns its violations. */

import type { ObservedCall } from '../support/simulated-session.ts'
import { type PricedClearing, pricedClearings, rewrittenCalls } from './figures.ts'

export function refusals(calls: readonly ObservedCall[]): readonly unknown[] {
  return calls.flatMap(({ record }) => (record.status === 200 ? [] : [record.error]))
}

const LIFE_MS = 300_000

/** After a pause that outlives the cache a rewrite is free, and does not count as in a row. */
export function rewritesInARow(calls: readonly ObservedCall[]): readonly number[] {
  const rewritten = new Set(rewrittenCalls(calls))
  const gap = (at: number): number => (calls[at]?.at ?? 0) - (calls[at - 1]?.at ?? 0)
  return [...rewritten].filter((at) => rewritten.has(at - 1) && gap(at) < LIFE_MS)
}

/**
 * What was kept and what can still be read is told by usage; what is freed is estimated, with what the session has
 * taught. So the error of the price is that of the tokens freed, and of the place of a marker that was never read.
 */
const FREED_WITHIN = 0.06
const MARKER_WITHIN = 0.03

export function unforeseen(calls: readonly ObservedCall[]): readonly Omit<PricedClearing, 'cleared'>[] {
  const priced = pricedClearings(calls).map(({ cleared: _, ...amounts }) => amounts)
  return priced.filter(({ at, context, foreseen, billed }) => {
    // In the first calls estimates are not calibrated yet.
    const freed = (at < 50 ? 3 : 1) * FREED_WITHIN * billed.freed
    const rewritten = freed + MARKER_WITHIN * context
    const perToken = billed.rewritten === 0 ? 0 : billed.dollars / billed.rewritten
    return !(
      Math.abs(foreseen.freed - billed.freed) <= freed &&
      Math.abs(foreseen.rewritten - billed.rewritten) <= rewritten &&
      Math.abs(foreseen.dollars - billed.dollars) <= rewritten * perToken + 1e-9
    )
  })
}

/** The engine's clearings whose reported cost differs from what the simulator billed. */
export function unlikePaid(calls: readonly ObservedCall[]): readonly unknown[] {
  return pricedClearings(calls).flatMap(({ at, cleared, foreseen, billed }) => {
    const { paid = null } = calls[at] ?? {}
    const told = { tokens: paid?.tokensRewritten ?? 0, dollars: paid?.moneySpent ?? 0 }
    // The provider reports what it freed. What the engine freed, it knows only as its forecast.
    const freed = cleared.way === 'native' ? billed.freed : foreseen.freed
    const tokens = billed.rewritten + (billed.rewritten > 0 ? billed.freed - freed : 0)
    const perToken = billed.rewritten === 0 ? 0 : billed.dollars / billed.rewritten
    const isSame = told.tokens === tokens && Math.abs(told.dollars - tokens * perToken) < 1e-9
    return isSame ? [] : [{ at, told, tokens }]
  })
}
