/**
 * Adds the former names of the cache-write classes, `write5m` and `write1h`, to costs that programs read. They are not
 * enumerable, so JSON and comparisons contain only the present names.
 */
import type { CostTotals } from '@tidemark/core/cost/session-cost'
import type { TurnEvent } from '@tidemark/core/engine/events'
import type { ByPriceClass } from '@tidemark/core/tokens/usage'

export function withFormerPriceNames(totals: CostTotals): CostTotals {
  const { tokens, spent } = totals
  return { ...totals, tokens: addNames(tokens), spent: { ...spent, byClass: addNames(spent.byClass) } }
}

type PricedEvent = Extract<TurnEvent, { readonly type: 'priced' }>

export function withFormerPriceNamesInEvent({ call, totals, ...event }: PricedEvent): PricedEvent {
  const { tokens, money } = call
  const priced = { ...call, tokens: addNames(tokens), money: { ...money, byClass: addNames(money.byClass) } }
  return { ...event, call: priced, totals: withFormerPriceNames(totals) }
}

function addNames<T>(classes: ByPriceClass<T>): ByPriceClass<T> {
  return Object.defineProperties(
    { ...classes },
    { write5m: { value: classes.writeShort }, write1h: { value: classes.writeLong } },
  )
}
