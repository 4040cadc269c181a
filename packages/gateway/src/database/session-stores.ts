/**
 * The sessions of one key in Postgres: log, blobs and time of last use. The key is part of every primary key, so equal
 * session ids of two keys do not conflict.
 */
import type { BlobStore, Journal } from '@tidemark/core/engine/ports'
import { describeThrown, TidemarkError } from '@tidemark/core/errors'
import { computeBlobId, copyBlobBytes } from 'tidemark/internal'
import { createPostgresJournal, type PostgresLocks } from 'tidemark/postgres'
import { appendAudit } from './audit.ts'
import { type Database, runTransaction } from './database.ts'
import { createLineConverter, loadObject, OBJECT_THRESHOLD_BYTES, storeObject } from './large-lines.ts'
import type { ObjectStore } from './object-store.ts'

interface SessionStoreOptions {
  /** The id of the key. */
  readonly scope: string
  readonly locks: PostgresLocks
  /** Where long lines are stored; null for the database. */
  readonly objects: ObjectStore | null
  /** Seconds that a request waits while another process handles a request of the same session. */
  readonly waitSeconds: number
  /** Called with the reason if the log could not be read or written, also if another process holds the session. */
  readonly onFailure: (message: string) => void
}

/** The time of last use of a session is stored at most once in this many milliseconds. */
const TOUCH_MS = 10_000

/** Maximum sessions whose last stored use is remembered. For a forgotten session, it is stored again with the next append. */
const MOST_TOUCHED = 10_000

/** Creates the journal of a scope (the id of a key), which also stores when each session was last used. */
export function createScopeJournal(pool: Database, options: SessionStoreOptions): Journal {
  const { scope, locks, objects, waitSeconds, onFailure } = options
  const texts = createLineConverter(pool, scope, objects)
  const journal = createPostgresJournal(pool, { scope, locks, waitSeconds, texts })
  const touched = new Map<string, number>()
  const report = (thrown: unknown): never => {
    onFailure(describeThrown(thrown))
    throw thrown
  }
  async function touch(session: string, after: number): Promise<void> {
    const now = performance.now()
    if (after > 0 && now - (touched.get(session) ?? Number.NEGATIVE_INFINITY) < TOUCH_MS) return
    await pool.query(
      `insert into gateway_sessions (scope, session) values ($1, $2)
       on conflict (scope, session) do update set used_at = now()`,
      [scope, session],
    )
    if (touched.size >= MOST_TOUCHED) touched.clear()
    touched.set(session, now)
  }
  return {
    read: (session, visit, from) => journal.read(session, visit, from).catch(report),
    list: (prefix) =>
      (prefix === undefined ? journal.list() : listBeginning(pool, scope, prefix)).catch(report),
    release: (session) => journal.release(session),
    async append(session, after, records) {
      const [outcome] = await Promise.all([
        journal.append(session, after, records),
        touch(session, after),
      ]).catch(report)
      // The session may have been deleted meanwhile, with its row. Its next append then creates the row again.
      if (!outcome.ok) touched.delete(session)
      if (!outcome.ok && outcome.reason === 'locked') onFailure(outcome.message)
      return outcome
    },
    findRecent: (texts) => findRecent(pool, scope, texts).catch(report),
  }
}

/** Searches by prefix in SQL, because a key may have very many sessions and each new conversation searches them. */
async function listBeginning(pool: Database, scope: string, prefix: string): Promise<readonly string[]> {
  const { rows } = await pool.query<{ session: string }>(
    // `~` sorts after every character of ids, so the range has exactly the ids with this prefix.
    `select session from gateway_sessions
     where scope = $1 and session collate "C" >= $2 and session collate "C" < $2 || '~'`,
    [scope, prefix],
  )
  return rows.map(({ session }) => session)
}

/** Limits of the search for a conversation without an id: number of sessions, and of the last lines of each. */
const SEARCHED = { sessions: 100, lines: 60 }

async function findRecent(
  pool: Database,
  scope: string,
  texts: readonly string[],
): Promise<readonly string[]> {
  const { rows } = await pool.query<{ session: string }>(
    `select recent.session from
       (select session, used_at from gateway_sessions where scope = $1 order by used_at desc limit $3) recent
     where exists (
       select 1 from (
         select text from tidemark_lines l where l.scope = $1 and l.session = recent.session order by line desc limit $4
       ) line, unnest($2::text[]) wanted (text)
       where position(wanted.text in line.text) > 0
     ) order by recent.used_at desc`,
    [scope, texts, SEARCHED.sessions, SEARCHED.lines],
  )
  return rows.map(({ session }) => session)
}

