/** A journal in one SQLite file, for many sessions on one machine. Needs Node 22.13 or newer (`node:sqlite`). */
import { DatabaseSync } from 'node:sqlite'
import type { Journal } from '@tidemark/core/engine/ports'
import { checkProgramName } from './check-records.ts'
import { checkedJournal, type RawJournal } from './checked-journal.ts'
import { ensureDirectory, nodeFileSystem } from './file-system.ts'
import { type HeldLock, SYSTEM_LOCK_OPTIONS, takeLock } from './journal-lock.ts'

export interface SqliteJournalOptions {
  /** Name of this program, which others see while it writes a session. Default: `tidemark`. */
  readonly program?: string
}

export interface SqliteJournal extends Journal {
  /** Releases the write locks and closes the file. */
  close(): Promise<void>
}

const SCHEMA = `
  create table if not exists tidemark_lines (
    session text not null, line integer not null, text text not null, primary key (session, line)
  ) strict, without rowid`

/** Lines that one read returns at most. */
const CHUNK = 1_000

/**
 * Opens a journal in the SQLite file `path`, which is created if it is missing. Every append is one transaction. Write
 * locks are files in the folder `PATH-locks`, taken over from processes that are dead.
 */
export function createSqliteJournal(path: string, options: SqliteJournalOptions = {}): SqliteJournal {
  const program = checkProgramName(options.program ?? 'tidemark')
  const database = new DatabaseSync(path)
  // `busy_timeout` comes first, because two processes that open a new file at once both change its journal mode.
  database.exec('pragma busy_timeout = 10000; pragma journal_mode = wal; pragma synchronous = full')
  database.exec(SCHEMA)
  const locks = createLockFolder(`${path}-locks`, program)
  return {
    ...checkedJournal({ ...createLineTable(database), ...locks }),
    async close() {
      await locks.unlockAll()
      database.close()
    },
  }
}

function createLineTable(database: DatabaseSync): Pick<RawJournal, 'read' | 'append' | 'list'> {
  const select = database.prepare(
    'select text from tidemark_lines where session = ? and line > ? order by line limit ?',
  )
  const count = database.prepare('select max(line) as line from tidemark_lines where session = ?')
  const insert = database.prepare('insert into tidemark_lines (session, line, text) values (?, ?, ?)')
  const sessions = database.prepare('select distinct session from tidemark_lines')
  function insertLines(session: string, after: number, lines: readonly string[]): boolean {
    if ((count.get(session)?.line ?? 0) !== after) return false
    for (const [index, line] of lines.entries()) insert.run(session, after + index + 1, line)
    return true
  }
  return {
    read: async (session, from) => select.all(session, from, CHUNK).map(({ text }) => String(text)),
    async append(session, after, lines) {
      database.exec('begin immediate')
      try {
        const isStored = insertLines(session, after, lines)
        database.exec('commit')
        return isStored
      } catch (error) {
        // SQLite itself may have ended the transaction, as on a full disk.
        if (database.isTransaction) database.exec('rollback')
        throw error
      }
    },
    list: async () => sessions.all().map(({ session }) => String(session)),
  }
}

function createLockFolder(
  folder: string,
  program: string,
): Required<Pick<RawJournal, 'lock' | 'unlock'>> & { unlockAll(): Promise<void> } {
  const held = new Map<string, HeldLock>()
  async function unlock(session: string): Promise<void> {
    const lock = held.get(session)
    held.delete(session)
    await lock?.release()
  }
  return {
    async lock(session) {
      if ((await held.get(session)?.isStillHeld()) === true) return null
      await unlock(session)
      await ensureDirectory(nodeFileSystem, folder)
      const attempt = await takeLock({
        session,
        path: `${folder}/${session}.lock`,
        ...SYSTEM_LOCK_OPTIONS,
        program,
      })
      if (!attempt.ok) return attempt.owner
      held.set(session, attempt.lock)
      return null
    },
    unlock,
    async unlockAll() {
      await Promise.all([...held.keys()].map(unlock))
    },
  }
}
