/** The figures of a bill: spent, saved by the cache, lost to breaks, spent on the engine's own acts. */

import type { TokensByClass } from './billed.ts'
import { addTokens, NO_TOKENS, type PricedCall } from './call-price.ts'
import { countOf } from './figure.ts'
import { addMoney, type Money, NO_MONEY } from './money.ts'

/** Dollars. */
export interface Amount {
  /** Null where a part of it is not known. */
  readonly total: number | null
  /** The sum of what is known. */
  readonly known: number
}

export interface MoneyTotals {
  readonly calls: number
  /** Calls of which something has no known price, or whose usage nobody told; `spent.missing` says what. */
  readonly unpricedCalls: number
  readonly tokens: TokensByClass
  readonly spent: Money
  /** What the same prompts would have cost without a cache, less what they did. */
  readonly savedByCache: Amount
  readonly breaks: number
  readonly tokensLostToBreaks: number
  /** A part of what was spent, and so are the two below. */
  readonly lostToBreaks: Amount
  /** On calls that wrote a summary. */
  readonly spentOnCompaction: Amount
  /** On processing again what clearings changed. */
  readonly spentOnClearing: Amount
}

const NOTHING: Amount = { total: 0, known: 0 }

export const NO_TOTALS: MoneyTotals = {
  calls: 0,
  unpricedCalls: 0,
  tokens: NO_TOKENS,
  spent: NO_MONEY,
  savedByCache: NOTHING,
  breaks: 0,
  tokensLostToBreaks: 0,
  lostToBreaks: NOTHING,
  spentOnCompaction: NOTHING,
  spentOnClearing: NOTHING,
}

/** The source of calls that write summaries, as `spentOnCompaction` counts them. */
export const COMPACTION = 'compact'

export function withCall(totals: MoneyTotals, { money, tokens, saved, source }: PricedCall): MoneyTotals {
  return {
    ...totals,
    calls: totals.calls + 1,
    unpricedCalls: totals.unpricedCalls + (money.total === null ? 1 : 0),
    tokens: addTokens(totals.tokens, tokens),
    spent: addMoney(totals.spent, money),
    savedByCache: plus(totals.savedByCache, saved),
    spentOnCompaction:
      source === COMPACTION
        ? plus(totals.spentOnCompaction, money.total, money.priced)
        : totals.spentOnCompaction,
  }
}

/** `loss` as a log holds it. */
export function withLoss(totals: MoneyTotals, loss: { readonly [field: string]: unknown }): MoneyTotals {
  const usd = typeof loss.usd === 'number' && Number.isFinite(loss.usd) ? loss.usd : null
  if (loss.kind === 'act') return { ...totals, spentOnClearing: plus(totals.spentOnClearing, usd) }
  if (loss.kind !== 'break') return totals
  return {
    ...totals,
    breaks: totals.breaks + 1,
    tokensLostToBreaks: totals.tokensLostToBreaks + countOf(loss.tokens),
    lostToBreaks: plus(totals.lostToBreaks, usd),
  }
}

function plus({ total, known }: Amount, more: number | null, moreKnown: number = more ?? 0): Amount {
  return { total: total === null || more === null ? null : total + more, known: known + moreKnown }
}