/** Creates the blob store of a scope, which all sessions of the key share. `objects`: null to store large blobs in rows. */
export function createScopeBlobs(pool: Database, scope: string, objects: ObjectStore | null): BlobStore {
  async function has(id: string): Promise<boolean> {
    const found = await pool.query('select 1 from gateway_blobs where scope = $1 and id = $2', [scope, id])
    return found.rows.length > 0
  }
  return {
    async put(given) {
      const bytes = copyBlobBytes(given)
      const id = computeBlobId(bytes)
      const isObject = objects !== null && bytes.byteLength > OBJECT_THRESHOLD_BYTES
      if (isObject && (await has(id))) return id
      const object = isObject ? await storeObject(pool, objects, { scope, session: null, bytes }) : null
      await pool.query(
        'insert into gateway_blobs (scope, id, bytes, object) values ($1, $2, $3, $4) on conflict do nothing',
        [scope, id, object === null ? Buffer.from(bytes) : null, object?.name ?? null],
      )
      return id
    },
    async get(id) {
      const { rows } = await pool.query(
        'select bytes, object from gateway_blobs where scope = $1 and id = $2',
        [scope, id],
      )
      const { bytes, object: name } = rows[0] ?? {}
      if (typeof name !== 'string') return bytes instanceof Uint8Array ? Uint8Array.from(bytes) : null
      if (objects !== null) return loadObject(objects, { name, sha256: id })
      throw new TidemarkError(
        'io-failed',
        `The blob ${id} is in an object store: start the gateway with --objects.`,
      )
    },
    has,
  }
}

interface DeletedSession {
  readonly lines: number
  readonly blobs: number
}

/**
 * Deletes a session with the blobs that no other session of the key has, and records that in the audit log; the objects
 * are deleted by the next job. Returns null, and deletes nothing, if a process is answering a request of the session,
 * if it was used in the last `unusedSeconds`, or if the key has no such session.
 */
export async function deleteSession(
  pool: Database,
  { scope, session, actor, unusedSeconds }: DeleteSessionInput,
): Promise<DeletedSession | null> {
  return runTransaction(pool, async (connection) => {
    const { rows } = await connection.query(
      `select pg_try_advisory_xact_lock(hashtextextended($3, 0)) as taken,
         (select name from gateway_keys where id = $1) as key from gateway_sessions
       where scope = $1 and session = $2 and used_at <= coalesce(now() - make_interval(secs => $4), 'infinity') for update`,
      [scope, session, `tidemark ${scope} ${session}`, unusedSeconds ?? null],
    )
    if (rows[0]?.taken !== true) return null
    const blobs = await connection.query(
      `delete from gateway_blobs b where scope = $1
         and exists (select 1 from tidemark_lines l where l.scope = $1 and l.session = $2 and position(b.id in l.text) > 0)
         and not exists (select 1 from tidemark_lines l where l.scope = $1 and l.session <> $2 and position(b.id in l.text) > 0)
       returning object`,
      [scope, session],
    )
    // A job deletes the objects themselves, because their store has no part in this transaction.
    await connection.query(
      'update gateway_objects set deleted_at = now() where (scope = $1 and session = $2) or name = any($3::text[])',
      [scope, session, blobs.rows.flatMap(({ object }) => object ?? [])],
    )
    const lines = await connection.query('delete from tidemark_lines where scope = $1 and session = $2', [
      scope,
      session,
    ])
    await connection.query('delete from gateway_sessions where scope = $1 and session = $2', [scope, session])
    const deleted = { lines: lines.rowCount ?? 0, blobs: blobs.rowCount ?? 0 }
    const details = `of the key ${rows[0].key}, ${deleted.lines} lines, ${deleted.blobs} blobs`
    await appendAudit(connection, {
      actor,
      action: 'session-deleted',
      subject: `${scope} ${session}`,
      details,
    })
    return deleted
  })
}

interface DeleteSessionInput {
  readonly scope: string
  readonly session: string
  readonly actor: string
  readonly unusedSeconds?: number
}
