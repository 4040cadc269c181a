/** All records of a log in the order of its lines, those of its side conversations among them. */
import type { SessionRecord } from '@tidemark/core'
import type { ReadRecord } from '@tidemark/wire'
import type { ReadLog } from '../reading/read-log.ts'

export function wholeLog({ path, records, agents }: ReadLog): readonly SessionRecord[] {
  const beside = agents.filter((agent) => agent.path === path).flatMap((agent) => agent.records)
  if (beside.length === 0) return records.map(({ record }) => record)
  const byLine = (one: ReadRecord, other: ReadRecord): number => one.line - other.line
  return [...records, ...beside].toSorted(byLine).map(({ record }) => record)
}

/** As they would stand in a log of their own: positions anew, and no part of a batch that is not all there. */
export function restamped(records: readonly SessionRecord[]): readonly SessionRecord[] {
  const counts = new Map<string, number>()
  for (const { batch } of records)
    if (batch !== undefined) counts.set(batch.id, (counts.get(batch.id) ?? 0) + 1)
  return records.map((record, index) => {
    const { seq, batch } = record
    const isTorn = batch !== undefined && counts.get(batch.id) !== batch.of
    const moved = seq === undefined || seq === index + 1 ? record : { ...record, seq: index + 1 }
    if (!isTorn) return moved
    const { batch: _, ...rest } = moved
    return rest as SessionRecord
  })
}
