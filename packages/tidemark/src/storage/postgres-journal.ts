/**
 * A journal and blobs in Postgres, for sessions that several machines serve. Every append is one statement that stores
 * its lines only if the session has as many lines as the writer expects. A writer that lost its lock is therefore
 * refused if another has written since.
 */
import { setTimeout } from 'node:timers/promises'
import type { BlobStore, Journal } from '@tidemark/core/engine/ports'
import { badOptionError } from '../platform/argument-errors.ts'
import { createWriteLock } from '../platform/node-ports.ts'
import { computeBlobId, copyBlobBytes } from './blob-folder.ts'
import { checkProgramName } from './check-records.ts'
import { checkedJournal, type RawJournal } from './checked-journal.ts'

/** The part of a `Pool` of the package `pg` that is used. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<PostgresResult>
  connect(): Promise<PostgresConnection>
}

interface PostgresResult {
  readonly rows: readonly { readonly [column: string]: unknown }[]
  readonly rowCount: number | null
}

interface PostgresConnection {
  query(text: string, values?: unknown[]): Promise<PostgresResult>
  on(event: 'error' | 'end', listener: () => void): unknown
  off(event: 'error' | 'end', listener: () => void): unknown
  release(destroy?: boolean): void
}

export interface PostgresJournalOptions {
  /** Keeps sessions with equal ids apart, such as those of two teams. Default: one scope for all. */
  readonly scope?: string
  /** Name of this program, which others see while it writes a session. Default: `tidemark`. */
  readonly program?: string
  /** Seconds that an append waits while another process writes the session. Default: 0, it is refused at once. */
  readonly waitSeconds?: number
  /** Locks that several journals share, so that all of them need the same few connections. Default: its own. */
  readonly locks?: PostgresLocks
  /** What the table stores for each line, for example a reference to a long one elsewhere. Default: the line. */
  readonly texts?: LineTexts
}

/** Converts between the lines of a log and the texts that the table stores for them. */
interface LineTexts {
  /** Returns a text for each line. What the texts refer to must be durable when the call returns: the append follows. */
  toStored(session: string, lines: readonly string[]): Promise<readonly string[]>
  /** Returns the line for each text. */
  fromStored(texts: readonly string[]): Promise<readonly string[]>
}

interface PostgresLocksOptions extends Pick<PostgresJournalOptions, 'program'> {
  /** Number of connections for locks. Sessions that share a connection wait for each other. Default: 1. */
  readonly connections?: number
}

/** Write locks of the sessions of several journals. */
export interface PostgresLocks {
  /** Releases all write locks, with the connections that hold them. */
  close(): Promise<void>
}

export interface PostgresJournal extends Journal {
  /**
   * Releases all write locks, with the connection that holds them; nothing if `locks` was given, which has a `close` of
   * its own. The pool stays open: it is the caller's.
   */
  close(): Promise<void>
}

const SCHEMA = `
  create table if not exists tidemark_lines (
    scope text not null, session text not null, line integer not null, text text not null,
    primary key (scope, session, line)
  );
  create table if not exists tidemark_blobs (
    id text primary key, bytes bytea not null
  )`

/** Number of the advisory lock for creating tables. Two processes that create them at the same time would fail. */
const SCHEMA_LOCK = 7_433_301

/** Creates the tables of the journal and of blobs, if they are missing. */
export async function createPostgresTables(pool: Pick<PostgresPool, 'connect'>): Promise<void> {
  const connection = await pool.connect()
  // Without a listener, a lost connection would end the process. The failing query reports the loss.
  const ignore = (): void => {}
  connection.on('error', ignore)
  try {
    await connection.query('begin')
    await connection.query(`select pg_advisory_xact_lock(${SCHEMA_LOCK})`)
    await connection.query(SCHEMA)
    await connection.query('commit')
  } catch (error) {
    connection.release(true)
    throw error
  }
  connection.off('error', ignore)
  connection.release()
}

/** Returns a journal in the database of `pool`. The tables must exist: see `createPostgresTables`. */
export function createPostgresJournal(
  pool: PostgresPool,
  options: PostgresJournalOptions = {},
): PostgresJournal {
  const { scope = '', waitSeconds = 0, texts = null } = options
  const program = checkProgramName(options.program ?? 'tidemark')
  const locks =
    options.locks === undefined
      ? new AdvisoryLocks([new LockConnection(pool, program, false)])
      : findLocks(options.locks)
  const toKey = (session: string): string => `tidemark ${scope} ${session}`
  const store: RawJournal = {
    ...createLineTable((session) => locks.find(toKey(session)).findHolding(toKey(session)) ?? pool, pool, {
      scope,
      texts,
    }),
    lock: (session) => takeWithin(waitSeconds * 1000, locks.find(toKey(session)), toKey(session)),
    unlock: (session) => locks.find(toKey(session)).release(toKey(session)),
  }
  const close = options.locks === undefined ? () => locks.close() : async () => {}
  return { ...checkedJournal(store), close }
}

