/**
 * Times that are those of the writing and not of the calls. A session that was forked off another may begin with a
 * copy of its history, written in one go: what those calls left lies in the other's cache.
 */
import type { SessionRecord } from '@tidemark/core'
import type { Moment } from './moments.ts'

/** No answer comes sooner than this: calls that seem to were written in one go. */
export const SHORTEST_GAP_MS = 1_000

/** Is `now` the first call of a fork's own, behind a history that was copied when it began? */
export function isForkPoint(begun: SessionRecord | undefined, before: Moment, now: Moment): boolean {
  const start = timeOf(begun)
  const isCopied = ({ record }: Moment): boolean => timeOf(record) - start < SHORTEST_GAP_MS
  return !Number.isNaN(start) && isCopied(before) && !isCopied(now)
}

function timeOf(record: SessionRecord | undefined): number {
  return typeof record?.timestamp === 'string' ? Date.parse(record.timestamp) : Number.NaN
}

/** Do two requests that followed each other bear one time? Then neither is its own. */
export function isOneTime(before: Moment | null, now: Moment): boolean {
  return before !== null && Math.abs(now.at - before.at) < SHORTEST_GAP_MS
}
