/** What breaks and clearings cost a session, and what share of its bill the breaks were. */
import type { MoneyLost } from '../report.ts'
import { dollars, plus } from '../spending.ts'
import type { CacheReport } from './cache-report.ts'

/** `spent`: on all calls of the log; null where not known. */
export function moneyLost({ cacheBreaks, clearingCosts }: CacheReport, spent: number | null): MoneyLost {
  const lost = costOf(cacheBreaks)
  const share = spent === null || lost === null || spent === 0 ? null : Math.round((lost / spent) * 1e4) / 1e4
  return {
    lostToBreaks: lost,
    shareLostToBreaks: share,
    spentOnClearings: costOf(clearingCosts),
  }
}

export function costOf(costs: readonly { readonly costUsd: number | null }[]): number | null {
  return dollars(costs.reduce<number | null>((sum, { costUsd }) => plus(sum, costUsd), 0))
}
