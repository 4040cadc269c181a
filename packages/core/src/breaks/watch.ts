/**
 * What is remembered between calls, for each query source: the last request that was answered and what it left in
 * the cache, the request under way, and what the engine has announced. A value; the number of sources is bounded.
 */
import type { BreaksPolicy } from '../policy/groups/cache-policy.ts'
import type { Counted } from '../prompt/count.ts'
import { type Announcement, isReset, type PricedAnnouncement } from './announcement.ts'
import type { CachedEntry } from './entries.ts'
import type { SentRequest } from './sent.ts'
import { matchesPattern, parentKey, watchKey } from './sources.ts'

export interface CacheWatch {
  /** By source; the one used last comes last. */
  readonly sources: ReadonlyMap<string, Watched>
}

export interface Watched {
  readonly last: Answered | null
  readonly pending: Pending | null
  /** Since the last request was sent. */
  readonly announced: readonly PricedAnnouncement[]
}

/** A request that was answered. */
export interface Answered {
  readonly sent: SentRequest
  /** Tokens it left in the cache. */
  readonly cached: number
  /** When it, or a fork of it, was last read. */
  readonly usedAt: number
  readonly entries: readonly CachedEntry[]
  readonly counted: Counted
}

/** A request under way. */
export interface Pending {
  readonly sent: SentRequest
  /** What it is compared with: as things stood when it was sent, whatever happens meanwhile. */
  readonly against: Answered | null
  readonly announced: readonly PricedAnnouncement[]
  /** The source began anew while it was under way, so it is nothing to compare the next one with. */
  readonly isOutdated: boolean
}

export const UNWATCHED: Watched = { last: null, pending: null, announced: [] }

export function emptyCacheWatch(): CacheWatch {
  return { sources: new Map() }
}

/**
 * Before a call: remembers the request as it is sent. A request that is sent again takes the place of the one
 * that was not answered. Models whose reads say nothing are not watched.
 */
export function takeSnapshot(watch: CacheWatch, sent: SentRequest, policy: BreaksPolicy): CacheWatch {
  const key = watchKey(sent.source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (policy.excludedModels.some((pattern) => matchesPattern(sent.parameters.model, pattern)))
    return own.pending === null ? watch : withWatched(watch, key, { ...own, pending: null })
  const parent = parentKey(sent.source, sent.forkOf)
  const of = parent === null ? own : (watch.sources.get(parent) ?? UNWATCHED)
  const against = of.last
  const announced = parent === null ? [...(own.pending?.announced ?? []), ...own.announced] : unsentEdits(of)
  const pending = { sent, against, announced, isOutdated: false }
  return bounded(withWatched(watch, key, { ...own, pending, announced: [] }), policy.sources)
}

/**
 * Deletions that a parent has not sent yet go out with a fork of it too, and stay announced for the parent. All else
 * is in what the parent sent, and was paid for there: what was announced to the fork's own name since is no news.
 */
function unsentEdits({ announced }: Watched): readonly PricedAnnouncement[] {
  return announced.filter(({ kind }) => kind === 'cache-edits')
}

/** What is about to be done to the next request of a source. */
export function announceAct(watch: CacheWatch, source: string, announcement: Announcement): CacheWatch {
  const key = watchKey(source)
  const own = watch.sources.get(key) ?? UNWATCHED
  if (!isReset(announcement))
    return withWatched(watch, key, { ...own, announced: [...own.announced, announcement] })
  const pending = own.pending === null ? null : { ...own.pending, isOutdated: true, announced: [] }
  return withWatched(watch, key, { last: null, pending, announced: [] })
}

/** As the one used last. */
export function withWatched(watch: CacheWatch, key: string, watched: Watched): CacheWatch {
  const sources = new Map(watch.sources)
  sources.delete(key)
  return { sources: sources.set(key, watched) }
}

function bounded(watch: CacheWatch, most: number): CacheWatch {
  if (watch.sources.size <= most) return watch
  return { sources: new Map([...watch.sources].slice(-most)) }
}
