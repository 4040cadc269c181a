/** What a journal's suite is run on, and how its cases look at it. */
import type { Journal, JournalState, SessionRecord } from '@tidemark/core'

/** A store of sessions that is empty at first. */
export interface JournalSubject {
  /** A journal on the store; each stands for a process of its own. */
  open(): Promise<Journal>
  /** False for a store that does without locks: several writers, told apart by positions alone. */
  readonly locks: boolean
  end(): Promise<void>
}

/** All that stands behind the position `from`; everything unless given. */
export async function readAll(
  journal: Journal,
  session: string,
  from?: number,
): Promise<JournalState & { readonly records: readonly SessionRecord[] }> {
  const records: SessionRecord[] = []
  const state = await journal.read(session, (piece) => records.push(...piece), from)
  return { ...state, records }
}

export async function uuidsOf(journal: Journal, session: string): Promise<readonly (string | undefined)[]> {
  return (await readAll(journal, session)).records.map(({ uuid }) => uuid)
}
