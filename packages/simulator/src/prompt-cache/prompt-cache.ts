/**
 * The prompt cache. It stores a cache entry per breakpoint and determines what a request reads and writes. A read
 * refreshes cache entries at once. A write becomes visible when the response begins and `commit` is called.
 */

import type { CacheTtl } from '../protocol/cache-markers.ts'
import type { CacheKey } from './cache-key.ts'
import {
  type CacheBreakpoint,
  countPrefixTokens,
  findCacheLevel,
  type Prompt,
  type PromptTokenSplit,
  splitPromptTokens,
} from './prompt.ts'
import type { PromptTreeNode } from './prompt-tree.ts'

interface CacheRequest {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly minimum: number
  /** Start time of the request, from which cache entry lifetimes are counted. */
  readonly now: number
  /** Number of the request in the request log. */
  readonly request: number
  /** The `cache_reference` values of the tool results that the request deletes from the cached prefix. */
  readonly deleted?: ReadonlySet<string>
}

export type BreakpointFate = 'read' | 'refreshed' | 'written' | 'below-minimum'

interface BreakpointResult extends CacheBreakpoint {
  readonly tokens: number
  readonly fate: BreakpointFate
}

export interface CacheResult {
  /** The cache entry that is read; null if nothing is read. */
  readonly hit: CacheHit | null
  readonly split: PromptTokenSplit
  readonly breakpoints: readonly BreakpointResult[]
  /** Writes the cache entries of the request. Called when the response begins. */
  commit(): void
}

const NO_REFERENCES: ReadonlySet<string> = new Set()

/**
 * Finds the cache hit of a request, refreshes that entry and those at earlier breakpoints, and counts which
 * prompt tokens are read, written and uncached. Only `commit` of the result writes new entries.
 */
export function applyRequestToCache(store: CacheStore, cacheRequest: CacheRequest): CacheResult {
  const { prompt, key, minimum, now, request, deleted = NO_REFERENCES } = cacheRequest
  const hit = findCacheHit({ prompt, key, store, now, deleted })
  const breakpoints = prompt.breakpoints.map((breakpoint): BreakpointResult => {
    const tokens = countPrefixTokens(prompt, breakpoint.position)
    return { ...breakpoint, tokens, fate: status(breakpoint.position, tokens) }
  })

  function status(position: number, tokens: number): BreakpointFate {
    if (tokens < minimum) return 'below-minimum'
    if (hit?.position === position) return 'read'
    const isBeforeHit = hit !== null && position < hit.position
    const entry = isBeforeHit ? store.read(formatEntryKey(prompt, key, position), now, deleted) : null
    return entry === null ? 'written' : 'refreshed'
  }

  if (hit !== null) store.refresh(formatEntryKey(prompt, key, hit.position), now)
  for (const { position, fate } of breakpoints)
    if (fate === 'refreshed') store.refresh(formatEntryKey(prompt, key, position), now)

  return {
    hit,
    split: splitPromptTokens(prompt, hit?.position ?? null, minimum),
    breakpoints,
    commit() {
      for (const { position, ttl, tokens, fate } of breakpoints) {
        if (fate === 'below-minimum') continue
        store.write(formatEntryKey(prompt, key, position), { ttl, tokens, writtenBy: request, deleted }, now)
      }
    },
  }
}

/** Number of prompt positions that are searched for a cache entry, backwards from a breakpoint and including it. */
export const LOOK_BACK_POSITIONS = 20

interface CacheHit {
  readonly position: number
  /** Position of the breakpoint from which the search found the cache entry. */
  readonly from: number
}

interface HitSearchInput {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly store: CacheStore
  readonly now: number
  readonly deleted: ReadonlySet<string>
}

export function formatEntryKey(prompt: Prompt, key: CacheKey, position: number): string {
  return `${key.prefix[findCacheLevel(prompt, position)]}|${prompt.positions[position]?.chain}`
}

