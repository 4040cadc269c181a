/**
 * Calls that never got their answer get one in the log before the next request goes out, so that what was
 * sent stays what was sent when the real answer comes after all.
 */
import type { UserRecord } from '../conversation/record.ts'
import type { Flat } from './flatten.ts'
import { missingResult } from './pairing.ts'

export interface OpenCall {
  readonly id: string
  /** uuid of the record that holds the call. */
  readonly origin: string
}

export function openCalls(flat: Flat): readonly OpenCall[] {
  return flat.tailRepairs.flatMap(({ kind, id, origin }) =>
    kind === 'missing-result' && id !== undefined ? [{ id, origin }] : [],
  )
}

/** What a record that answers them says; the caller gives it its uuid, parent and time. */
export function settlingRecord(calls: readonly OpenCall[]): Pick<UserRecord, 'type' | 'isMeta' | 'message'> {
  const content = calls.map((call) => missingResult(call.id))
  return { type: 'user', isMeta: true, message: { role: 'user', content } }
}
