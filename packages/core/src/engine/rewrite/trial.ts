/** A session as it would be with records that nobody has appended yet: what a rewrite is measured and checked on. */
import type { SessionRecord } from '../../conversation/record.ts'
import type { NewRecord } from '../ports.ts'
import { type SessionState, withRecords } from '../session-state.ts'

export function trial(state: SessionState, records: readonly NewRecord[]): SessionState {
  const of = records.length
  const stamped = records.map(
    (record, index): SessionRecord =>
      ({ ...record, seq: state.position + index + 1, batch: { id: TRIAL, index, of } }) as SessionRecord,
  )
  return withRecords(state, stamped, state.position + of)
}

const TRIAL = 'trial'
