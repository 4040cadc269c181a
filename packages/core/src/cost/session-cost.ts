/**
 * The money of a session: a fold of its log and of nothing else, so that a session opened again knows what it
 * has cost. Every call counts, those of branches that were left and of side agents too: they were paid for.
 */
import { isObject } from '../log/json.ts'
import { List, Trie } from '../log/persistent-collections.ts'
import { isKnown, isSyntheticError, type SessionRecord, type Usage } from '../log/record.ts'
import { billedParts, countOf, type TokensByClass } from '../tokens/usage.ts'
import { addMoney, type Money, NO_MONEY, type Prices, priceOf, priceUncached } from './prices.ts'

// What one call cost, as far as its usage and the prices of its model tell.

/** The prices of a model at a moment (ISO 8601); null where they are not known. */
export type PriceList = (model: string, at: string) => Prices | null

export interface BilledCall {
  /** Of the response. */
  readonly id: string
  /** Who asked, where it was not the conversation itself: `compact`, a side agent … */
  readonly source: string | null
  readonly model: string
  readonly at: string
  /** Null where nobody told. */
  readonly usage: Usage | null
}

export interface PricedCall extends BilledCall {
  readonly tokens: TokensByClass
  readonly money: Money
  /** Dollars less than the prompt would have cost without a cache; null where a price is not known. */
  readonly saved: number | null
}

const UNPRICED: Prices = { input: null, cacheRead: null, write5m: null, write1h: null, output: null }
const NO_USAGE = 'calls whose usage the log does not have'
export const NO_TOKENS: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

export function priceCall(call: BilledCall, list: PriceList): PricedCall {
  const { usage, model, at } = call
  if (usage === null) return { ...call, tokens: NO_TOKENS, money: UNTOLD, saved: null }
  const pricesOf = (name: string): Prices | null => list(name, at)
  const prices = pricesOf(model)
  const money = priceOf(usage, prices ?? UNPRICED, pricesOf)
  const uncached = priceUncached(usage, prices ?? UNPRICED, pricesOf)
  return {
    ...call,
    tokens: billedParts(usage).reduce((sum, { tokens }) => addTokens(sum, tokens), NO_TOKENS),
    money:
      prices === null && money.missing.length > 0 ? { ...money, missing: [`prices of ${model}`] } : money,
    saved: difference(promptPrice(uncached), promptPrice(money)),
  }
}

const UNTOLD: Money = { ...NO_MONEY, total: null, missing: [NO_USAGE] }

export function addTokens(one: TokensByClass, other: TokensByClass): TokensByClass {
  return {
    input: one.input + other.input,
    cacheRead: one.cacheRead + other.cacheRead,
    write5m: one.write5m + other.write5m,
    write1h: one.write1h + other.write1h,
    output: one.output + other.output,
  }
}

/** The prompt alone: what was saved on it is known though the price of the answer may not be. */
function promptPrice({ byClass: { input, cacheRead, write5m, write1h } }: Money): number | null {
  if (input === null || cacheRead === null || write5m === null || write1h === null) return null
  return input + cacheRead + write5m + write1h
}

function difference(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one - other
}

// A call that a log tells of beside the conversation: a fork, a summary, a reply that said nothing.

/** Null for a record that tells of none. A log may hold anything under that name. */
export function loggedCall(record: SessionRecord): (BilledCall & { readonly source: string }) | null {
  if (!isKnown(record) || record.type !== 'system') return null
  const told: unknown = record.modelCall
  if (!isObject(told)) return null
  const { id, source, model, usage } = told
  if (typeof id !== 'string' || typeof source !== 'string' || typeof model !== 'string') return null
  return { id, source, model, at: record.timestamp, usage: isUsage(usage) ? usage : null }
}

function isUsage(usage: unknown): usage is Usage {
  return isObject(usage) && typeof usage.input_tokens === 'number' && typeof usage.output_tokens === 'number'
}

export interface SessionMoney {
  /** Of the calls that can no longer change. */
  readonly settled: MoneyTotals
  /** The newest: a response is several records, and the last of them tells its whole usage. */
  readonly recent: readonly PricedCall[]
  /** Ids of the calls that are settled. */
  readonly closed: Trie<true>
  /** What has been taken in. */
  readonly records: List<SessionRecord>
}

/** Responses that may still grow: of side agents at work together, say. */
const MOST_OPEN = 16

export function noMoney(): SessionMoney {
  return { settled: NO_TOTALS, recent: [], closed: Trie.empty(), records: List.of() }
}

/** The money once the log has come to `records`. Costs what is new. */
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

/** The call that a record tells of, if it does. */
function callIn(record: SessionRecord): BilledCall | null {
  if (!isKnown(record)) return null
  if (record.type !== 'assistant') return loggedCall(record)
  if (isSyntheticError(record)) return null
  const { id, model, usage } = record.message
  const source = record.isSidechain === true ? 'sidechain' : null
  return { id, model, source, at: record.timestamp, usage: usage ?? null }
}

// The figures of a bill: spent, saved by the cache, lost to breaks, spent on the engine's own acts.

/** Dollars. */
interface Amount {
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

/** The source of calls that write summaries, as `spentOnCompaction` counts them. */
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

/** `loss` as a log holds it. */
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
