/**
 * One request against the cache: what it reads, what it will have written, what that costs. Reading counts at
 * once; what it writes is there for others only when its response begins, which is when `commit` is called.
 */

import type { Ttl } from '../protocol/cache-markers.ts'
import type { CacheKey } from './cache-key.ts'
import { type Breakpoint, type CacheSplit, levelAt, type Prompt, splitOf, tokensAt } from './prompt.ts'
import type { PromptNode } from './prompt-tree.ts'

export interface Consultation {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly minimum: number
  /** The start of the request: lifetimes count from here. */
  readonly now: number
  readonly request: number
  /** References the request wants gone from the cached prefix. */
  readonly deleted?: ReadonlySet<string>
}

export type BreakpointFate = 'read' | 'refreshed' | 'written' | 'below-minimum'

export interface ConsultedBreakpoint extends Breakpoint {
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

export function consult(store: CacheStore, asked: Consultation): CacheOutcome {
  const { prompt, key, minimum, now, request, deleted = NOTHING } = asked
  const hit = findHit({ prompt, key, store, now, deleted })
  const breakpoints = prompt.breakpoints.map((breakpoint): ConsultedBreakpoint => {
    const tokens = tokensAt(prompt, breakpoint.position)
    return { ...breakpoint, tokens, fate: fateOf(breakpoint, tokens) }
  })

  function fateOf({ position }: Breakpoint, tokens: number): BreakpointFate {
    if (tokens < minimum) return 'below-minimum'
    if (hit?.position === position) return 'read'
    const there = hit !== null && position < hit.position
    return there && store.read(keyAt(prompt, key, position), now, deleted) !== null ? 'refreshed' : 'written'
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

// From a breakpoint back to an entry some earlier request wrote: at most 20 positions, itself the first.

export const LOOK_BACK = 20

export interface Hit {
  readonly position: number
  /** The breakpoint from which it was found, as a position. */
  readonly from: number
}

export interface LookUp {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly store: CacheStore
  readonly now: number
  readonly deleted: ReadonlySet<string>
}

export function keyAt(prompt: Prompt, key: CacheKey, position: number): string {
  return `${key.prefix[levelAt(prompt, position)]}|${prompt.positions[position]?.chain}`
}

/** The highest position that can be read, looking from the last breakpoint on backwards. */
export function findHit(look: LookUp): Hit | null {
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

/** Calls in a row are one position, and so are results in a row: the first of them. */
export function runStart(positions: readonly PromptNode[], end: number): number {
  const last = positions[end]
  if (last === undefined || !RUNS.has(last.block.type)) return end
  let start = end
  while (isSameRun(last, positions[start - 1])) start -= 1
  return start
}

function isSameRun(one: PromptNode, other: PromptNode | undefined): boolean {
  return other !== undefined && other.zone === one.zone && other.block.type === one.block.type
}

// The cache itself: entries that earlier requests wrote at their breakpoints. A lifetime counts from the
// start of the request that wrote or last read the entry.

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
