/**
 * Responses that came whole, where the others came as a stream. A stream is logged block by block. One that was
 * logged whole was most likely asked for again, without a stream and with other settings, after the stream had
 * failed; no log says so, and other settings would miss the cache.
 */
import { blocksOf, isKnown, type SessionRecord } from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'

/** Of those that have been seen, so many must be of one block for the others to tell anything. */
const SHARE = 0.9
const FEWEST = 10

export function isStreamed(records: readonly ReadRecord[]): boolean {
  const counts = records.map(({ record }) => blockCount(record)).filter((count) => count > 0)
  return counts.length >= FEWEST && counts.filter((count) => count === 1).length >= counts.length * SHARE
}

export function isWhole(record: SessionRecord): boolean {
  return blockCount(record) > 1
}

function blockCount(record: SessionRecord): number {
  if (!isKnown(record) || record.type !== 'assistant') return 0
  return blocksOf(record.message.content).length
}