/** Returns locks for `createPostgresJournal`. They keep connections of `pool` from the first write until `close`. */
export function createPostgresLocks(
  pool: Pick<PostgresPool, 'connect'>,
  options: PostgresLocksOptions = {},
): PostgresLocks {
  const { connections: length = 1 } = options
  if (!Number.isInteger(length) || length < 1)
    throw badOptionError(
      'connections',
      'createPostgresLocks: connections: expected a whole number from 1 on.',
    )
  const program = checkProgramName(options.program ?? 'tidemark')
  return new AdvisoryLocks(Array.from({ length }, () => new LockConnection(pool, program, true)))
}

function findLocks(locks: PostgresLocks): AdvisoryLocks {
  if (locks instanceof AdvisoryLocks) return locks
  throw badOptionError('locks', 'createPostgresJournal: locks: expected what createPostgresLocks returns.')
}

/** Milliseconds between two attempts to take a lock that another process holds. */
const RETRY_MS = 25

/** Takes a lock, with retries while another process holds it. Returns null, or the name of the last holder. */
async function takeWithin(ms: number, connection: LockConnection, key: string): Promise<string | null> {
  const end = performance.now() + ms
  while (!(await connection.take(key))) {
    if (performance.now() >= end) return connection.describeHolder(key)
    await setTimeout(RETRY_MS)
  }
  return null
}

/** Lines that one read returns at most. */
const CHUNK = 500

const UNIQUE_VIOLATION = '23505'

/** `choose` returns the connection for a session: the one with its lock, so that a writer never needs a second one. */
function createLineTable(
  choose: (session: string) => Pick<PostgresPool, 'query'>,
  pool: Pick<PostgresPool, 'query'>,
  { scope, texts }: { readonly scope: string; readonly texts: LineTexts | null },
): Pick<RawJournal, 'read' | 'readSize' | 'append' | 'list'> {
  return {
    readSize: CHUNK,
    async read(session, from) {
      const { rows } = await choose(session).query(
        'select text from tidemark_lines where scope = $1 and session = $2 and line > $3 order by line limit $4',
        [scope, session, from, CHUNK],
      )
      const stored = rows.map(({ text }) => String(text))
      return texts === null ? stored : texts.fromStored(stored)
    },
    async append(session, after, lines) {
      const stored = texts === null ? lines : await texts.toStored(session, lines)
      try {
        const { rowCount } = await choose(session).query(
          `insert into tidemark_lines (scope, session, line, text)
           select $1, $2, $3 + number, text from unnest($4::text[]) with ordinality as given (text, number)
           where $3 = (select coalesce(max(line), 0) from tidemark_lines where scope = $1 and session = $2)`,
          [scope, session, after, [...stored]],
        )
        return rowCount === lines.length
      } catch (error) {
        if (hasCode(error, UNIQUE_VIOLATION)) return false
        throw error
      }
    },
    async list() {
      // Finds the next session id in the index again and again, instead of reading every line.
      const { rows } = await pool.query(
        `with recursive found (session) as (
           (select session from tidemark_lines where scope = $1 order by session limit 1)
           union all
           select (select session from tidemark_lines where scope = $1 and session > found.session order by session limit 1)
           from found where found.session is not null
         ) select session from found where session is not null`,
        [scope],
      )
      return rows.map(({ session }) => String(session))
    },
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** Write locks of sessions on several connections. The locks of one session are always on the same connection. */
class AdvisoryLocks implements PostgresLocks {
  readonly #connections: readonly LockConnection[]

  constructor(connections: readonly LockConnection[]) {
    this.#connections = connections
  }

  /** Returns the connection for a lock. */
  find(key: string): LockConnection {
    let hash = 0
    for (let index = 0; index < key.length; index += 1) hash = (hash * 31 + key.charCodeAt(index)) >>> 0
    return this.#connections[hash % this.#connections.length] as LockConnection
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()))
  }
}

/**
 * Write locks that share one connection. Postgres releases them when the process or the connection ends. A lost lock is
 * detected by the next append, which takes it again.
 */
