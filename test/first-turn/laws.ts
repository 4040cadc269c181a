/** Laws of every session with a prompt cache, whatever its length. */
import { sumSessionCost } from '@tidemark/core/cost/session-cost'
import { withSessionCosts } from '@tidemark/core/engine/call-model'
import { readSessionState } from '@tidemark/core/engine/session-state'
import { readReportedContextTokens } from '@tidemark/core/tokens/usage'
import { expect } from 'vitest'
import { type ObservedCall, SESSION, type SimulatedSession } from '../support/simulated-session.ts'

/** Indexes of the calls that rewrite the prefix or read other than forecast. */
export function offences(calls: readonly ObservedCall[]): {
  readonly rewritten: readonly number[]
  readonly misread: readonly (readonly [call: number, forecast: number, read: number])[]
} {
  const rewritten = calls.flatMap((call, at) => (call.isExtended || call.isDeclared ? [] : [at]))
  const misread = calls.flatMap(({ forecast, usage }, at) => {
    const read = usage.read
    return read === forecast.read ? [] : [[at, forecast.read, read] as const]
  })
  return { rewritten, misread }
}

/** The hit rate is within half a point of the best that an append-only prompt can have. */
export function expectHighRate(calls: readonly ObservedCall[]): void {
  const sum = (pick: (call: ObservedCall) => number): number =>
    calls.reduce((all, call) => all + pick(call), 0)
  const points = (tokens: number): number =>
    (100 * tokens) / sum(({ usage }) => readReportedContextTokens(usage))
  const hit = points(sum(({ usage }) => usage.read))
  expect(hit).toBeGreaterThan(points(sum(({ ceiling }) => ceiling)) - 0.5)
}

/** Reported cache breaks by call and reason, and the expected ones: a pause that outlives the cache, an own act. */
export function alarms(calls: readonly ObservedCall[]): {
  readonly told: readonly Alarm[]
  readonly due: readonly Alarm[]
} {
  const told = calls.flatMap(({ broke }, at): readonly Alarm[] =>
    broke === null ? [] : [[at, broke.reason.kind, broke.ours !== null]],
  )
  const due = calls.flatMap(({ forecast, isDeclared }, at): readonly Alarm[] => {
    if (forecast.why === 'expired') return [[at, 'expired', false]]
    return isDeclared ? [[at, 'tools-added', true]] : []
  })
  return { told, due }
}

type Alarm = readonly [call: number, reason: string, isOurs: boolean]

/** The engine's totals equal the simulator's bill to a billionth of a dollar, and the log alone gives the same. */
export async function expectMoney(session: SimulatedSession): Promise<void> {
  const { totals, billed, calls } = session
  const lost = calls.reduce((sum, { broke }) => sum + (broke?.moneyLost ?? 0), 0)
  expect(totals?.spent.total).toBeCloseTo(billed.total, 9)
  expect(totals?.savedByCache.total).toBeCloseTo(billed.saved, 9)
  expect(totals?.lostToBreaks.total).toBeCloseTo(lost, 9)
  expect([totals?.calls, totals?.unpricedCalls]).toEqual([calls.length, 0])
  const opened = withSessionCosts(
    await readSessionState(session.host.journal, SESSION),
    session.host.pricesOf,
  )
  expect(opened.costs === null ? null : sumSessionCost(opened.costs)).toEqual(totals)
}
