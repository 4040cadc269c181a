/** What the calls of a session cost: each at the prices of its model and day, added up by class, day and model. */
import {
  addMoney,
  addTokens,
  type PricedCall as Billed,
  iterationsOf,
  type Money,
  NO_MONEY,
  NO_TOKENS,
  type PriceClass,
  priceCall,
  type Usage,
} from '@tidemark/core'
import { type Catalogue, type LogFormat, lookUpModel, pricesOn } from '@tidemark/wire'
import { addUsage, type Call, loggedOutput, NO_USAGE, usageOf } from './calls.ts'
import type {
  AgentReport,
  CacheBreak,
  CacheReport,
  ClearingCost,
  MoneyLost,
  MoneySpent,
  Spending,
  UsageTotals,
} from './report.ts'

export interface PricedCall extends Pick<Billed, 'money' | 'tokens' | 'saved'> {
  readonly call: Call
  readonly isOutputEstimated: boolean
}

export interface Pricing {
  readonly catalogue: Catalogue
  readonly format: LogFormat
  /** What the blocks of a response come to. */
  readonly estimate: (call: Call) => number
}

export function priceLogged(call: Call, pricing: Pricing): PricedCall {
  const { usage, isOutputEstimated } = outputMended(call, call.usage, pricing)
  const { key: id, source, model, at } = call
  const { money, tokens, saved } = priceCall({ id, source, model, at, usage }, (name, when) => {
    const found = lookUpModel(pricing.catalogue, name)
    return found.found ? pricesOn(found.model, when) : null
  })
  return { call, money, tokens, saved, isOutputEstimated }
}

/**
 * Claude Code often logs the output as it stood when the stream began. Where it is less than half of what the
 * blocks themselves come to, the blocks are believed. Runs that the provider lists are its final word.
 */
function outputMended(
  call: Call,
  usage: Usage | null,
  { estimate, format }: Pricing,
): { readonly usage: Usage | null; readonly isOutputEstimated: boolean } {
  if (usage === null) return { usage, isOutputEstimated: false }
  const isFinal = format !== 'claude-code' || iterationsOf(usage).length > 0
  const estimated = isFinal ? 0 : estimate(call)
  if (loggedOutput(usage) * 2 >= estimated) return { usage, isOutputEstimated: false }
  return { usage: { ...usage, output_tokens: estimated }, isOutputEstimated: true }
}

export function moneySpent(calls: readonly PricedCall[]): MoneySpent {
  const money = sumMoney(calls)
  const saved = calls.reduce<number | null>((sum, call) => plus(sum, call.saved), 0)
  const tokens = calls.reduce((sum, call) => addTokens(sum, call.tokens), NO_TOKENS)
  const one = (kind: PriceClass) => ({ tokens: tokens[kind], usd: dollars(money.byClass[kind]) })
  return {
    spent: dollars(money.total),
    pricedUsd: dollars(money.priced) ?? 0,
    byClass: {
      input: one('input'),
      cacheRead: one('cacheRead'),
      write5m: one('write5m'),
      write1h: one('write1h'),
      output: one('output'),
    },
    feesUsd: dollars(money.fees),
    savedByCache: dollars(saved),
    missing: money.missing,
    assumed: money.assumed,
  }
}

/** On calls that `source` made. */
export function spentOn(source: string, calls: readonly PricedCall[]): number | null {
  return dollars(sumMoney(calls.filter(({ call }) => call.source === source)).total)
}

export function sumMoney(calls: readonly PricedCall[]): Money {
  return calls.reduce((sum, { money }) => addMoney(sum, money), NO_MONEY)
}

/** To a millionth: what comes behind is noise of the arithmetic. */
export function dollars(amount: number | null): number | null {
  return amount === null ? null : Math.round(amount * 1e6) / 1e6
}

/** Unknown where a part of it is. */
export function plus(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

// The calls of a session by day and model: what totals over many sessions are made of.

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

/** The side agents of a session, in the order of their first calls. */
export function agentReports(priced: readonly PricedCall[]): readonly AgentReport[] {
  const byAgent = Map.groupBy(priced, ({ call }) => call.agent)
  return [...byAgent].flatMap(([id, calls]) => {
    if (id === null) return []
    const usage = calls.reduce((sum, { call }) => addUsage(sum, usageOf(call.usage)), NO_USAGE)
    return [{ id, apiCalls: calls.length, usage, costUsd: dollars(sumMoney(calls).total) }]
  })
}

// What breaks and clearings cost a session, and what share of its bill the breaks were.

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
