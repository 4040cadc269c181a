/**
 * Keeps the prompt cache of an idle session from expiring, as policy `cache.idle` says. One timer for each session, which
 * does not keep the process alive; none if the policy is off.
 */
import {
  countPayingRenewals,
  findCacheExpiry,
  findRenewalLead,
  gatherPlanContext,
  hasReadyNotes,
  listPauses,
  makeContextPlan,
  renewCache,
} from '@tidemark/core'
import { type OpenSession, runOperation, trackWork } from './open-session.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

/** Starts to watch a session. Closing the session ends it. */
export function watchIdleCache(session: OpenSession): void {
  const { policy, clock } = session.settings
  if (policy.cache.idle === 'off') return
  const sleep = clock.sleepInBackground ?? clock.sleep
  let count = 0
  let timer: AbortController | null = null

  function schedule(): void {
    timer?.abort()
    const expiresAt = findCacheExpiry(session.state)
    if (expiresAt === null || session.closing !== null) return
    const own = new AbortController()
    timer = own
    const { ttlMs } = readPlanContext(session).cache
    const delay = expiresAt - findRenewalLead(ttlMs) - clock.now()
    if (delay <= 0) return
    void sleep(delay, AbortSignal.any([own.signal, session.stop.signal]))
      .then(() => (own.signal.aborted || session.closing !== null ? undefined : trackWork(session, renew)))
      // A clock or a session that fails leaves the cache to expire.
      .catch(() => {})
  }

  async function renew(): Promise<void> {
    const expiresAt = findCacheExpiry(session.state)
    const context = readPlanContext(session)
    const { rates, write, cache } = context
    // A request that was sent since has renewed the cache already.
    if (expiresAt !== null && expiresAt - clock.now() > findRenewalLead(cache.ttlMs)) return schedule()
    const plan = makeContextPlan(context)
    const host = createTurnHost(session)
    const needsSummary = plan.prepare && !hasReadyNotes(host, host.compaction)
    if (session.busyWith === null && session.prepared?.phase === 'none' && needsSummary) {
      // Writing the summary reads the cache, too.
      session.prepared.prepare()
      await session.prepared.settle()
      return schedule()
    }
    const most = countPayingRenewals({
      mode: policy.cache.idle,
      rates,
      write,
      ttlMs: cache.ttlMs,
      maximum: policy.cache.idleRequests,
      readPauses: () => listPauses(session.state.session),
    })
    if (count >= most) return
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

function readPlanContext(session: OpenSession) {
  const host = createTurnHost(session)
  return gatherPlanContext(session.state, host, host.compaction, 'turn-end').context
}
