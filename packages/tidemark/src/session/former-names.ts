/**
 * The price classes of cache writes under their former names, `write5m` and `write1h`, on what programs read of money.
 * They are not enumerable, so that JSON and comparisons have the present names only.
 */
import type { CostTotals } from '@tidemark/core/cost/session-cost'
import type { TurnEvent } from '@tidemark/core/engine/events'
import type { ByPriceClass } from '@tidemark/core/tokens/usage'

export function withFormerNames(totals: CostTotals): CostTotals {
  const { tokens, spent } = totals
  return { ...totals, tokens: addNames(tokens), spent: { ...spent, byClass: addNames(spent.byClass) } }
}

type PricedEvent = Extract<TurnEvent, { readonly type: 'priced' }>

export function withFormerEventNames({ call, totals, ...event }: PricedEvent): PricedEvent {
  const { tokens, money } = call
  const priced = { ...call, tokens: addNames(tokens), money: { ...money, byClass: addNames(money.byClass) } }
  return { ...event, call: priced, totals: withFormerNames(totals) }
}

function addNames<T>(classes: ByPriceClass<T>): ByPriceClass<T> {
  return Object.defineProperties(
    { ...classes },
    { write5m: { value: classes.writeShort }, write1h: { value: classes.writeLong } },
  )
}
