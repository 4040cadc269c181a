import type { AgentReport } from './report.ts'
import { dollars, type PricedCall, sumMoney } from './spending.ts'
import { addUsage, NO_USAGE, usageOf } from './usage-totals.ts'

/** The side agents of a session, in the order of their first calls. */
export function agentReports(priced: readonly PricedCall[]): readonly AgentReport[] {
  const byAgent = Map.groupBy(priced, ({ call }) => call.agent)
  return [...byAgent].flatMap(([id, calls]) => {
    if (id === null) return []
    const usage = calls.reduce((sum, { call }) => addUsage(sum, usageOf(call.usage)), NO_USAGE)
    return [{ id, apiCalls: calls.length, usage, costUsd: dollars(sumMoney(calls).total) }]
  })
}
