/** What holds of every conversation that is cleared, whichever way. Each gives the offences: none, if it holds. */

import type { ObservedCall } from '../support/simulated-session.ts'
import { type PricedClearing, pricedClearings, rewrittenCalls } from './figures.ts'

export function refusals(calls: readonly ObservedCall[]): readonly unknown[] {
  return calls.flatMap(({ record }) => (record.status === 200 ? [] : [record.error]))
}

const LIFE_MS = 300_000

/** A pause that outlives the cache makes the next rewrite free: those two are not in a row. */
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
    // Until so many calls have taught them, estimates are those of the text alone.
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

/** Clearings of our own whose price, as the engine told it afterwards, is not what the simulator billed. */
export function unlikePaid(calls: readonly ObservedCall[]): readonly unknown[] {
  return pricedClearings(calls).flatMap(({ at, cleared, foreseen, billed }) => {
    const { paid = null } = calls[at] ?? {}
    const told = { tokens: paid?.tokensRewritten ?? 0, dollars: paid?.moneySpent ?? 0 }
    // What it freed is known to the engine as it was foreseen.
    const tokens =
      cleared.way === 'native'
        ? 0
        : billed.rewritten + (billed.rewritten > 0 ? billed.freed - foreseen.freed : 0)
    const perToken = billed.rewritten === 0 ? 0 : billed.dollars / billed.rewritten
    const isSame = told.tokens === tokens && Math.abs(told.dollars - tokens * perToken) < 1e-9
    return isSame ? [] : [{ at, told, tokens }]
  })
}
