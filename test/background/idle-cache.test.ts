/** The prompt cache of a session that pauses: kept alive where that pays, and what the next request costs where not. */
import { user } from 'tidemark'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../packages/tidemark/src/platform/node-ports.ts'
import { type LongSessionOptions, openLongSession } from './long-session.ts'

const MINUTE = 60_000

/** A session with some thousand cached tokens whose last turn has ended. */
async function openIdle(idle: 'off' | 'keep-alive' | 'auto', options: LongSessionOptions = {}) {
  const long = await openLongSession({
    window: 200_000,
    turns: 6,
    resultTokens: 2_000,
    ...options,
    policy: { cache: { idle, ttl: '5m' }, ...options.policy },
  })
  await long.work()
  return long
}

const BLOCKING_HOOK = { name: 'guard', run: async () => ({ block: 'not now' }) }

/**
 * A session at rest above the warning threshold. With `byAnswer` the last answer has reached it, so that no summary was
 * begun yet; otherwise a tool result has, and one was begun in the turn. `pauses`: those after the first turns.
 */
async function openAboveWarning(
  idle: 'keep-alive' | 'auto',
  options: {
    readonly byAnswer: boolean
    readonly given?: NonNullable<LongSessionOptions['given']>
    readonly pauses?: readonly number[]
  },
) {
  const { given = {}, byAnswer, pauses = [] } = options
  const policy = { cache: { idle, ttl: '5m' as const } }
  const sizes = byAnswer ? { resultTokens: 100, textTokens: 9_900 } : { resultTokens: 6_000 }
  const long = await openLongSession({ window: 200_000, turns: 2, ...sizes, given, policy })
  const isBelow = (): boolean => {
    const { high, lines } = long.session.contextRemaining()
    return (high ?? 0) < (lines?.warning ?? Number.NaN)
  }
  for (let turn = 0; isBelow(); turn += 1) {
    if (turn > 0) await long.wait(pauses[turn - 1] ?? 0)
    await long.work()
  }
  expect(long.list('summary-preparing').length > 0).toBe(!byAnswer)
  return long
}

describe('keeping the cache of an idle session alive', () => {
  it('renews it before it expires, tells what that cost, and that it was read', async () => {
    const long = await openIdle('keep-alive')
    const calls = long.session.money().calls
    await long.wait(12 * MINUTE)
    const kept = long.list('cache-kept-warm')
    expect(kept.map(({ count, isRead }) => [count, isRead])).toEqual([
      [1, true],
      [2, true],
    ])
    expect(kept[0]?.price).toBeGreaterThan(0)
    expect(kept[0]?.rewritePrice).toBeGreaterThan(kept[0]?.price ?? Number.NaN)
    // Writing the cache again is saved once, not with each request, and no event says otherwise.
    expect(kept[1]?.rewritePrice).toBe(kept[0]?.rewritePrice)
    expect(kept[0]).not.toHaveProperty('savedPrice')
    expect(kept[0]?.tokensRead).toBeGreaterThan(2_000)
    // It is paid for like any other call, and nothing of it is in the conversation.
    expect(long.session.money().calls).toBe(calls + 2)
    expect(JSON.stringify(long.session.messages())).not.toContain('single word')
    await long.work()
    expect([long.list('resume-cost').length, long.list('cache-break').length]).toEqual([0, 0])
  })

  it('ends where writing the cache again would cost no more', async () => {
    const long = await openIdle('keep-alive', { policy: { cache: { idle: 'keep-alive', ttl: '5m' } } })
    await long.wait(300 * MINUTE)
    // A read costs a tenth, a write 1.25: eleven reads cost less than the difference, twelve do not.
    expect(long.list('cache-kept-warm')).toHaveLength(11)
  })

  it('sends at most as many requests as policy says, and begins anew after the next response', async () => {
    const long = await openIdle('keep-alive', {
      policy: { cache: { idle: 'keep-alive', idleRequests: 2, ttl: '5m' } },
    })
    await long.wait(60 * MINUTE)
    expect(long.list('cache-kept-warm')).toHaveLength(2)
    await long.work()
    await long.wait(60 * MINUTE)
    expect(long.list('cache-kept-warm').map(({ count }) => count)).toEqual([1, 2, 1, 2])
  })

  it.each([
    ['in the last turn', false],
    ['in the pause', true],
  ])('goes on renewing it where a summary is due, but a hook blocked it %s', async (_, byAnswer) => {
    const given = { hooks: { preCompact: [BLOCKING_HOOK] } }
    const long = await openAboveWarning('keep-alive', { given, byAnswer })
    await long.wait(12 * MINUTE)
    expect(long.list('summary-dropped')).toMatchObject([{ why: 'blocked' }])
    expect(long.list('cache-kept-warm').map(({ count, isRead }) => [count, isRead])).toEqual([
      [1, true],
      [2, true],
    ])
  })

  it.each([
    ['by keep-alive: writing the cache again would cost more', 'keep-alive', [], 1],
    ['not by auto before the pauses of the session have shown that it pays', 'auto', [], 0],
    ['not by auto after short pauses, where a renewal costs less', 'auto', [8, 8, 8], 0],
    ['by auto after long pauses', 'auto', [40, 40, 40], 1],
  ] as const)(
    'a summary that is due is written before the cache expires, %s',
    async (_, idle, minutes, written) => {
      const pauses = minutes.map((each) => each * MINUTE)
      const long = await openAboveWarning(idle, { byAnswer: true, pauses })
      await long.wait(8 * MINUTE)
      expect(long.list('summary-prepared')).toHaveLength(written)
      expect(long.list('fork').filter(({ fork }) => (fork.share ?? 0) < 0.9)).toEqual([])
    },
  )

  it('auto sends nothing until the pauses of the session have shown that it pays', async () => {
    const long = await openIdle('auto')
    for (let pause = 0; pause < 4; pause += 1) {
      await long.wait(8 * MINUTE)
      await long.work()
    }
    const [first] = long.list('cache-kept-warm')
    expect(long.list('resume-cost')).toHaveLength(3)
    expect(first).toMatchObject({ count: 1, isRead: true })
  })

  it('is off by default, and ends with the session', async () => {
    const off = await openLongSession({ turns: 1 })
    await off.work()
    await off.wait(30 * MINUTE)
    expect(off.list('cache-kept-warm')).toEqual([])
    const long = await openIdle('keep-alive')
    await long.pass(long.session.close())
    await long.wait(30 * MINUTE)
    expect(long.list('cache-kept-warm')).toEqual([])
  })

  it('does not keep the process alive', async () => {
    const stop = new AbortController()
    const before = process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const sleeping = systemClock.sleepInBackground?.(100_000, stop.signal)
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout')).toHaveLength(before)
    stop.abort()
    await sleeping
  })
})

