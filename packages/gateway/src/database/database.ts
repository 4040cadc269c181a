/** The pool of connections to Postgres, queries and transactions. Errors never show the password in the address. */
import { TidemarkError } from '@tidemark/core/errors'
import pg from 'pg'

export type Database = pg.Pool

/** Maximum connections of one process: four for session locks, one for jobs, the others for queries. */
const MOST_CONNECTIONS = 12
const CONNECT_MS = 5_000

/** Opens a pool, without a connection yet. Throws `bad-option` if `url` is not a Postgres address. */
export function openDatabase(url: string, options: { readonly connections?: number } = {}): Database {
  const protocol = URL.canParse(url) ? new URL(url).protocol : ''
  if (protocol !== 'postgres:' && protocol !== 'postgresql:')
    throw new TidemarkError(
      'bad-option',
      'database: expected an address such as postgres://host:5432/name.',
      { details: { option: 'database' } },
    )
  const pool = new pg.Pool({
    connectionString: url,
    max: options.connections ?? MOST_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'tidemark gateway',
  })
  // A server that is stopped closes idle connections. The next query reports that; without a listener, the process would end.
  pool.on('error', () => {})
  return pool
}

/** Time limit for queries that a client waits for. A server that hangs is treated like one that is down. */
const PROMPT_MS = 5_000

/**
 * Runs a short query that a request waits for. Rejects after five seconds (`PROMPT_MS`) without an answer. `name`: for a query
 * that is prepared once per connection; it must list its columns, because a newer gateway may add some to the table.
 */
export function queryPromptly(
  pool: Pick<Database, 'query'>,
  text: string,
  values: readonly unknown[] = [],
  name?: string,
): Promise<pg.QueryResult> {
  // Connections support this option, but the types of `pg` do not have it.
  const query: pg.QueryConfig & { readonly query_timeout: number } = {
    ...(name === undefined ? {} : { name }),
    text,
    values: [...values],
    query_timeout: PROMPT_MS,
  }
  return pool.query(query)
}

/** Runs `work` in one transaction, which is committed when `work` resolves and rolled back if anything fails. */
export async function runTransaction<T>(
  pool: Pick<Database, 'connect'>,
  work: (connection: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const connection = await pool.connect()
  const ignore = (): void => {}
  connection.on('error', ignore)
  try {
    await connection.query('begin')
    const result = await work(connection)
    await connection.query('commit')
    connection.off('error', ignore)
    connection.release()
    return result
  } catch (thrown) {
    // Whether the server did the work is unknown, so the connection is closed and the server rolls back.
    connection.release(true)
    throw thrown
  }
}

/** Returns a message for the operator: why the database cannot be used, and what to check. */
export function describeDatabaseError(thrown: unknown): string {
  const all = thrown instanceof AggregateError ? thrown.errors : [thrown]
  const why = all.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
  return `The database does not answer: ${why}. Check --database, and that Postgres runs.`
}
