/** What one call cost, as far as its usage and the prices of its model tell. */

import { isObject } from '../log/json.ts'
import { isKnown, type SessionRecord, type Usage } from '../log/record.ts'
import { billedParts, type TokensByClass } from '../tokens/usage.ts'
import { type Money, NO_MONEY, type Prices, priceOf, priceUncached } from './prices.ts'

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
