/** The connection to Postgres: a pool whose errors are described for a user, and never show the password in the address. */
import { TidemarkError } from '@tidemark/core/errors'
import pg from 'pg'

export type Database = pg.Pool

/** Connections of one process: four for the locks of sessions, one for jobs, the others for queries. */
const MOST_CONNECTIONS = 12
const CONNECT_MS = 5_000

/** Opens a pool. Nothing is connected yet. Throws `bad-option` if `url` is no address of a Postgres database. */
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
  // A server that is stopped ends idle connections. The next query says so; without a listener the process would end.
  pool.on('error', () => {})
  return pool
}

/** A client waits for these answers: a server that hangs is as one that is away. */
const PROMPT_MS = 5_000

/**
 * Runs a short query for which a request waits. Rejects if the server does not answer within some seconds. One with a name is
 * planned once on each connection: it must name its columns, since a newer version may add some.
 */
export function queryPromptly(
  pool: Pick<Database, 'query'>,
  text: string,
  values: readonly unknown[] = [],
  name?: string,
): Promise<pg.QueryResult> {
  // A connection has this option, its types do not.
  const query: pg.QueryConfig & { readonly query_timeout: number } = {
    ...(name === undefined ? {} : { name }),
    text,
    values: [...values],
    query_timeout: PROMPT_MS,
  }
  return pool.query(query)
}

/** Runs `work` in one transaction. */
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
    // What the server did of it is not known: the connection is not used again, and the server rolls back.
    connection.release(true)
    throw thrown
  }
}

/** Returns why the database cannot be used, as one sentence for the operator. */
export function describeDatabaseError(thrown: unknown): string {
  const all = thrown instanceof AggregateError ? thrown.errors : [thrown]
  const why = all.map((each) => (each instanceof Error ? each.message : String(each))).join('; ')
  return `The database does not answer: ${why}. Check --database, and that Postgres runs.`
}
