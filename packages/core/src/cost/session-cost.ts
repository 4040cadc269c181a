/**
 * Computes the cost of a session from the calls in its log and the prices on their days, so that a reopened session knows
 * its cost. Every call in the log counts, including those of abandoned branches and of subagents, because they were billed.
 */
import { isObject } from '../log/json.ts'
import { AppendList, PersistentMap } from '../log/persistent-collections.ts'
import { isKnownRecord, isSyntheticError, type SessionRecord } from '../log/record.ts'
import { isTokenUsage, type TokenUsage } from '../log/reply-report.ts'
import type { WorkInSteps } from '../log/work-steps.ts'
import {
  isNothingBilled,
  listBilledModelRuns,
  type TokensByPriceClass,
  toTokenCount,
} from '../tokens/usage.ts'
import {
  addCosts,
  type Cost,
  type ModelPrices,
  mapPriceClasses,
  priceUsage,
  priceUsageUncached,
  UNKNOWN_RATES,
  ZERO_COST,
} from './prices.ts'

// The declarations below compute the cost of one model call.

/** Returns the prices that a model had at a given time (ISO 8601); null if unknown. */
export type FindModelPrices = (model: string, at: string) => ModelPrices | null

interface BilledCall {
  /** Id of the response (`message.id`). */
  readonly id: string
  /** What made the model call, for example `compact` or a subagent; null for the conversation itself. */
  readonly source: string | null
  readonly model: string
  readonly at: string
  /** Token usage of the model call; null if the log does not contain it. */
  readonly usage: TokenUsage | null
}

export interface PricedCall extends BilledCall {
  readonly tokens: TokensByPriceClass
  readonly money: Cost
  /** Dollars that prompt caching saved on this call's prompt; null if a price is unknown. */
  readonly saved: number | null
}

/** The text in `missing` of a cost if the log lacks the usage of a call. */
export const MISSING_USAGE = 'calls whose usage the log does not have'

export const ZERO_TOKENS: TokensByPriceClass = mapPriceClasses(() => 0)

/** Prices a call at the prices of its day. If its usage or a price is unknown, the total is null and `missing` says why. */
export function priceCall(call: BilledCall, list: FindModelPrices): PricedCall {
  const { usage, model, at } = call
  if (usage === null) {
    const money = { ...ZERO_COST, total: null, missing: [MISSING_USAGE] }
    return { ...call, tokens: ZERO_TOKENS, money, saved: null }
  }
  const lookUpPrices = (name: string): ModelPrices | null => list(name, at)
  const prices = lookUpPrices(model)
  const money = priceUsage(usage, prices ?? UNKNOWN_RATES, lookUpPrices)
  const uncachedPrompt = sumPromptPrice(priceUsageUncached(usage, prices ?? UNKNOWN_RATES, lookUpPrices))
  const prompt = sumPromptPrice(money)
  return {
    ...call,
    tokens: listBilledModelRuns(usage).reduce(
      (sum, { tokens }) => addTokensByPriceClass(sum, tokens),
      ZERO_TOKENS,
    ),
    money:
      prices === null && money.missing.length > 0 ? { ...money, missing: [`prices of ${model}`] } : money,
    saved: uncachedPrompt === null || prompt === null ? null : uncachedPrompt - prompt,
  }
}

export function addTokensByPriceClass(
  one: TokensByPriceClass,
  other: TokensByPriceClass,
): TokensByPriceClass {
  return mapPriceClasses((name) => one[name] + other[name])
}

/**
 * Returns the price of the prompt without the output. The savings of the cache can then be computed even if the price
 * of output tokens is unknown.
 */
function sumPromptPrice({ byClass: { input, cacheRead, writeShort, writeLong } }: Cost): number | null {
  if (input === null || cacheRead === null || writeShort === null || writeLong === null) return null
  return input + cacheRead + writeShort + writeLong
}

/**
 * Returns the model call that a `model_call` record describes: a cache-sharing fork call, a summary, or an empty reply.
 * Returns null for any other record.
 */
