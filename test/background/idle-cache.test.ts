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
    expect(kept[0]?.savedPrice).toBeGreaterThan(kept[0]?.price ?? Number.NaN)
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
    const { input = 0, write5m = 0, cacheRead = 0 } = priced?.call.money.byClass ?? {}
    const paid = (input ?? 0) + (write5m ?? 0) + (cacheRead ?? 0)
    expect(Math.abs((cost?.price ?? 0) / paid - 1)).toBeLessThan(0.1)
    expect(cost?.warmPrice).toBeLessThan((cost?.price ?? 0) / 5)
    expect(cost?.sentence).toMatch(
      /^The prompt cache has expired after 20 min \d+ s: [\d,]+ tokens are processed again\. This request costs \$[\d.]+ instead of \$[\d.]+\.$/,
    )
  })

  it('next tells it before it returns the request', async () => {
    const long = await openIdle('off')
    await long.wait(20 * MINUTE)
    await long.session.append(user('Go on.'))
    expect(await long.session.next()).toMatchObject({ ok: true })
    expect(long.list('resume-cost')).toHaveLength(1)
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
