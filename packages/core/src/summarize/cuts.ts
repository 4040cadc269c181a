/** Where a view may be cut for a summary, and whether it may be cut at all just now. */
import {
  blocksOf,
  isServerToolResult,
  isServerToolUse,
  isToolResult,
  isToolUse,
} from '../conversation/block.ts'
import { isSyntheticError, type KnownRecord } from '../conversation/record.ts'
import { legalCuts } from '../conversation/round.ts'
import { isPersons } from './entry-class.ts'

/**
 * Calls of the newest response that wait for their results. One that the provider runs itself is given up once the
 * person has gone on.
 */
export function pendingCalls(records: readonly KnownRecord[]): readonly string[] {
  const last = lastSaid(records)
  const newest = records[last]
  if (newest?.type !== 'assistant') return []
  const own = records.filter(
    (record) => record.type === 'assistant' && record.message.id === newest.message.id,
  )
  const blocks = own.flatMap((record) => blocksIn(record))
  const results = records.flatMap((record) => blocksIn(record).flatMap((block) => answeredBy(block)))
  const answered = new Set(results)
  const hasGoneOn = records.slice(last + 1).some(isPersons)
  return blocks.flatMap((block) => {
    const waits = isToolUse(block) || (isServerToolUse(block) && !hasGoneOn)
    return waits && !answered.has(String(block.id)) ? [String(block.id)] : []
  })
}

/** The legal cuts. Behind a call of the provider's that was given up the person's messages can be cut freely. */
export function cutsOf(records: readonly KnownRecord[]): readonly number[] {
  const cuts = legalCuts(records)
  if (cuts.at(-1) === records.length || pendingCalls(records).length > 0) return cuts
  const tied = records.findLastIndex(
    (record) => record.type === 'assistant' || blocksIn(record).some((block) => answeredBy(block).length > 0),
  )
  const free = Array.from({ length: records.length - tied }, (_, index) => tied + 1 + index)
  return [...cuts, ...free.filter((cut) => cut > (cuts.at(-1) ?? 0))]
}

/** The role of the message a record goes into; null where it goes into none. */
export function roleOf(record: KnownRecord): 'user' | 'assistant' | 'system' | null {
  if (record.type === 'assistant') return isSyntheticError(record) ? null : 'assistant'
  if (record.type === 'user') return record.message.role
  return record.type === 'attachment' && record.isScreenOnly !== true ? 'user' : null
}

function lastSaid(records: readonly KnownRecord[]): number {
  return records.findLastIndex((record) => record.type === 'assistant' && !isSyntheticError(record))
}

function blocksIn(record: KnownRecord): ReturnType<typeof blocksOf> {
  return record.type === 'user' || record.type === 'assistant' ? blocksOf(record.message.content) : []
}

function answeredBy(block: ReturnType<typeof blocksOf>[number]): readonly string[] {
  return isToolResult(block) || isServerToolResult(block) ? [block.tool_use_id] : []
}
