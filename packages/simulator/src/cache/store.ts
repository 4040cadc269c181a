/**
 * The cache itself: entries that earlier requests wrote at their breakpoints. A lifetime counts from the
 * start of the request that wrote or last read the entry.
 */
import type { Ttl } from './markers.ts'

export interface CacheEntry {
  readonly ttl: Ttl
  /** Tokens of the prefix. */
  readonly tokens: number
  readonly expiresAt: number
  /** The request that wrote it, by its number. */
  readonly writtenBy: number
  /** References deleted from the prefix since (cached clearing); a reader must delete them too. */
  readonly deleted: ReadonlySet<string>
}

export const TTL_MS: Readonly<Record<Ttl, number>> = { '5m': 300_000, '1h': 3_600_000 }

export interface CacheStore {
  /** Null where there is none, none any more, or one with less in it than the reader wants. */
  read(key: string, now: number, deleted: ReadonlySet<string>): CacheEntry | null
  /** Dead or alive: to say why a request missed. */
  peek(key: string): CacheEntry | null
  refresh(key: string, now: number): void
  /** A live entry keeps its kind of lifetime, counted from now. */
  write(key: string, entry: Omit<CacheEntry, 'expiresAt'>, now: number): void
  readonly size: number
  clear(): void
}

/** Dead entries are kept for a while, so that an expiry can be told from a change. */
const KEPT_AFTER_DEATH_MS = 24 * 3_600_000
const SWEEP_EVERY = 1_024

export function createCacheStore(): CacheStore {
  const entries = new Map<string, CacheEntry>()
  let writes = 0

  function sweep(now: number): void {
    for (const [key, entry] of entries) if (entry.expiresAt + KEPT_AFTER_DEATH_MS < now) entries.delete(key)
  }

  function isLive(entry: CacheEntry | undefined, now: number): entry is CacheEntry {
    return entry !== undefined && now < entry.expiresAt
  }

  function refresh(key: string, now: number): void {
    const entry = entries.get(key)
    if (!isLive(entry, now)) return
    const expiresAt = Math.max(entry.expiresAt, now + TTL_MS[entry.ttl])
    entries.set(key, { ...entry, expiresAt })
  }

  return {
    get size() {
      return entries.size
    },
    read(key, now, deleted) {
      const entry = entries.get(key)
      return isLive(entry, now) && isSubset(entry.deleted, deleted) ? entry : null
    },
    peek: (key) => entries.get(key) ?? null,
    refresh,
    write(key, entry, now) {
      writes += 1
      if (writes % SWEEP_EVERY === 0) sweep(now)
      const there = entries.get(key)
      const ttl = isLive(there, now) ? there.ttl : entry.ttl
      const expiresAt = Math.max(there?.expiresAt ?? 0, now + TTL_MS[ttl])
      entries.set(key, { ...entry, ttl, expiresAt })
    },
    clear: () => entries.clear(),
  }
}

function isSubset(small: ReadonlySet<string>, large: ReadonlySet<string>): boolean {
  for (const item of small) if (!large.has(item)) return false
  return true
}