export function readModelCallRecord(
  record: SessionRecord,
): (BilledCall & { readonly source: string }) | null {
  if (!isKnownRecord(record) || record.type !== 'system') return null
  const logged: unknown = record.modelCall
  if (!isObject(logged)) return null
  const { id, source, model, tokens } = logged
  if (typeof id !== 'string' || typeof source !== 'string' || typeof model !== 'string') return null
  return { id, source, model, at: record.timestamp, usage: isTokenUsage(tokens) ? tokens : null }
}

/** The calls of a session, priced so far. `sumSessionCost` gives the totals. */
export interface SessionCostTally {
  /** Cost totals of the older model calls, whose usage can no longer change. */
  readonly settled: CostTotals
  /**
   * The newest model calls, whose usage may still change: a response is several records, and not all of them have its
   * full usage.
   */
  readonly recent: readonly PricedCall[]
  /** Ids of the model calls included in `settled`. */
  readonly closed: PersistentMap<true>
  /** The log records counted so far. */
  readonly records: AppendList<SessionRecord>
}

/** Number of newest responses that may still receive records. More than one can, for example with parallel subagents. */
const MAX_OPEN_CALLS = 16

export function emptySessionCost(): SessionCostTally {
  return { settled: ZERO_TOTALS, recent: [], closed: PersistentMap.empty(), records: AppendList.of() }
}

/** Work of pricing one record, expressed as a number of characters to read. */
const RECORD_WORK = 150

/**
 * Updates the cost of a session, in steps of one record. Processes only the log records that were added since the last
 * update, or all if there was none.
 */
export function* updateSessionCost(
  money: SessionCostTally | null,
  records: AppendList<SessionRecord>,
  prices: FindModelPrices,
): WorkInSteps<SessionCostTally> {
  let next = money !== null && records.extends(money.records) ? money : emptySessionCost()
  for (let index = next.records.length; index < records.length; index += 1) {
    const record = records.at(index)
    if (record !== undefined) next = withRecord(next, record, prices)
    yield RECORD_WORK
  }
  return { ...next, records }
}

export function sumSessionCost({ settled, recent }: SessionCostTally): CostTotals {
  return recent.reduce(withCall, settled)
}

function withRecord(
  money: SessionCostTally,
  record: SessionRecord,
  prices: FindModelPrices,
): SessionCostTally {
  // The record was copied from another session, where its cost is counted.
  if (record.forkedFrom !== undefined) return money
  const call = readCall(record)
  if (call !== null) return withPricedCall(money, priceCall(call, prices))
  const loss = isKnownRecord(record) && record.type === 'system' ? record.cacheLoss : undefined
  return isObject(loss) ? { ...money, settled: withLoss(money.settled, loss) } : money
}

function withPricedCall(money: SessionCostTally, call: PricedCall): SessionCostTally {
  const { recent, closed } = money
  if (closed.has(call.id)) return money
  const at = recent.findIndex(({ id }) => id === call.id)
  const known = recent[at]
  if (known !== undefined) {
    // A `model_call` record may have the usage of a call of the conversation, which then still counts as one.
    const source = known.source === null ? null : call.source
    return isNewerUsage(known, call) ? { ...money, recent: recent.with(at, { ...call, source }) } : money
  }
  const [oldest] = recent
  if (recent.length < MAX_OPEN_CALLS || oldest === undefined) return { ...money, recent: [...recent, call] }
  return {
    ...money,
    settled: withCall(money.settled, oldest),
    closed: closed.set(oldest.id, true),
    recent: [...recent.slice(1), call],
  }
}

/**
 * Checks whether `call` has at least the output tokens of `known`. Each record of a response has the usage known when
 * it was written, or none, so the record with the most output tokens has the newest usage.
 */
function isNewerUsage(known: PricedCall, call: PricedCall): boolean {
  if (call.usage === null) return false
  return known.usage === null || call.tokens.output >= known.tokens.output
}

