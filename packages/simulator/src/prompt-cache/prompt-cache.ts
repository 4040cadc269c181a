/**
 * The prompt cache: entries that requests wrote at their breakpoints, and what a request reads and writes. A read
 * extends lifetimes at once. A write becomes visible when the response begins, which is when `commit` is called.
 */

import type { Ttl } from '../protocol/cache-markers.ts'
import type { CacheKey } from './cache-key.ts'
import { type Breakpoint, type CacheSplit, levelAt, type Prompt, splitOf, tokensAt } from './prompt.ts'
import type { PromptNode } from './prompt-tree.ts'

interface Consultation {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly minimum: number
  /** Start of the request, from which lifetimes are counted. */
  readonly now: number
  /** Number of the request in the request log. */
  readonly request: number
  /** `cache_reference`s that the request deletes from the cached prefix. */
  readonly deleted?: ReadonlySet<string>
}

export type BreakpointFate = 'read' | 'refreshed' | 'written' | 'below-minimum'

interface ConsultedBreakpoint extends Breakpoint {
  readonly tokens: number
  readonly fate: BreakpointFate
}

export interface CacheOutcome {
  readonly hit: Hit | null
  readonly split: CacheSplit
  readonly breakpoints: readonly ConsultedBreakpoint[]
  commit(): void
}

const NOTHING: ReadonlySet<string> = new Set()

/** Finds the hit, refreshes the entries that were read, and computes the billing split. */
export function consult(store: CacheStore, cacheRequest: Consultation): CacheOutcome {
  const { prompt, key, minimum, now, request, deleted = NOTHING } = cacheRequest
  const hit = findHit({ prompt, key, store, now, deleted })
  const breakpoints = prompt.breakpoints.map((breakpoint): ConsultedBreakpoint => {
    const tokens = tokensAt(prompt, breakpoint.position)
    return { ...breakpoint, tokens, fate: status(breakpoint.position, tokens) }
  })

  function status(position: number, tokens: number): BreakpointFate {
    if (tokens < minimum) return 'below-minimum'
    if (hit?.position === position) return 'read'
    const isBeforeHit = hit !== null && position < hit.position
    const entry = isBeforeHit ? store.read(keyAt(prompt, key, position), now, deleted) : null
    return entry === null ? 'written' : 'refreshed'
  }

  if (hit !== null) store.refresh(keyAt(prompt, key, hit.position), now)
  for (const { position, fate } of breakpoints)
    if (fate === 'refreshed') store.refresh(keyAt(prompt, key, position), now)

  return {
    hit,
    split: splitOf(prompt, hit?.position ?? null, minimum),
    breakpoints,
    commit() {
      for (const { position, ttl, tokens, fate } of breakpoints) {
        if (fate === 'below-minimum') continue
        store.write(keyAt(prompt, key, position), { ttl, tokens, writtenBy: request, deleted }, now)
      }
    },
  }
}

/** Positions that are searched for an entry from a breakpoint backwards, the breakpoint included. */
export const LOOK_BACK = 20

interface Hit {
  readonly position: number
  /** Position of the breakpoint from which the entry was found. */
  readonly from: number
}

interface LookUp {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly store: CacheStore
  readonly now: number
  readonly deleted: ReadonlySet<string>
}

export function keyAt(prompt: Prompt, key: CacheKey, position: number): string {
  return `${key.prefix[levelAt(prompt, position)]}|${prompt.positions[position]?.chain}`
}

/** The last position with a readable entry, searching backwards from the last breakpoint, then from those before it. */
function findHit(look: LookUp): Hit | null {
  const { prompt } = look
  for (const breakpoint of prompt.breakpoints.toReversed()) {
    if (!breakpoint.explicit) continue
    const position = lookBack(look, breakpoint.position)
    if (position !== null) return { position, from: breakpoint.position }
  }
  return null
}

function lookBack({ prompt, key, store, now, deleted }: LookUp, from: number): number | null {
  let end = from
  for (let seen = 0; seen < LOOK_BACK && end >= 0; seen += 1) {
    const start = runStart(prompt.positions, end)
    for (let position = end; position >= start; position -= 1)
      if (store.read(keyAt(prompt, key, position), now, deleted) !== null) return position
    end = start - 1
  }
  return null
}

const RUNS = new Set(['tool_use', 'tool_result'])

/** Consecutive tool calls count as one position, and so do consecutive tool results: the first of them. */
function runStart(positions: readonly PromptNode[], end: number): number {
  const last = positions[end]
  if (last === undefined || !RUNS.has(last.block.type)) return end
  const isSameRun = (other: PromptNode | undefined): boolean =>
    other !== undefined && other.zone === last.zone && other.block.type === last.block.type
  let start = end
  while (isSameRun(positions[start - 1])) start -= 1
  return start
}

/** A cached prefix. Its lifetime counts from the start of the request that wrote it or last read it. */
interface CacheEntry {
  readonly ttl: Ttl
  /** Tokens of the prefix. */
  readonly tokens: number
  readonly expiresAt: number
  /** Number of the request that wrote it. */
  readonly writtenBy: number
  /** `cache_reference`s deleted from the prefix. Only requests that delete them too can read the entry. */
  readonly deleted: ReadonlySet<string>
}

const TTL_MS: Readonly<Record<Ttl, number>> = { '5m': 300_000, '1h': 3_600_000 }

export interface CacheStore {
  /** Null if there is no entry, it has expired, or more was deleted from it than the request deletes. */
  read(key: string, now: number, deleted: ReadonlySet<string>): CacheEntry | null
  /** The entry even if it has expired, to explain a cache miss. */
  peek(key: string): CacheEntry | null
  refresh(key: string, now: number): void
  /** An entry that has not expired keeps its TTL, counted from `now`. */
  write(key: string, entry: Omit<CacheEntry, 'expiresAt'>, now: number): void
  readonly size: number
  clear(): void
}

/** Expired entries are kept for a while, so that an expired entry can be distinguished from a changed prefix. */
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
      const previous = entries.get(key)
      const ttl = isLive(previous, now) ? previous.ttl : entry.ttl
      const expiresAt = Math.max(previous?.expiresAt ?? 0, now + TTL_MS[ttl])
      entries.set(key, { ...entry, ttl, expiresAt })
    },
    clear: () => entries.clear(),
  }
}

function isSubset(small: ReadonlySet<string>, large: ReadonlySet<string>): boolean {
  for (const item of small) if (!large.has(item)) return false
  return true
}
