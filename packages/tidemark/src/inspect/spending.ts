/**
 * Calculates what the API calls of a session cost, by token class, day and model. Each call is priced at the prices of
 * its model on its date.
 */
import { addCosts, type Cost, ZERO_COST } from '@tidemark/core/cost/prices'
import {
  addTokensByPriceClass,
  type PricedCall as Billed,
  COMPACTION_SOURCE,
  type FindModelPrices,
  priceCall,
  ZERO_TOKENS,
} from '@tidemark/core/cost/session-cost'
import type { PriceClass } from '@tidemark/core/tokens/usage'
import { type Catalogue, createPriceFinder, lookUpModel } from '@tidemark/wire/catalogue/catalogue'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import type { LogFormat } from '@tidemark/wire/readers/log-reader'
import { measureUnloggedCost, type UnloggedCallEvidence, type UnloggedCost } from './host-totals.ts'
import { addUsage, type LoggedCall, NO_USAGE, sumUsage, toUsageTotals } from './logged-calls.ts'
import { findWriteLifetimes } from './logged-requests.ts'
import type {
  CacheLossCosts,
  CacheReport,
  ClearingCost,
  CostSummary,
  DailySpending,
  LoggedCacheBreak,
  SessionReport,
  SubagentReport,
  UsageTotals,
} from './report.ts'

type SpendingFields =
  | 'costUsd'
  | 'money'
  | 'outputEstimated'
  | 'outputEstimatedCalls'
  | 'outputTokensEstimated'
  | 'spending'
  | 'agents'

/**
 * Returns the cost fields of a report. `calls`: the API calls of the main conversation and of subagents. `cacheReport`:
 * the cache breaks and clearing costs of the same log.
 */
export function computeSpending(
  calls: readonly LoggedCall[],
  cacheReport: CacheReport,
  pricing: SessionPricing,
  toDay: DayFormatter,
): Pick<SessionReport, SpendingFields> {
  const findPrices = createPriceFinder(pricing.catalogue)
  const priced = calls.map((call) => priceLogCall(call, pricing, findPrices))
  const extra = measureUnloggedCost(
    pricing.unlogged.totals,
    priced.map(({ call, money: { priced: pricedUsd } }) => ({ call, pricedUsd })),
  )
  const money = withUnloggedCost(summarizeCosts(priced), priced, extra)
  const summaries = priced.filter(({ call }) => call.source === COMPACTION_SOURCE)
  const spentOnCompaction = roundDollars(sumCosts(summaries).total)
  const estimatedCalls = priced.filter(({ isOutputEstimated }) => isOutputEstimated).length
  return {
    costUsd: money.spent,
    money: {
      ...money,
      ...sumCacheLosses(cacheReport, money.spent),
      spentOnCompaction,
      writeSeconds: {
        write5m: findWriteSeconds(priced, 'short', pricing.catalogue),
        write1h: findWriteSeconds(priced, 'long', pricing.catalogue),
      },
      notInLog: {
        summaries: pricing.unlogged.summaries,
        usd: roundDollars(extra?.usd ?? null),
        tokens: extra?.tokens ?? null,
      },
    },
    outputEstimated: estimatedCalls > 0,
    outputEstimatedCalls: estimatedCalls,
    outputTokensEstimated: priced.reduce((sum, { tokens }) => sum + tokens.output, 0),
    spending: listSpending(priced, cacheReport, toDay, extra),
    agents: listAgentReports(priced),
  }
}

/**
 * Returns how many seconds the cache writes of a class live, by the rules of the models that wrote them; null if that
 * is unknown or differs.
 */
function findWriteSeconds(
  priced: readonly PricedLogCall[],
  kind: 'short' | 'long',
  catalogue: Catalogue,
): number | null {
  const writers = priced.flatMap(({ call: { usage, model } }) => (usage?.writes[kind] ? [model] : []))
  const found = [...new Set(writers)].map((model) => {
    const known = lookUpModel(catalogue, model)
    return known.found ? findWriteLifetimes(createProviderProfile(known.model).cache)[kind].seconds : null
  })
  const [seconds = null, ...others] = new Set(found)
  return others.length === 0 ? seconds : null
}

export interface CallPricingOptions {
  readonly catalogue: Catalogue
  readonly format: LogFormat
  /** Returns the estimated tokens of the content blocks of a call's response. */
  readonly estimate: (call: LoggedCall) => number
  /** Prices of calls, filled with each priced call, because several parts of a report price the same calls. */
  readonly priced?: Map<LoggedCall, PricedLogCall>
}

