/**
 * Finds the positions where a conversation may be cut: never between the records of one response, and never between a
 * tool call and its result. The records between two neighbouring cut points form a round.
 */

import { isServerToolResult, isServerToolUse, isToolResult, isToolUse, toBlocks } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { KnownRecord } from '../log/record.ts'
import type { ContextEntry } from './context-entry.ts'
import { flattenContext, listWaitingCallIds } from './flatten.ts'

/**
 * Returns every position i at which `records` may be cut, so that record i is the first after the cut. Includes 0.
 * Includes `records.length` unless a tool call still waits for its result.
 */
export function findCutPoints(
  records: readonly KnownRecord[],
  waiting: readonly string[] = findWaitingCalls(records),
): readonly number[] {
  const ends = findLastRecords(records, waiting)
  const cuts = [0]
  let reach = -1
  records.forEach((record, index) => {
    reach = Math.max(reach, index, ...findTiedRecords(record, index, ends))
    if (reach === index) cuts.push(index + 1)
  })
  return cuts
}

/**
 * Returns the nearest cut point at or before `position`. Rounding down means that more records stay after the cut,
 * never fewer.
 */
export function findCutPointAtOrBefore(records: readonly KnownRecord[], position: number): number {
  return findCutPoints(records).findLast((cut) => cut <= position) ?? 0
}

/**
 * Groups records into rounds: the records between two neighbouring cut points. Every round contains a message; notices
 * and attachments without one are added to the round before them.
 */
export function groupIntoRounds(records: readonly KnownRecord[]): readonly (readonly KnownRecord[])[] {
  const cuts = findCutPoints(records)
  const inner = cuts.filter((cut) => cut > 0 && cut < records.length)
  const hasMessage = (cut: number, at: number): boolean =>
    records.slice(cut, inner[at + 1]).some(({ type }) => type === 'user' || type === 'assistant')
  const edges = [0, ...inner.filter(hasMessage), records.length]
  return edges.slice(1).map((end, index) => records.slice(edges[index], end))
}

/** Groups context entries into rounds: the entries between two neighbouring cut points. Every round contains a message. */
export function groupEntriesIntoRounds(
  entries: readonly ContextEntry[],
): readonly (readonly ContextEntry[])[] {
  let at = 0
  return groupIntoRounds(entries.map((entry) => entry.record))
    .filter((round) => round.length > 0)
    .map((round) => {
      at += round.length
      return entries.slice(at - round.length, at)
    })
}

function findWaitingCalls(records: readonly KnownRecord[]): readonly string[] {
  return listWaitingCallIds(
    flattenContext({ entries: AppendList.of(records.map((record, index) => ({ record, index }))) }),
  )
}

interface LastRecords {
  /** Index of the last record of each response, by `message.id`. */
  readonly responses: ReadonlyMap<string, number>
  /** Indexes of the records with results, ascending, by call id; several if a model used an id again. */
  readonly results: ReadonlyMap<string, readonly number[]>
  /** Ids of the tool calls that wait for their result. */
  readonly waiting: ReadonlySet<string>
}

function findLastRecords(records: readonly KnownRecord[], waiting: readonly string[]): LastRecords {
  const responses = new Map<string, number>()
  const results = new Map<string, number[]>()
  records.forEach((record, index) => {
    if (record.type !== 'user' && record.type !== 'assistant') return
    if (record.type === 'assistant') responses.set(record.message.id, index)
    for (const block of toBlocks(record.message.content)) {
      const id = isToolResult(block) || isServerToolResult(block) ? block.tool_use_id : null
      if (id !== null) results.set(id, [...(results.get(id) ?? []), index])
    }
  })
  return { responses, results, waiting: new Set(waiting) }
}

/** Returns the indexes of later records that no cut may separate from `record`, which is the record at `index`. */
function findTiedRecords(record: KnownRecord, index: number, ends: LastRecords): readonly number[] {
  if (record.type !== 'assistant') return []
  const calls = toBlocks(record.message.content).flatMap((block) =>
    isToolUse(block) || isServerToolUse(block) ? [block.id] : [],
  )
  const findResult = (id: string): number =>
    ends.results.get(id)?.find((at) => at >= index) ?? (ends.waiting.has(id) ? Number.POSITIVE_INFINITY : -1)
  return [ends.responses.get(record.message.id) ?? -1, ...calls.map(findResult)]
}
