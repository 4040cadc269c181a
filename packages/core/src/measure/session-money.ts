/**
 * The money of a session: a fold of its log and of nothing else, so that a session opened again knows what it
 * has cost. Every call counts, those of branches that were left and of side agents too: they were paid for.
 */
import { isObject } from '../conversation/json.ts'
import { List } from '../conversation/list.ts'
import { isKnown, isSyntheticError, type SessionRecord } from '../conversation/record.ts'
import { Trie } from '../conversation/trie.ts'
import { type BilledCall, type PricedCall, type PriceList, priceCall } from './call-price.ts'
import { loggedCall } from './logged-call.ts'
import { type MoneyTotals, NO_TOTALS, withCall, withLoss } from './money-totals.ts'

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
