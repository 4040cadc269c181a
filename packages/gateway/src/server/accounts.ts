/** Reserves and settles the calls of this process. Costs that the database could not take are stored when it is back. */
import { setTimeout } from 'node:timers/promises'
import type { Database } from '../database/database.ts'
import type { GatewayKey } from '../keys/keys.ts'
import type { Metrics } from '../operation/metrics.ts'
import {
  recordProcessAlive,
  releaseLostReservations,
  reserveCall,
  type SpendingAfterCall,
  settleCall,
} from '../spending/budget.ts'
import type { CallCost } from '../spending/call-price.ts'
import type { CallAccounts } from '../spending/metered-send.ts'

export interface ProcessAccounts extends CallAccounts {
  /** Waits until pending costs are stored, at most `ms` milliseconds, and removes the process from the list of those alive. */
  close(ms: number): Promise<void>
}

interface AccountsOptions {
  readonly database: Database
  /** Id of this process. */
  readonly process: string
  readonly metrics: Metrics
  /** Called once per period, when the spending of a key reaches the warning share of its budget. */
  readonly onWarning: (key: GatewayKey, spent: number) => void
}

/** Milliseconds between two entries that show that this process is alive. */
const BEAT_MS = 10_000
const RETRY_MS = { first: 100, most: 5_000 }

/** Records the process as alive, now and every ten seconds until `close`. Rejects if the database does not answer. */
export async function openAccounts(options: AccountsOptions): Promise<ProcessAccounts> {
  const { database, process, metrics } = options
  await recordProcessAlive(database, process)
  /** Ids of the calls that are reserved and not settled. */
  const open = new Set<string>()
  const beat = setInterval(() => {
    recordProcessAlive(database, process)
      .then(() => releaseLostReservations(database, process, open))
      .catch(() => {})
  }, BEAT_MS)
  const unsettled = new Set<Promise<void>>()
  let isClosed = false

  async function settleLater(key: GatewayKey, id: string, cost: CallCost): Promise<void> {
    for (let wait = RETRY_MS.first; !isClosed; wait = Math.min(2 * wait, RETRY_MS.most)) {
      await setTimeout(wait)
      metrics.count('tidemark_gateway_settle_retries_total')
      const end = await settleCall(database, id, cost).catch(() => undefined)
      if (end === undefined) continue
      open.delete(id)
      return note(options, key, end)
    }
  }
  return {
    async reserve(key, amount, model) {
      const held = await reserveCall(database, key, { amount, model, process })
      if (held !== null) open.add(held.id)
      return held
    },
    async settle(key, { id }, cost) {
      countCost(metrics, cost)
      try {
        note(options, key, await settleCall(database, id, cost))
        open.delete(id)
      } catch {
        const later: Promise<void> = settleLater(key, id, cost).finally(() => unsettled.delete(later))
        unsettled.add(later)
      }
    },
    onRefused: (_key, reason) => metrics.count('tidemark_gateway_refusals_total', { reason }),
    async close(ms) {
      clearInterval(beat)
      await Promise.race([Promise.all(unsettled), setTimeout(ms, undefined, { ref: false })])
      isClosed = true
      await database.query('delete from gateway_processes where id = $1', [process]).catch(() => {})
    },
  }
}

function note({ metrics, onWarning }: AccountsOptions, key: GatewayKey, end: SpendingAfterCall | null): void {
  if (end?.isWarning !== true) return
  metrics.count('tidemark_gateway_budget_warnings_total')
  onWarning(key, end.spent)
}

function countCost(metrics: Metrics, { cost, input, cacheRead, cacheWrite, output }: CallCost): void {
  metrics.count('tidemark_gateway_calls_total')
  metrics.count('tidemark_gateway_dollars_total', {}, cost)
  for (const [name, tokens] of Object.entries({ input, cacheRead, cacheWrite, output }))
    metrics.count('tidemark_gateway_tokens_total', { class: name }, tokens)
}
