/** The session's money kept live: each call is priced as soon as the log has it. */
import type { PriceList } from '../measure/call-price.ts'
import { advanceMoney, moneyTotals, noMoney } from '../measure/session-money.ts'
import type { SessionState } from './session-state.ts'
import type { TurnEvent } from './turn-event.ts'
import type { TurnRun } from './turn-run.ts'

/** With all that the log tells of money; for a session just opened this reads it all, later what is new. */
export function withMoney(state: SessionState, prices: PriceList): SessionState {
  const money = advanceMoney(state.money ?? noMoney(), state.session.records, prices)
  return { ...state, money }
}

/** Tells the price of the call that was answered by `response`, now that the log has it. */
export function* tellPrice(run: TurnRun, response: string): Generator<TurnEvent, void> {
  run.state = withMoney(run.state, run.host.pricesOf)
  const { money } = run.state
  const call = money?.recent.find(({ id }) => id === response)
  if (money !== null && call !== undefined) yield { type: 'priced', call, totals: moneyTotals(money) }
}
