/** How the context of the main conversation grew and shrank: what each request sent, and the rewrites between. */
import {
  type CompactBoundary,
  contextOf,
  isCompactBoundary,
  isMicrocompactBoundary,
  isObject,
  type MicrocompactBoundary,
  type SessionRecord,
} from '@tidemark/core'
import { type Call, keyOf } from './calls.ts'
import type { ClearingFound, CompactionFound, ContextPoint } from './report.ts'

export interface Curve {
  readonly points: readonly ContextPoint[]
  readonly compactions: readonly CompactionFound[]
  readonly clearings: readonly ClearingFound[]
}

/** Calls that another file has too are part of this conversation all the same. */
export function curveOf(records: Iterable<SessionRecord>, calls: readonly Call[]): Curve {
  const waiting = new Map(calls.filter(isMeasured).map((call) => [call.key, call]))
  const points: ContextPoint[] = []
  const compactions: CompactionFound[] = []
  const clearings: ClearingFound[] = []
  for (const record of records) {
    const key = keyOf(record)
    const call = key === null ? undefined : waiting.get(key)
    if (call !== undefined) points.push({ at: call.at, tokens: contextOf(call.usage) })
    if (key !== null) waiting.delete(key)
    if (isCompactBoundary(record)) compactions.push(compactionAt(record, points.length))
    else if (isMicrocompactBoundary(record)) clearings.push(clearingAt(record, points.length))
  }
  return { points, clearings, compactions: compactions.map((act) => ({ ...act, postTokens: after(act) })) }

  function after({ afterCall }: CompactionFound): number | null {
    return points[afterCall]?.tokens ?? null
  }
}

function isMeasured({ agent, usage }: Call): boolean {
  return agent === null && contextOf(usage) > 0
}

function compactionAt(record: CompactBoundary, afterCall: number): CompactionFound {
  const { trigger, preTokens } = fieldsOf(record.compactMetadata)
  return { trigger: text(trigger), preTokens: count(preTokens), postTokens: null, at: at(record), afterCall }
}

function clearingAt(record: MicrocompactBoundary, afterCall: number): ClearingFound {
  const { trigger, preTokens, tokensSaved, compactedToolIds } = fieldsOf(record.microcompactMetadata)
  return {
    preTokens: count(preTokens),
    savedTokens: count(tokensSaved),
    trigger: text(trigger),
    results: Array.isArray(compactedToolIds) ? compactedToolIds.length : 0,
    at: at(record),
    afterCall,
  }
}

/** Another program's line may leave out what ours always has. */
function fieldsOf(metadata: unknown): { readonly [field: string]: unknown } {
  return isObject(metadata) ? metadata : {}
}

function at({ timestamp }: SessionRecord): string | null {
  return text(timestamp)
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null
}