interface SessionPricing extends CallPricingOptions {
  readonly unlogged: UnloggedCallEvidence
}

/** Adds what the host spent on calls that are not in the log. Its totals also price calls whose price is unknown here. */
function withUnloggedCost(
  money: CostSummary,
  calls: readonly PricedLogCall[],
  extra: UnloggedCost | null,
): CostSummary {
  if (extra === null) return money
  const pricedUsd = roundDollars(money.pricedUsd + extra.usd) ?? 0
  const isKnown = calls.every((call) => call.call.at <= extra.at || call.money.total !== null)
  return { ...money, pricedUsd, spent: isKnown ? pricedUsd : null }
}

export interface PricedLogCall extends Pick<Billed, 'money' | 'tokens' | 'saved'> {
  readonly call: LoggedCall
  readonly isOutputEstimated: boolean
}

/**
 * Prices a logged call. Claude Code often logs the usage from the start of the stream, with too few output tokens. If
 * it has less than half of the output tokens estimated from the response's blocks, the estimate is priced instead.
 * Usage that was logged with a stop reason, or split into the runs of the call (`parts`), is final and never replaced.
 * The result is stored in `priced`, if given, and returned from there the next time.
 */
export function priceLogCall(
  call: LoggedCall,
  { catalogue, format, estimate, priced }: CallPricingOptions,
  findPrices: FindModelPrices = createPriceFinder(catalogue),
): PricedLogCall {
  const known = priced?.get(call)
  if (known !== undefined) return known
  const { key, source, model, at, usage: logged } = call
  const program = call.copiedFrom ?? format
  const mayBeEarly = logged !== null && program === 'claude-code' && !call.isFinal
  const estimated = mayBeEarly && logged.parts === undefined ? estimate(call) : 0
  const isOutputEstimated = (logged?.output ?? 0) * 2 < estimated
  const usage = logged !== null && isOutputEstimated ? { ...logged, output: estimated } : logged
  const { money, tokens, saved } = priceCall({ id: key, source, model, at, usage }, findPrices)
  const found = { call, money, tokens, saved, isOutputEstimated }
  priced?.set(call, found)
  return found
}

/** The names that reports use. Programs read reports, so these names do not change. */
const REPORTED_NAMES: ReadonlyMap<string, string> = new Map([
  ['writeShort', 'write5m'],
  ['writeLong', 'write1h'],
])

export function summarizeCosts(calls: readonly PricedLogCall[]): CostSummary {
  const money = sumCosts(calls)
  const saved = calls.reduce<number | null>((sum, call) => addDollars(sum, call.saved), 0)
  const tokens = calls.reduce((sum, call) => addTokensByPriceClass(sum, call.tokens), ZERO_TOKENS)
  const toClassPrice = (kind: PriceClass) => ({
    tokens: tokens[kind],
    usd: roundDollars(money.byClass[kind]),
  })
  return {
    spent: roundDollars(money.total),
    pricedUsd: roundDollars(money.priced) ?? 0,
    byClass: {
      input: toClassPrice('input'),
      cacheRead: toClassPrice('cacheRead'),
      write5m: toClassPrice('writeShort'),
      write1h: toClassPrice('writeLong'),
      output: toClassPrice('output'),
    },
    feesUsd: roundDollars(money.fees),
    savedByCache: roundDollars(saved),
    missing: money.missing.map((name) => REPORTED_NAMES.get(name) ?? name),
    assumed: money.assumed,
  }
}

function sumCosts(calls: readonly PricedLogCall[]): Cost {
  return calls.reduce((sum, { money }) => addCosts(sum, money), ZERO_COST)
}

/** Rounds to a millionth of a dollar, which removes floating-point noise. */
export function roundDollars(amount: number | null): number | null {
  return amount === null ? null : Math.round(amount * 1e6) / 1e6
}

/** Adds two amounts in dollars; null if either is unknown. */
export function addDollars(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other
}

/** Sums the costs of cache breaks and clearings. `spent`: the cost of all calls of the log; null if unknown. */
export function sumCacheLosses(
  { cacheBreaks, clearingCosts }: CacheReport,
  spent: number | null,
): CacheLossCosts {
  const lost = sumLosses(cacheBreaks)
  const share = spent === null || lost === null || spent === 0 ? null : Math.round((lost / spent) * 1e4) / 1e4
  return { lostToBreaks: lost, shareLostToBreaks: share, spentOnClearings: sumLosses(clearingCosts) }
}

