/**
 * Where a conversation may be cut: never between the records of one response, nor between a call and its
 * answer. What lies between two neighbouring cuts is a round.
 */
import { blocksOf, isServerToolResult, isServerToolUse, isToolResult, isToolUse } from './block.ts'
import type { KnownRecord } from './record.ts'

/** Positions i such that `records` may be parted in front of record i; 0 and, unless a call waits, the end among them. */
export function legalCuts(records: readonly KnownRecord[]): readonly number[] {
  const ends = endsOf(records)
  const cuts = [0]
  let reach = -1
  records.forEach((record, index) => {
    reach = Math.max(reach, index, ...reachOf(record, ends))
    if (reach === index) cuts.push(index + 1)
  })
  return cuts
}

/** The nearest legal cut at or before `position`: moving a cut back keeps more of what comes behind it. */
export function cutAtOrBefore(records: readonly KnownRecord[], position: number): number {
  return legalCuts(records).findLast((cut) => cut <= position) ?? 0
}

/** The nearest legal cut at or after `position`, or null where a call still waits for its answer. */
export function cutAtOrAfter(records: readonly KnownRecord[], position: number): number | null {
  return legalCuts(records).find((cut) => cut >= position) ?? null
}

/** Each round says something: notices and attachments go with what stands before them. */
export function roundsOf(records: readonly KnownRecord[]): readonly (readonly KnownRecord[])[] {
  const cuts = legalCuts(records)
  const inner = cuts.filter((cut) => cut > 0 && cut < records.length)
  const edges = [0, ...inner.filter((cut, at) => says(records.slice(cut, inner[at + 1]))), records.length]
  return edges.slice(1).map((end, index) => records.slice(edges[index], end))
}

function says(records: readonly KnownRecord[]): boolean {
  return records.some((record) => record.type === 'user' || record.type === 'assistant')
}

interface Ends {
  /** `message.id` → its last record. */
  readonly responses: ReadonlyMap<string, number>
  /** Call → the record with its answer. */
  readonly answers: ReadonlyMap<string, number>
  readonly lastResponse: string | null
}

function endsOf(records: readonly KnownRecord[]): Ends {
  const responses = new Map<string, number>()
  const answers = new Map<string, number>()
  let lastResponse: string | null = null
  records.forEach((record, index) => {
    if (record.type !== 'user' && record.type !== 'assistant') return
    if (record.type === 'assistant') {
      responses.set(record.message.id, index)
      lastResponse = record.message.id
    }
    for (const block of blocksOf(record.message.content)) {
      const id = isToolResult(block) || isServerToolResult(block) ? block.tool_use_id : null
      if (id !== null && !answers.has(id)) answers.set(id, index)
    }
  })
  return { responses, answers, lastResponse }
}

/** How far on the record is tied. A call of the last response that waits for its answer is tied to what is to come. */
function reachOf(record: KnownRecord, ends: Ends): readonly number[] {
  if (record.type !== 'assistant') return []
  const calls = blocksOf(record.message.content).flatMap((block) =>
    isToolUse(block) || isServerToolUse(block) ? [block.id] : [],
  )
  const waits = record.message.id === ends.lastResponse ? Number.POSITIVE_INFINITY : -1
  return [ends.responses.get(record.message.id) ?? -1, ...calls.map((id) => ends.answers.get(id) ?? waits)]
}
