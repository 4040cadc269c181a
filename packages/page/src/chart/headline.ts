/** The text above the chart, on the page and on the picture card: one sentence about the money, and the figures. */
import {
  formatCost,
  formatCount,
  formatDollars,
  formatPercent,
  formatTokenLimit,
  formatTokens,
  formatWholePercent,
} from '@tidemark/terminal/render/format-numbers'
import type { PageSessionReport } from 'tidemark/report'

/** From this share of the cost on, the sentence is about cache breaks. */
const NOTABLE_SHARE = 0.03

/** Returns what the calls cost: `$5.20 for 41 calls`; a lower bound if some prices are unknown. */
export function formatCostOfCalls({ costUsd, money, apiCalls }: PageSessionReport): string {
  const calls = formatCount(apiCalls, 'call')
  if (costUsd !== null) return `${formatDollars(costUsd)} for ${calls}`
  return money.pricedUsd === 0
    ? `${calls} of unknown cost`
    : `At least ${formatDollars(money.pricedUsd)} for ${calls}`
}

/** Lists the models with calls whose price is not known. */
export function listUnpricedModels({ spending }: PageSessionReport): readonly string[] {
  return [...new Set(spending.filter(({ costUsd }) => costUsd === null).map(({ model }) => model))]
}

export function formatHeadline(report: PageSessionReport): string {
  const { money, cacheBreaks, compactions } = report
  const paid = formatCostOfCalls(report)
  const { shareLostToBreaks: share, lostToBreaks, savedByCache } = money
  if (share !== null && lostToBreaks !== null && share >= NOTABLE_SHARE)
    return `${paid}: ${formatDollars(lostToBreaks)} of it, ${formatWholePercent(share)}, went to ${formatCount(cacheBreaks.length, 'cache break')}.`
  const rewrites = compactions.length === 0 ? '' : ` and ${formatCount(compactions.length, 'compaction')}`
  if (savedByCache !== null && savedByCache > 0)
    return `${paid}${rewrites}: the prompt cache saved ${formatDollars(savedByCache)}.`
  return `${paid}${rewrites}.`
}

interface Figure {
  readonly name: string
  readonly text: string
  readonly tone?: 'good' | 'bad'
}

export function listKeyFigures(report: PageSessionReport): readonly Figure[] {
  const { costUsd, money, hitRate, peakContextTokens, context, apiCalls, compactions, clearings } = report
  const { lostToBreaks: lost, savedByCache: saved } = money
  const window = context.window === null ? '' : ` of ${formatTokenLimit(context.window)}`
  return [
    { name: 'Cost', text: formatCost(costUsd, money.pricedUsd) },
    {
      name: 'Lost to breaks',
      text: lost === null ? '?' : formatDollars(lost),
      ...((lost ?? 0) > 0 ? { tone: 'bad' as const } : {}),
    },
    {
      name: 'Saved by cache',
      text: saved === null ? '?' : formatDollars(saved),
      ...((saved ?? 0) > 0 ? { tone: 'good' as const } : {}),
    },
    { name: 'From the cache', text: hitRate === null ? '?' : formatPercent(hitRate) },
    { name: 'Peak context', text: `${formatTokens(peakContextTokens)}${window}` },
    { name: 'Calls', text: String(apiCalls) },
    { name: 'Compactions', text: String(compactions.length) },
    { name: 'Clearings', text: String(clearings.length) },
  ]
}