/**
 * Searches backwards for a readable cache entry, first from the last breakpoint, then from earlier breakpoints.
 * Returns null if no cache entry is found.
 */
function findCacheHit(look: HitSearchInput): CacheHit | null {
  const { prompt } = look
  for (const breakpoint of prompt.breakpoints.toReversed()) {
    if (!breakpoint.explicit) continue
    const position = searchBackwards(look, breakpoint.position)
    if (position !== null) return { position, from: breakpoint.position }
  }
  return null
}

function searchBackwards({ prompt, key, store, now, deleted }: HitSearchInput, from: number): number | null {
  let end = from
  for (let seen = 0; seen < LOOK_BACK_POSITIONS && end >= 0; seen += 1) {
    const start = findRunStart(prompt.positions, end)
    for (let position = end; position >= start; position -= 1)
      if (store.read(formatEntryKey(prompt, key, position), now, deleted) !== null) return position
    end = start - 1
  }
  return null
}

/** Counts the positions, as `LOOK_BACK_POSITIONS` counts them, that a search from `from` passes to reach `position`. */
export function countLookBackPositions({ positions }: Prompt, from: number, position: number): number {
  let passed = 0
  for (let start = findRunStart(positions, from); start > position; passed += 1)
    start = findRunStart(positions, start - 1)
  return passed
}

const RUN_TYPES = new Set(['tool_use', 'tool_result'])

/**
 * Returns the first position of the group that ends at `end`. Consecutive tool calls form one group, and so do
 * consecutive tool results. Any other block is its own group.
 */
function findRunStart(positions: readonly PromptTreeNode[], end: number): number {
  const last = positions[end]
  if (last === undefined || !RUN_TYPES.has(last.block.type)) return end
  const isSameRun = (other: PromptTreeNode | undefined): boolean =>
    other !== undefined && other.zone === last.zone && other.block.type === last.block.type
  let start = end
  while (isSameRun(positions[start - 1])) start -= 1
  return start
}

/** A cached prefix. Its lifetime is counted from the start of the request that last wrote or read it. */
interface CacheEntry {
  readonly ttl: CacheTtl
  /** Tokens of the cached prefix. */
  readonly tokens: number
  readonly expiresAt: number
  /** Number of the request that wrote this cache entry. */
  readonly writtenBy: number
  /**
   * The `cache_reference` values of tool results deleted from the cached prefix. A request can read the cache entry
   * only if it deletes these tool results too.
   */
  readonly deleted: ReadonlySet<string>
}

const TTL_MS: Readonly<Record<CacheTtl, number>> = { '5m': 300_000, '1h': 3_600_000 }

export interface CacheStore {
  /**
   * Returns the cache entry with this key; null if there is none or it has expired. Also null if the entry lacks a
   * deleted tool result that the request still has.
   */
  read(key: string, now: number, deleted: ReadonlySet<string>): CacheEntry | null
  /** Returns the cache entry with this key even if it has expired, to explain a cache miss; null if there is none. */
  peek(key: string): CacheEntry | null
  refresh(key: string, now: number): void
  /**
   * Writes a cache entry, whose lifetime is counted from `now`. If an unexpired entry has the same key, the TTL of
   * that entry is kept.
   */
  write(key: string, entry: Omit<CacheEntry, 'expiresAt'>, now: number): void
  readonly size: number
  clear(): void
}

/**
 * How long expired cache entries are stored. They show that a cache miss was caused by expiry and not by a changed
 * prefix.
 */
const EXPIRED_ENTRY_LIFETIME_MS = 24 * 3_600_000
const WRITES_PER_SWEEP = 1_024

export function createCacheStore(): CacheStore {
  const entries = new Map<string, CacheEntry>()
  let writes = 0

  function sweep(now: number): void {
    for (const [key, entry] of entries)
      if (entry.expiresAt + EXPIRED_ENTRY_LIFETIME_MS < now) entries.delete(key)
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
      if (writes % WRITES_PER_SWEEP === 0) sweep(now)
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
