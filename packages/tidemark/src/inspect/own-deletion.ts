/** Deletes one of Tidemark's own sessions for good. */
import { rm, stat } from 'node:fs/promises'
import { ioFailed } from '../files/io-failed.ts'
import { sessionPaths } from '../home/session-paths.ts'
import { createFileJournal } from '../journal/file-journal.ts'

export type Deletion =
  | { readonly ok: true }
  | {
      readonly ok: false
      /** `held`: somebody is writing to it, and `why` says who. */
      readonly reason: 'missing' | 'held'
      readonly why: string
    }

/** Its log, and all that is kept beside it. Whoever holds the session keeps it. */
export async function deleteOwnSession(home: string, id: string): Promise<Deletion> {
  const paths = sessionPaths(home, id)
  const isThere = await stat(paths.log).then(
    () => true,
    () => false,
  )
  if (!isThere) return { ok: false, reason: 'missing', why: `There is no session "${id}".` }
  const journal = createFileJournal({ home })
  const held = await journal.acquire(id)
  if (!held.ok) return { ok: false, reason: 'held', why: held.message }
  try {
    // What belongs to it first: a session whose log is gone can no longer be named.
    await rm(paths.folder, { recursive: true, force: true })
    await rm(paths.log, { force: true })
  } catch (error) {
    throw ioFailed(`delete session "${id}"`, error, { session: id })
  } finally {
    await journal.close()
  }
  return { ok: true }
}
