/**
 * Whether an hour's cache pays, by the session's own gaps. A longer life costs more to write, every time; it
 * saves writing the whole prefix again after each gap that outlasts the shorter one. With r, s and l the prices
 * of reading, of a short write and of a long one, over the calls seen so far:
 *
 *   an hour pays where   lapsed · (s − r)  >  (added + lost) · (l − s)
 *
 * `lapsed` are the prefixes met again after a gap that only the longer life outlasts, `lost` those after a gap
 * that outlasts both, `added` what each call wrote besides.
 */
import type { Rates } from '../measure/prices.ts'
import type { CacheRules, CacheTtl } from '../policy/profile.ts'

/** Running sums in tokens; the cost of a call does not depend on how many there were. */
export interface GapTally {
  readonly calls: number
  readonly added: number
  readonly lapsed: number
  readonly lost: number
}

export const NO_GAPS: GapTally = { calls: 0, added: 0, lapsed: 0, lost: 0 }

export interface TimedCall {
  /** From the start of the call before to the start of this one; a lifetime counts from there. Null for the first. */
  readonly gapMs: number | null
  /** Tokens that the call before left in the cache, or would have. */
  readonly prefix: number
  /** Tokens of this call that were not in it. */
  readonly added: number
}

export function tallyGap(tally: GapTally, call: TimedCall, cache: CacheRules): GapTally {
  const { long, short } = lifetimes(cache)
  const gap = call.gapMs ?? 0
  const outlasts = (ttl: CacheTtl): boolean => gap < ttl.seconds * 1000
  const isLapsed = !outlasts(short) && outlasts(long)
  return {
    calls: tally.calls + 1,
    added: tally.added + call.added,
    lapsed: tally.lapsed + (isLapsed ? call.prefix : 0),
    lost: tally.lost + (outlasts(long) ? 0 : call.prefix),
  }
}

/** The lifetime a marker has by default, and the longest there is. */
export function lifetimes({ ttls, defaultTtl }: CacheRules): {
  readonly long: CacheTtl
  readonly short: CacheTtl
} {
  const none = { name: defaultTtl, seconds: 0 }
  return { long: ttls[0] ?? none, short: ttls.find(({ name }) => name === defaultTtl) ?? none }
}

/** Dollars per million tokens saved by the longer life over the calls seen; null where a price is not known. */
export function longLifeSaves(tally: GapTally, rates: Rates): number | null {
  const { cacheRead, write5m, write1h } = rates
  if (cacheRead === null || write5m === null || write1h === null) return null
  return tally.lapsed * (write5m - cacheRead) - (tally.added + tally.lost) * (write1h - write5m)
}