describe('after the cache has expired', () => {
  it('a turn tells what its first request will cost before it is sent', async () => {
    const long = await openIdle('off')
    await long.wait(20 * MINUTE)
    await long.work()
    const [cost, ...more] = long.list('resume-cost')
    expect(more).toEqual([])
    const place = (type: string, from = 0): number =>
      long.events.findIndex((event, at) => at >= from && event.type === type)
    const told = place('resume-cost')
    expect(place('request-sent', told)).toBeGreaterThan(told)
    const priced = long
      .list('priced')
      .find((_, index) => index === long.events.slice(0, told).filter(({ type }) => type === 'priced').length)
    const { input = 0, writeShort = 0, cacheRead = 0 } = priced?.call.money.byClass ?? {}
    const paid = (input ?? 0) + (writeShort ?? 0) + (cacheRead ?? 0)
    expect(Math.abs((cost?.price ?? 0) / paid - 1)).toBeLessThan(0.1)
    expect(cost?.warmPrice).toBeLessThan((cost?.price ?? 0) / 5)
    expect(cost?.sentence).toMatch(
      /^The prompt cache has expired after 20 min: [\d,]+ tokens are processed again\. This request costs \$[\d.]+ instead of \$[\d.]+\.$/,
    )
  })

  it('nothing is told if a compaction has changed the context meanwhile: it is processed again anyway', async () => {
    const long = await openIdle('off')
    await long.wait(20 * MINUTE)
    await long.pass(long.session.compact())
    await long.work()
    expect(long.list('resume-cost')).toEqual([])
  })

  it('next tells it before it returns the request', async () => {
    const long = await openIdle('off')
    await long.wait(20 * MINUTE)
    await long.session.append(user('Go on.'))
    expect(await long.session.next()).toMatchObject({ ok: true })
    expect(long.list('resume-cost')).toHaveLength(1)
  })

  it('nothing is told after a compaction, which has changed what the cache had', async () => {
    const long = await openIdle('off')
    await long.wait(20 * MINUTE)
    expect(await long.session.compact({ summarizer: 'local' })).toMatchObject({ ok: true })
    await long.work()
    expect(long.list('resume-cost')).toEqual([])
  })

  it('nothing is told while the cache lives', async () => {
    const long = await openIdle('off')
    await long.wait(2 * MINUTE)
    await long.work()
    expect(long.list('resume-cost')).toEqual([])
  })

  it('a session that is opened again tells it, too', async () => {
    const long = await openIdle('off')
    await long.pass(long.session.close())
    const later = await openLongSession({ window: 200_000, store: long.store })
    await later.wait(60 * MINUTE)
    await later.work()
    expect(later.list('resume-cost')).toHaveLength(1)
  })
})
