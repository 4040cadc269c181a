/**
 * Keeps the prompt cache of an idle session from expiring, if policy `cache.idle` allows it. Each session has one
 * timer, which does not keep the process alive; none if the policy is off.
 */
import {
  countPayingRenewals,
  findCacheExpiry,
  findRenewalTime,
  isSummaryCheaperThanPause,
  listPauses,
  type RenewalInput,
  renewCache,
} from '@tidemark/core/background/idle-cache'
import { PREPARED_COMPACTION_OPTIONS } from '@tidemark/core/background/prepare-summary'
import { hasUsableNotes } from '@tidemark/core/compaction/compact'
import { planCompaction } from '@tidemark/core/compaction/plan-compaction'
import { gatherContextPlanInput } from '@tidemark/core/engine/measure-context'
import { type ContextPlan, makeContextPlan } from '@tidemark/core/planner/context-plan'
import { type OpenSession, runOperation, trackWork } from './open-session.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

/**
 * Until the session is closed: sends a request that reads the prompt cache of an idle session before it expires, while
 * that costs less than writing the cache again; or prepares a summary that is due, which reads the cache as well. After
 * a failure the cache expires.
 */
export function keepIdleCacheAlive(session: OpenSession): void {
  const { policy, clock } = session.settings
  if (policy.cache.idle === 'off') return
  const sleep = clock.sleepInBackground ?? clock.sleep
  let count = 0
  let timer: AbortController | null = null

  function schedule(): void {
    timer?.abort()
    const renewAt = findRenewalTime(session.state)
    if (renewAt === null || session.closing !== null) return
    const own = new AbortController()
    timer = own
    const delay = renewAt - clock.now()
    if (delay <= 0) return
    void sleep(delay, AbortSignal.any([own.signal, session.stop.signal]))
      .then(() => (own.signal.aborted || session.closing !== null ? undefined : trackWork(session, renew)))
      // If the clock or the session fails, the cache expires.
      .catch(() => {})
  }

  /** Returns false if the cache needs no renewal, because a request that was sent since has renewed it already. */
  function isDue(): boolean {
    return clock.now() >= (findRenewalTime(session.state) ?? 0)
  }

  async function renew(): Promise<void> {
    if (!isDue()) return schedule()
    const context = readPlanContext(session)
    const renewals: RenewalInput = {
      mode: policy.cache.idle,
      rates: context.rates,
      write: context.write,
      ttlMs: context.cache.ttlMs,
      maximum: policy.cache.idleRequests,
      readPauses: () => listPauses(session.state.session),
    }
    // Writing a summary also reads, and so renews, the cache. If no summary was written, the cache was not renewed.
    if (startCheaperSummary(session, makeContextPlan(context), renewals)) {
      await session.prepared?.settle()
      if (!isDue()) return schedule()
    }
    // The cache may have expired during the wait, for example while the machine was suspended.
    if ((findCacheExpiry(session.state) ?? 0) <= clock.now()) return
    if (count >= countPayingRenewals(renewals)) return
    count += 1
    const run = createTurnContext(session, { signals: [] })
    const kept = await runOperation(session, renewCache(run, count))
    if (kept?.isRead === true) schedule()
  }

  session.listeners.on('answered', () => {
    count = 0
    schedule()
  })
}

/**
 * Starts to prepare a summary if one is due and costs no more than the pause would cost otherwise. Returns true if it was
 * started.
 */
function startCheaperSummary(
  session: OpenSession,
  { prepare }: ContextPlan,
  renewals: RenewalInput,
): boolean {
  const { prepared, state } = session
  const host = createTurnHost(session)
  if (!prepare || session.busyWith !== null || prepared?.phase !== 'none') return false
  if (hasUsableNotes(state, host)) return false
  const plan = planCompaction(state, PREPARED_COMPACTION_OPTIONS, host)
  if (!plan.ok) return false
  const summary = { price: plan.price?.cost ?? null, tokens: plan.before.expected }
  return isSummaryCheaperThanPause(renewals, summary) && prepared.prepare()
}

function readPlanContext(session: OpenSession) {
  const host = createTurnHost(session)
  return gatherContextPlanInput(session.state, host, 'turn-end').context
}
