/** The money of a session in four figures: what was spent, what the cache saved, what breaks cost, and on what. */
import type { MoneyReport } from '../report.ts'
import { dollars, moneyReport, type PricedCall, sumMoney } from '../spending.ts'
import type { CacheBreak } from './cache-report.ts'

export interface CacheMoney {
  /** Dollars; null where something that was used has no known price, and so for the others. */
  readonly spent: number | null
  /** What the same calls would have cost without a cache, less what they did. */
  readonly savedByCache: number | null
  readonly lostToBreaks: number | null
  /** Share of what was spent, to four places. */
  readonly shareLostToBreaks: number | null
  readonly byClass: MoneyReport['byClass']
}

/** `calls` and `breaks` of the same log. */
export function cacheMoneyOf(calls: readonly PricedCall[], breaks: readonly CacheBreak[]): CacheMoney {
  const { byClass, savedByCacheUsd } = moneyReport(calls)
  const spent = dollars(sumMoney(calls).total)
  const lost = breaks.reduce<number | null>(
    (sum, { costUsd }) => (sum === null || costUsd === null ? null : sum + costUsd),
    0,
  )
  const share = spent === null || lost === null || spent === 0 ? null : Math.round((lost / spent) * 1e4) / 1e4
  return {
    spent,
    savedByCache: savedByCacheUsd,
    lostToBreaks: dollars(lost),
    shareLostToBreaks: share,
    byClass,
  }
}
