import { describe, expect, it } from 'vitest'
import { createCacheStore } from './prompt-cache.ts'

const NONE: ReadonlySet<string> = new Set()
const entry = { ttl: '5m', tokens: 10, writtenBy: 1, deleted: NONE } as const

describe('the cache', () => {
  it('keeps an entry for its lifetime, not to the millisecond after', () => {
    const store = createCacheStore()
    store.write('a', entry, 1_000)
    expect([300_999, 301_000].map((now) => store.read('a', now, NONE) !== null)).toEqual([true, false])
  })

  it('keeps a dead entry long enough to say that it died', () => {
    const store = createCacheStore()
    store.write('a', entry, 0)
    expect(store.peek('a')).toMatchObject({ expiresAt: 300_000 })
    expect(store.peek('b')).toBeNull()
  })

  it('does not wake the dead by using them', () => {
    const store = createCacheStore()
    store.write('a', entry, 0)
    store.refresh('a', 300_001)
    expect(store.read('a', 300_002, NONE)).toBeNull()
  })

  it('never shortens a life: a slow request that began earlier changes nothing', () => {
    const store = createCacheStore()
    store.write('a', entry, 100_000)
    store.write('a', entry, 0)
    expect(store.peek('a')?.expiresAt).toBe(400_000)
  })

  it('leaves the kind of lifetime to whoever wrote it, while it lives', () => {
    const store = createCacheStore()
    store.write('a', { ...entry, ttl: '1h' }, 0)
    store.write('a', entry, 1_000)
    expect(store.peek('a')).toMatchObject({ ttl: '1h', expiresAt: 3_601_000 })
    store.write('a', entry, 4_000_000)
    expect(store.peek('a')).toMatchObject({ ttl: '5m', expiresAt: 4_300_000 })
  })

  it('is read only by those who want at least as much deleted', () => {
    const store = createCacheStore()
    store.write('a', { ...entry, deleted: new Set(['x']) }, 0)
    const reads = [[], ['y'], ['x'], ['x', 'y']].map((wanted) => store.read('a', 1, new Set(wanted)) !== null)
    expect(reads).toEqual([false, false, true, true])
  })

  it('sweeps what has been dead for a day', () => {
    const store = createCacheStore()
    store.write('old', entry, 0)
    for (let index = 0; index < 2_000; index += 1) store.write(`new ${index % 3}`, entry, 100_000_000)
    expect(store.peek('old')).toBeNull()
    expect(store.size).toBe(3)
  })
})
