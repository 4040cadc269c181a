/**
 * The cost of a session, computed from its log alone, so that a reopened session knows what it has cost. Every call
 * counts, also those of abandoned branches and of subagents: they were paid for.
 */
import { isObject } from '../log/json.ts'
import { List, Trie } from '../log/persistent-collections.ts'
import { isKnown, isSyntheticError, type SessionRecord, type Usage } from '../log/record.ts'
import { billedParts, byPriceClass, countOf, type TokensByClass } from '../tokens/usage.ts'
import {
  addMoney,
  type Money,
  NO_MONEY,
  type Prices,
  priceOf,
  priceUncached,
  UNKNOWN_RATES,
} from './prices.ts'

// The cost of one call.

/** The prices of a model at a time (ISO 8601); null if unknown. */
export type PriceList = (model: string, at: string) => Prices | null

export interface BilledCall {
  /** Id of the response. */
  readonly id: string
  /** What made the call, if not the conversation itself: `compact`, a subagent … */
  readonly source: string | null
  readonly model: string
  readonly at: string
  /** Null if the log does not have it. */
  readonly usage: Usage | null
}

export interface PricedCall extends BilledCall {
  readonly tokens: TokensByClass
  readonly money: Money
  /** Dollars saved on the prompt by the cache; null if a price is unknown. */
  readonly saved: number | null
}

export const NO_TOKENS: TokensByClass = byPriceClass(() => 0)

export function priceCall(call: BilledCall, list: PriceList): PricedCall {
  const { usage, model, at } = call
  if (usage === null) {
    const money = { ...NO_MONEY, total: null, missing: ['calls whose usage the log does not have'] }
    return { ...call, tokens: NO_TOKENS, money, saved: null }
  }
  const lookUpPrices = (name: string): Prices | null => list(name, at)
  const prices = lookUpPrices(model)
  const money = priceOf(usage, prices ?? UNKNOWN_RATES, lookUpPrices)
  const uncachedPrompt = promptPrice(priceUncached(usage, prices ?? UNKNOWN_RATES, lookUpPrices))
  const prompt = promptPrice(money)
  return {
    ...call,
    tokens: billedParts(usage).reduce((sum, { tokens }) => addTokens(sum, tokens), NO_TOKENS),
    money:
      prices === null && money.missing.length > 0 ? { ...money, missing: [`prices of ${model}`] } : money,
    saved: uncachedPrompt === null || prompt === null ? null : uncachedPrompt - prompt,
  }
}

export function addTokens(one: TokensByClass, other: TokensByClass): TokensByClass {
  return byPriceClass((name) => one[name] + other[name])
}

/** The prompt alone: savings on it are known even if the price of the output is not. */
function promptPrice({ byClass: { input, cacheRead, write5m, write1h } }: Money): number | null {
  if (input === null || cacheRead === null || write5m === null || write1h === null) return null
  return input + cacheRead + write5m + write1h
}

/** The call of a `model_call` record: a fork, a summary, an empty reply. Null for any other record. */
export function loggedCall(record: SessionRecord): (BilledCall & { readonly source: string }) | null {
  if (!isKnown(record) || record.type !== 'system') return null
  const logged: unknown = record.modelCall
  if (!isObject(logged)) return null
  const { id, source, model, usage } = logged
  if (typeof id !== 'string' || typeof source !== 'string' || typeof model !== 'string') return null
  return { id, source, model, at: record.timestamp, usage: isUsage(usage) ? usage : null }
}

function isUsage(usage: unknown): usage is Usage {
  return isObject(usage) && typeof usage.input_tokens === 'number' && typeof usage.output_tokens === 'number'
}

export interface SessionMoney {
  /** Totals of the calls that can no longer change. */
  readonly settled: MoneyTotals
  /** The newest calls: a response is several records, and only the last has its full usage. */
  readonly recent: readonly PricedCall[]
  /** Ids of the settled calls. */
  readonly closed: Trie<true>
  /** The records counted so far. */
  readonly records: List<SessionRecord>
}

/** Responses that may still grow, for example of parallel subagents. */
const MOST_OPEN = 16

export function noMoney(): SessionMoney {
  return { settled: NO_TOTALS, recent: [], closed: Trie.empty(), records: List.of() }
}

/** The cost once the log has these records. Only new records are processed. */
export function advanceMoney(
  money: SessionMoney,
  records: List<SessionRecord>,
  prices: PriceList,
): SessionMoney {
  let next = records.extends(money.records) ? money : noMoney()
  for (let index = next.records.length; index < records.length; index += 1) {
    const record = records.at(index)
    if (record !== undefined) next = withRecord(next, record, prices)
  }
  return { ...next, records }
}

export function moneyTotals({ settled, recent }: SessionMoney): MoneyTotals {
  return recent.reduce(withCall, settled)
}

function withRecord(money: SessionMoney, record: SessionRecord, prices: PriceList): SessionMoney {
  const call = callIn(record)
  if (call !== null) return withPriced(money, priceCall(call, prices))
  const loss = isKnown(record) && record.type === 'system' ? record.cacheLoss : undefined
  return isObject(loss) ? { ...money, settled: withLoss(money.settled, loss) } : money
}

function withPriced(money: SessionMoney, call: PricedCall): SessionMoney {
  const { recent, closed } = money
  if (closed.has(call.id)) return money
  const at = recent.findIndex(({ id }) => id === call.id)
  if (at !== -1) return { ...money, recent: recent.with(at, call) }
  const [oldest] = recent
  if (recent.length < MOST_OPEN || oldest === undefined) return { ...money, recent: [...recent, call] }
  return {
    ...money,
    settled: withCall(money.settled, oldest),
    closed: closed.set(oldest.id, true),
    recent: [...recent.slice(1), call],
  }
}

/** The call that a record reports, or null. */
function callIn(record: SessionRecord): BilledCall | null {
  if (!isKnown(record)) return null
  if (record.type !== 'assistant') return loggedCall(record)
  if (isSyntheticError(record)) return null
  const { id, model, usage } = record.message
  const source = record.isSidechain === true ? 'sidechain' : null
  return { id, model, source, at: record.timestamp, usage: usage ?? null }
}

// Totals: spent, saved by the cache, lost to cache breaks, spent on the engine's own rewrites.

/** Dollars. */
interface Amount {
  /** Null if a part of it is unknown. */
  readonly total: number | null
  /** The sum of what is known. */
  readonly known: number
}

export interface MoneyTotals {
  readonly calls: number
  /** Calls without usage or with an unknown price; `spent.missing` says what. */
  readonly unpricedCalls: number
  readonly tokens: TokensByClass
  readonly spent: Money
  /** What the same prompts would have cost without a cache, minus what they cost. */
  readonly savedByCache: Amount
  readonly breaks: number
  readonly tokensLostToBreaks: number
  /** Part of `spent`, as are the two below. */
  readonly lostToBreaks: Amount
  /** Calls that wrote a summary. */
  readonly spentOnCompaction: Amount
  /** Re-caching what clearings changed. */
  readonly spentOnClearing: Amount
}

const NOTHING: Amount = { total: 0, known: 0 }

const NO_TOTALS: MoneyTotals = {
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

/** Source of the calls that `spentOnCompaction` counts. */
export const COMPACTION = 'compact'

function withCall(totals: MoneyTotals, { money, tokens, saved, source }: PricedCall): MoneyTotals {
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

/** `loss`: a `cache_loss` as read from the log, unchecked. */
function withLoss(totals: MoneyTotals, loss: { readonly [field: string]: unknown }): MoneyTotals {
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
