/** What the calls of a session cost: each at the prices of its model and day, added up by class, day and model. */
import {
  addMoney,
  iterationsOf,
  type Money,
  NO_MONEY,
  type PriceClass,
  type Prices,
  priceOf,
  priceUncached,
  type TokensByClass,
  type Usage,
} from '@tidemark/core'
import { type Catalogue, type LogFormat, lookUpModel, pricesOn } from '@tidemark/wire'
import { addTokens, billedTokens } from './billed-tokens.ts'
import { type Call, loggedOutput } from './calls.ts'
import type { MoneySpent } from './report.ts'

export interface PricedCall {
  readonly call: Call
  readonly money: Money
  /** What it would have cost without a cache. */
  readonly uncached: number | null
  readonly tokens: TokensByClass
  readonly isOutputEstimated: boolean
}

export interface Pricing {
  readonly catalogue: Catalogue
  readonly format: LogFormat
  /** What the blocks of a response come to. */
  readonly estimate: (call: Call) => number
}

const UNPRICED: Prices = { input: null, cacheRead: null, write5m: null, write1h: null, output: null }
const NO_USAGE_LOGGED = 'calls whose usage the log does not have'

export function priceCall(call: Call, pricing: Pricing): PricedCall {
  if (call.usage === null) return withoutUsage(call)
  const { usage, isOutputEstimated } = outputMended(call, call.usage, pricing)
  const pricesFor = (model: string): Prices | null => pricesOf(pricing.catalogue, model, call.at)
  const prices = pricesFor(call.model) ?? UNPRICED
  const money = named(priceOf(usage, prices, pricesFor), prices === UNPRICED ? call.model : null)
  const tokens = billedTokens(usage)
  const { total: uncached } = priceUncached(usage, prices, pricesFor)
  return { call, money, tokens, isOutputEstimated, uncached }
}

function pricesOf(catalogue: Catalogue, model: string, at: string): Prices | null {
  const found = lookUpModel(catalogue, model)
  return found.found ? pricesOn(found.model, at) : null
}

/** "no price for output" helps nobody where it is the model that is not known. */
function named(money: Money, unknownModel: string | null): Money {
  return unknownModel === null || money.missing.length === 0
    ? money
    : { ...money, missing: [`prices of ${unknownModel}`] }
}

function withoutUsage(call: Call): PricedCall {
  const money = { ...NO_MONEY, total: null, missing: [NO_USAGE_LOGGED] }
  return { call, money, tokens: NO_TOKENS, isOutputEstimated: false, uncached: null }
}

const NO_TOKENS: TokensByClass = { input: 0, cacheRead: 0, write5m: 0, write1h: 0, output: 0 }

/**
 * Claude Code often logs the output as it stood when the stream began. Where it is less than half of what the
 * blocks themselves come to, the blocks are believed. Runs that the provider lists are its final word.
 */
function outputMended(
  call: Call,
  usage: Usage,
  { estimate, format }: Pricing,
): { readonly usage: Usage; readonly isOutputEstimated: boolean } {
  const isFinal = format !== 'claude-code' || iterationsOf(usage).length > 0
  const estimated = isFinal ? 0 : estimate(call)
  if (loggedOutput(usage) * 2 >= estimated) return { usage, isOutputEstimated: false }
  return { usage: { ...usage, output_tokens: estimated }, isOutputEstimated: true }
}

export function moneySpent(calls: readonly PricedCall[]): MoneySpent {
  const money = sumMoney(calls)
  const uncached = calls.reduce<number | null>((sum, call) => plus(sum, call.uncached), 0)
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
    savedByCache: money.total === null || uncached === null ? null : dollars(uncached - money.total),
    missing: money.missing,
    assumed: money.assumed,
  }
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
