/** The record that a person means by its id, or by enough of its beginning. */
import type { SessionRecord } from '@tidemark/core'

export type NamedRecord =
  | { readonly ok: true; readonly uuid: string }
  | { readonly ok: false; readonly why: string }

/** Fewer characters are a slip of the hand. */
const LEAST = 6
const MOST_NAMED = 5

export function namedRecord(records: Iterable<SessionRecord>, given: string): NamedRecord {
  const begun = new Set<string>()
  for (const { uuid } of records) {
    if (uuid === given) return { ok: true, uuid }
    if (given.length >= LEAST && uuid?.startsWith(given) === true) begun.add(uuid)
  }
  const [only] = begun
  if (only === undefined) return { ok: false, why: `no record has the id ${given}` }
  if (begun.size === 1) return { ok: true, uuid: only }
  const named = [...begun].slice(0, MOST_NAMED).join(', ')
  return { ok: false, why: `${begun.size} records have an id that begins with ${given}: ${named}` }
}
