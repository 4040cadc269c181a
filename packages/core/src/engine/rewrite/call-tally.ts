/** How the calls of a session came so far, one after the other or with the cache gone in between: read off its log. */
import { isKnown, type SessionRecord, SYNTHETIC_MODEL } from '../../conversation/record.ts'
import type { Session } from '../../conversation/session.ts'
import { type CallRuns, NO_RUNS, tallyCall } from '../../plan/call-runs.ts'

export interface CallTally {
  /** The lifetime that gaps were held against. */
  readonly ttlMs: number
  /** What has been taken in. */
  readonly records: Session['records'] | null
  readonly runs: CallRuns
  readonly response: string | null
  /** When the newest response came; null before the first. */
  readonly at: number | null
}

export const NO_TALLY: CallTally = { ttlMs: 0, records: null, runs: NO_RUNS, response: null, at: null }

/** Costs what has come since; another lifetime means that all is counted anew. */
export function advanceTally(tally: CallTally, { records }: Session, ttlMs: number): CallTally {
  const follows = tally.records !== null && tally.ttlMs === ttlMs && records.extends(tally.records)
  let next = follows ? tally : { ...NO_TALLY, ttlMs }
  for (let index = next.records?.length ?? 0; index < records.length; index += 1) {
    const record = records.at(index)
    if (record !== undefined) next = taken(next, record)
  }
  return { ...next, records }
}

function taken(tally: CallTally, record: SessionRecord): CallTally {
  if (!isKnown(record) || record.type !== 'assistant' || record.isSidechain === true) return tally
  const { id, model } = record.message
  const at = Date.parse(record.timestamp)
  if (id === tally.response || model === SYNTHETIC_MODEL || Number.isNaN(at)) return tally
  const gap = tally.at === null ? null : at - tally.at
  return { ...tally, runs: tallyCall(tally.runs, gap, tally.ttlMs), response: id, at }
}
