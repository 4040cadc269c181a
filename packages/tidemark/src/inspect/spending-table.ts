/** The calls of a session by day and model: what totals over many sessions are made of. */
import { addMoney, type Money, NO_MONEY } from '@tidemark/core'
import type { CacheBreak, ClearingCost } from './breaks/cache-report.ts'
import type { Spending, UsageTotals } from './report.ts'
import { dollars, type PricedCall, plus } from './spending.ts'
import { addUsage, NO_USAGE, usageOf } from './usage-totals.ts'

/** The day a moment falls on, as YYYY-MM-DD; null where it is none. */
export type DayOf = (at: string) => string | null

/** `timeZone`: a name as in `Europe/Berlin`; without one that is known, the machine's own. */
export function daysIn(timeZone?: string): DayOf {
  const format = dayFormat(timeZone) ?? dayFormat()
  return (at) => {
    const moment = Date.parse(at)
    return Number.isNaN(moment) ? null : (format?.format(moment) ?? null)
  }
}

/** Null for a zone that nobody knows: a machine's `TZ` may hold what only a C library understands. */
function dayFormat(timeZone?: string): Intl.DateTimeFormat | null {
  const zone = timeZone === undefined || timeZone === '' ? {} : { timeZone }
  try {
    return new Intl.DateTimeFormat('en-CA', { ...zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  } catch {
    return null
  }
}

interface Row {
  readonly day: string | null
  readonly model: string
  apiCalls: number
  usage: UsageTotals
  money: Money
  cacheBreaks: number
  lost: number | null
  cleared: number | null
}

/** What was spent, and what of it was lost to breaks and spent on clearings. */
export interface Spent {
  readonly calls: readonly PricedCall[]
  readonly cacheBreaks: readonly CacheBreak[]
  readonly clearingCosts: readonly ClearingCost[]
}

export function spendingTable(spent: Spent, dayOf: DayOf): readonly Spending[] {
  const { calls, cacheBreaks, clearingCosts } = spent
  const rows = new Map<string, Row>()
  const rowOf = ({ at, model }: Pick<CacheBreak, 'at' | 'model'>): Row => {
    const day = dayOf(at)
    const key = `${day}\n${model}`
    const row = rows.get(key) ?? newRow(day, model)
    rows.set(key, row)
    return row
  }
  for (const { call, money } of calls) {
    const row = rowOf(call)
    row.apiCalls += 1
    row.usage = addUsage(row.usage, usageOf(call.usage))
    row.money = addMoney(row.money, money)
  }
  for (const found of cacheBreaks) {
    const row = rowOf(found)
    row.cacheBreaks += 1
    row.lost = plus(row.lost, found.costUsd)
  }
  for (const found of clearingCosts) {
    const row = rowOf(found)
    row.cleared = plus(row.cleared, found.costUsd)
  }
  return [...rows.values()].map(({ money, lost, cleared, ...row }) => ({
    ...row,
    costUsd: dollars(money.total),
    lostToBreaks: dollars(lost),
    spentOnClearings: dollars(cleared),
  }))
}

function newRow(day: string | null, model: string): Row {
  return { day, model, apiCalls: 0, usage: NO_USAGE, money: NO_MONEY, cacheBreaks: 0, lost: 0, cleared: 0 }
}
