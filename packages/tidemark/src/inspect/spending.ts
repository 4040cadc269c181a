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
import { type Call, loggedOutput } from './calls.ts'
import type { MoneySpent } from './report.ts'

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
