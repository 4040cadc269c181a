/** How many calls come before the cache goes cold: the policy's word at first, then more and more the session's own. */

export interface CallRuns {
  readonly calls: number
  /** Gaps that outlasted the cache. */
  readonly lapses: number
}

export const NO_RUNS: CallRuns = { calls: 0, lapses: 0 }

/** `gapMs`: since the call before; null for the first. */
export function tallyCall({ calls, lapses }: CallRuns, gapMs: number | null, ttlMs: number): CallRuns {
  return { calls: calls + 1, lapses: lapses + (gapMs !== null && gapMs >= ttlMs ? 1 : 0) }
}

/** The policy's figure counts as one run of that length, and every run seen as one more. */
export function callsToCome({ calls, lapses }: CallRuns, byPolicy: number): number {
  return (byPolicy + calls) / (1 + lapses)
}