/** Returns the model call that a log record describes; null if the record describes none. */
function readCall(record: SessionRecord): BilledCall | null {
  if (!isKnownRecord(record)) return null
  if (record.type !== 'assistant') return readModelCallRecord(record)
  if (isSyntheticError(record)) return null
  const { id, model } = record.message
  // A response that a client repeats was counted when it came.
  if (isNothingBilled(record.billed)) return null
  const source = record.isSidechain === true ? 'sidechain' : null
  return { id, model, source, at: record.timestamp, usage: record.billed ?? record.usage ?? null }
}

// The declarations below compute the totals in dollars: spent, saved by the cache, lost to cache breaks, and spent on
// compaction and clearing.

/** An amount in dollars. Some of its parts may be unknown. */
interface Amount {
  /** Dollars in total; null if a part is unknown. */
  readonly total: number | null
  /** Sum in dollars of the known parts. */
  readonly known: number
}

/** Totals over all calls of a session. What was lost to breaks or spent on rewrites is part of `spent`. */
export interface CostTotals {
  readonly calls: number
  /** Number of model calls that have no usage or no known price. `spent.missing` lists what is unknown. */
  readonly unpricedCalls: number
  readonly tokens: TokensByPriceClass
  readonly spent: Cost
  /** Dollars saved by prompt caching: what the same prompts would have cost without a cache, minus what they did cost. */
  readonly savedByCache: Amount
  readonly breaks: number
  readonly tokensLostToBreaks: number
  /** Dollars lost to cache breaks; included in `spent`. */
  readonly lostToBreaks: Amount
  /** Dollars spent on model calls that wrote a summary; included in `spent`. */
  readonly spentOnCompaction: Amount
  /** Dollars spent on caching content again after clearings had changed it; included in `spent`. */
  readonly spentOnClearing: Amount
}

const ZERO_AMOUNT: Amount = { total: 0, known: 0 }

const ZERO_TOTALS: CostTotals = {
  calls: 0,
  unpricedCalls: 0,
  tokens: ZERO_TOKENS,
  spent: ZERO_COST,
  savedByCache: ZERO_AMOUNT,
  breaks: 0,
  tokensLostToBreaks: 0,
  lostToBreaks: ZERO_AMOUNT,
  spentOnCompaction: ZERO_AMOUNT,
  spentOnClearing: ZERO_AMOUNT,
}

/** The `source` of model calls that write a summary. */
export const COMPACTION_SOURCE = 'compact'

function withCall(totals: CostTotals, { money, tokens, saved, source }: PricedCall): CostTotals {
  return {
    ...totals,
    calls: totals.calls + 1,
    unpricedCalls: totals.unpricedCalls + (money.total === null ? 1 : 0),
    tokens: addTokensByPriceClass(totals.tokens, tokens),
    spent: addCosts(totals.spent, money),
    savedByCache: addToAmount(totals.savedByCache, saved),
    spentOnCompaction:
      source === COMPACTION_SOURCE
        ? addToAmount(totals.spentOnCompaction, money.total, money.priced)
        : totals.spentOnCompaction,
  }
}

/** Adds a cache loss to the totals. `loss` is the `cacheLoss` field of a log record and is not validated yet. */
function withLoss(totals: CostTotals, loss: { readonly [field: string]: unknown }): CostTotals {
  const usd = typeof loss.usd === 'number' && Number.isFinite(loss.usd) ? loss.usd : null
  if (loss.kind === 'act') return { ...totals, spentOnClearing: addToAmount(totals.spentOnClearing, usd) }
  if (loss.kind !== 'break') return totals
  return {
    ...totals,
    breaks: totals.breaks + 1,
    tokensLostToBreaks: totals.tokensLostToBreaks + toTokenCount(loss.tokens),
    lostToBreaks: addToAmount(totals.lostToBreaks, usd),
  }
}

function addToAmount({ total, known }: Amount, more: number | null, moreKnown: number = more ?? 0): Amount {
  return { total: total === null || more === null ? null : total + more, known: known + moreKnown }
}