type CacheLoss = Pick<ClearingCost, 'costUsd'>

function sumLosses(losses: readonly CacheLoss[]): number | null {
  return roundDollars(losses.reduce<number | null>((sum, { costUsd }) => addDollars(sum, costUsd), 0))
}

function sumKnownLosses(losses: readonly CacheLoss[]): number {
  return sumLosses(losses.filter(({ costUsd }) => costUsd !== null)) ?? 0
}

interface SpendingRow {
  readonly day: string | null
  readonly model: string
  apiCalls: number
  usage: UsageTotals
  money: Cost
  readonly lost: LoggedCacheBreak[]
  readonly cleared: ClearingCost[]
  /** Dollars for calls that are not in the log; null if the host logged no totals. */
  unlogged: number | null
}

/** Returns the spending of a session, one row for each day and model. Totals over many sessions are sums of these rows. */
function listSpending(
  calls: readonly PricedLogCall[],
  { cacheBreaks, clearingCosts }: CacheReport,
  toDay: DayFormatter,
  extra: UnloggedCost | null,
): readonly DailySpending[] {
  const rows = new Map<string, SpendingRow>()
  const findRow = ({ at, model }: Pick<LoggedCacheBreak, 'at' | 'model'>): SpendingRow => {
    const day = toDay(at)
    const key = `${day}\n${model}`
    const none = { apiCalls: 0, usage: NO_USAGE, money: ZERO_COST, unlogged: null }
    const row: SpendingRow = rows.get(key) ?? { day, model, ...none, lost: [], cleared: [] }
    rows.set(key, row)
    return row
  }
  for (const { call, money } of calls) {
    const row = findRow(call)
    row.apiCalls += 1
    row.usage = addUsage(row.usage, toUsageTotals(call.usage))
    row.money = addCosts(row.money, money)
  }
  for (const found of cacheBreaks) findRow(found).lost.push(found)
  for (const found of clearingCosts) findRow(found).cleared.push(found)
  for (const { model, usd } of extra?.models ?? []) findRow({ at: extra?.at ?? '', model }).unlogged = usd
  return [...rows.values()].map(({ money, lost, cleared, unlogged, ...row }) => ({
    ...row,
    costUsd: roundDollars(unlogged === null ? money.total : money.priced + unlogged),
    pricedUsd: roundDollars(money.priced + (unlogged ?? 0)) ?? 0,
    cacheBreaks: lost.length,
    lostToBreaks: sumLosses(lost),
    spentOnClearings: sumLosses(cleared),
    pricedLostToBreaks: sumKnownLosses(lost),
    pricedSpentOnClearings: sumKnownLosses(cleared),
  }))
}

/** Returns a report for each subagent, in the order of their first calls. */
function listAgentReports(priced: readonly PricedLogCall[]): readonly SubagentReport[] {
  const byAgent = Map.groupBy(priced, ({ call }) => call.agent)
  return [...byAgent].flatMap(([id, group]) => {
    if (id === null) return []
    const usage = sumUsage(group.map(({ call }) => call))
    return [{ id, apiCalls: group.length, usage, costUsd: roundDollars(sumCosts(group).total) }]
  })
}

/** Returns the day of a timestamp as YYYY-MM-DD; null if the text is not a timestamp. */
export type DayFormatter = (at: string) => string | null

/** Creates a day formatter. `timeZone`: a name such as `Europe/Berlin`; the machine's time zone if absent or unknown. */
export function createDayFormatter(timeZone?: string): DayFormatter {
  const format = createDateFormat(timeZone) ?? createDateFormat()
  return (at) => {
    const time = Date.parse(at)
    return Number.isNaN(time) ? null : (format?.format(time) ?? null)
  }
}

/**
 * Creates a date format; null if the time zone is unknown. The variable `TZ` may have values that only a C library understands.
 */
function createDateFormat(timeZone?: string): Intl.DateTimeFormat | null {
  const zone = timeZone === undefined || timeZone === '' ? {} : { timeZone }
  try {
    return new Intl.DateTimeFormat('en-CA', { ...zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  } catch {
    return null
  }
}
