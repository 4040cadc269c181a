/**
 * Calls that never got their answer get one in the log before the next request goes out, so that what was
 * sent stays what was sent when the real answer comes after all.
 */
import type { UserRecord } from '../conversation/record.ts'
import type { Draft } from './draft.ts'
import type { Flat } from './flatten.ts'
import { callsOf, missingResult } from './pairing.ts'

export interface OpenCall {
  readonly id: string
  /** uuid of the record that holds the call. */
  readonly origin: string
}

/** Calls of the newest response that wait. One that the conversation has left behind is answered for good. */
export function openCalls(flat: Flat): readonly OpenCall[] {
  const newest = newestResponses(flat.drafts)
  const ids = new Set(newest.flatMap(callsOf))
  // The id alone does not tell: a response may have repeated that of an earlier call, which is answered for good.
  const origins = new Set(newest.flatMap(({ parts }) => [...parts].map((part) => part.origin)))
  return flat.tailRepairs.flatMap(({ kind, id, origin }) =>
    kind === 'missing-result' && id !== undefined && ids.has(id) && origins.has(origin)
      ? [{ id, origin }]
      : [],
  )
}

/** The last response, and those right before it. */
function newestResponses(drafts: readonly Draft[]): readonly Draft[] {
  const end = drafts.findLastIndex((draft) => draft.role === 'assistant') + 1
  const start = drafts.slice(0, end).findLastIndex((draft) => draft.role !== 'assistant') + 1
  return drafts.slice(start, end)
}

/** What a record that answers them says; the caller gives it its uuid, parent and time. */
export function settlingRecord(calls: readonly OpenCall[]): Pick<UserRecord, 'type' | 'isMeta' | 'message'> {
  const content = calls.map((call) => missingResult(call.id))
  return { type: 'user', isMeta: true, message: { role: 'user', content } }
}