class LockConnection {
  readonly #pool: Pick<PostgresPool, 'connect'>
  readonly #program: string
  readonly #keepsConnection: boolean
  #connection: Promise<PostgresConnection> | null = null
  #opened: PostgresConnection | null = null
  readonly #inTurn = createWriteLock()
  readonly #held = new Set<string>()

  constructor(pool: Pick<PostgresPool, 'connect'>, program: string, keepsConnection: boolean) {
    this.#pool = pool
    this.#program = program
    this.#keepsConnection = keepsConnection
  }

  /** Takes the lock. Returns false if another connection holds it. */
  take(key: string): Promise<boolean> {
    return this.#inTurn(async () => {
      const connection = await this.#connect()
      if (this.#held.has(key)) return true
      const { rows } = await connection.query(
        'select pg_try_advisory_lock(hashtextextended($1, 0)) as taken',
        [key],
      )
      const isTaken = rows[0]?.taken === true
      if (isTaken) this.#held.add(key)
      return isTaken
    })
  }

  /** Releases the lock. With the last lock, releases the connection, too, unless it is kept. */
  release(key: string): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#held.has(key)) return
      const connection = await this.#connect()
      // The lock is released explicitly, because the server notices the end of a connection a little later.
      await connection
        .query('select pg_advisory_unlock(hashtextextended($1, 0))', [key])
        .catch((error: unknown) => {
          this.#drop(connection)
          throw error
        })
      this.#held.delete(key)
      if (this.#held.size === 0 && !this.#keepsConnection) this.#drop(connection)
    })
  }

  /** Returns the connection that holds the lock, on which each query waits for the one before; null if it is not held here. */
  findHolding(key: string): Pick<PostgresConnection, 'query'> | null {
    const connection = this.#held.has(key) ? this.#opened : null
    if (connection === null) return null
    return { query: (text, values) => this.#inTurn(() => connection.query(text, values)) }
  }

  /** Returns the name of the program that holds the lock. */
  describeHolder(key: string): Promise<string> {
    return this.#inTurn(async () => {
      const { rows } = await (await this.#connect()).query(
        `select application_name as name, client_addr as address from pg_locks join pg_stat_activity using (pid)
         where locktype = 'advisory' and granted and objsubid = 1
           and (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)`,
        [key],
      )
      const name = String(rows[0]?.name ?? 'another process')
      const address = rows[0]?.address
      return typeof address === 'string' ? `${name} (${address})` : name
    })
  }

  close(): Promise<void> {
    return this.#inTurn(async () => {
      const connection = await this.#connection?.catch(() => null)
      if (connection == null) return
      if (this.#held.size > 0) await connection.query('select pg_advisory_unlock_all()').catch(() => {})
      this.#drop(connection)
    })
  }

  #connect(): Promise<PostgresConnection> {
    this.#connection ??= this.#open().catch((error: unknown) => {
      this.#connection = null
      throw error
    })
    return this.#connection
  }

  async #open(): Promise<PostgresConnection> {
    const connection = await this.#pool.connect()
    connection.on('error', () => this.#drop(connection))
    connection.on('end', () => this.#drop(connection))
    this.#opened = connection
    try {
      await connection.query("select set_config('application_name', $1, false)", [this.#program])
    } catch (error) {
      this.#drop(connection)
      throw error
    }
    return connection
  }

  /** Gives up a connection and the locks on it. Otherwise the end of the pool would wait for it. */
  #drop(connection: PostgresConnection): void {
    if (this.#opened !== connection) return
    this.#opened = null
    this.#connection = null
    this.#held.clear()
    connection.release(true)
  }
}

/** Returns a blob store in the database of `pool`. The tables must exist: see `createPostgresTables`. */
export function createPostgresBlobs(pool: Pick<PostgresPool, 'query'>): BlobStore {
  return {
    async put(given) {
      const bytes = copyBlobBytes(given)
      const id = computeBlobId(bytes)
      await pool.query('insert into tidemark_blobs (id, bytes) values ($1, $2) on conflict do nothing', [
        id,
        Buffer.from(bytes),
      ])
      return id
    },
    async get(id) {
      const { rows } = await pool.query('select bytes from tidemark_blobs where id = $1', [id])
      const bytes = rows[0]?.bytes
      return bytes instanceof Uint8Array ? Uint8Array.from(bytes) : null
    },
    async has(id) {
      return (await pool.query('select 1 from tidemark_blobs where id = $1', [id])).rows.length > 0
    },
  }
}
