/** The history of a session: every record of its branch, whatever has been compacted since. What facts are read off. */
import { isKnown, type KnownRecord } from '../log/record.ts'
import type { Session } from '../log/session.ts'

/** Up to the record `before`, which is not part of it; all of it where that is not on the branch or not given. */
export function historyOf({ branch, records }: Session, before?: string): readonly KnownRecord[] {
  const history: KnownRecord[] = []
  for (const index of branch) {
    const record = records.at(index)
    if (record === undefined || !isKnown(record)) continue
    if (record.uuid === before) break
    history.push(record)
  }
  return history
}
