/**
 * Background jobs of pg-boss in the same database: delete sessions unused for too long and objects of deleted ones, and settle
 * calls of dead processes. If a process is killed, another one takes over its job.
 */
import { PgBoss } from 'pg-boss'
import type { Database } from '../database/database.ts'
import { deleteUnusedObjects } from '../database/large-lines.ts'
import type { ObjectStore } from '../database/object-store.ts'
import { deleteSession } from '../database/session-stores.ts'
import { settleAbandonedCalls } from '../spending/budget.ts'

interface JobOptions {
  readonly database: Database
  /** Days without a request after which a session is deleted; null to keep all. */
  readonly retentionDays: number | null
  /** Where large lines and blobs are; null for the database. */
  readonly objects: ObjectStore | null
  readonly onError: (message: string) => void
}

export interface BackgroundJobs {
  close(): Promise<void>
}

export const UPKEEP_QUEUE = 'tidemark-gateway-upkeep'
/** Every minute, pg-boss starts one job for all processes together. */
const SCHEDULE = '* * * * *'
/** Maximum sessions that one job deletes, so that no job runs for long. */
const BATCH = 500

export async function startBackgroundJobs(options: JobOptions): Promise<BackgroundJobs> {
  const { database, retentionDays, objects, onError } = options
  const boss = new PgBoss({
    // The jobs use the gateway's pool, so that one limit of connections applies.
    db: {
      executeSql: async (text, values) => database.query(text, values === undefined ? [] : [...values]),
    },
    schema: 'tidemark_jobs',
  })
  boss.on('error', (error) => onError(readErrorMessage(error)))
  await runAlone(database, () => boss.start())
  await boss.createQueue(UPKEEP_QUEUE, { policy: 'short', retryLimit: 2, expireInSeconds: 300 })
  await boss.schedule(UPKEEP_QUEUE, SCHEDULE)
  await boss.work(UPKEEP_QUEUE, async () => {
    await runUpkeep(database, retentionDays, objects)
  })
  return { close: () => boss.stop({ graceful: true, timeout: 5_000 }) }
}

/** Reads the message without `instanceof`, because pg-boss also reports plain copies of errors. */
function readErrorMessage(error: { readonly message?: unknown }): string {
  return typeof error.message === 'string' ? error.message : 'A job failed.'
}

/** Number of the advisory lock for creating the tables of pg-boss. Two processes that start at once would otherwise fail. */
const START_LOCK = 7_433_303

async function runAlone(database: Database, work: () => Promise<unknown>): Promise<void> {
  const connection = await database.connect()
  const ignore = (): void => {}
  connection.on('error', ignore)
  try {
    await connection.query(`select pg_advisory_lock(${START_LOCK})`)
    await work()
  } finally {
    // Closing the connection releases the lock in every case.
    connection.release(true)
  }
}

interface Upkeep {
  readonly settled: number
  /** Deleted sessions. */
  readonly deleted: number
  /** Deleted objects. */
  readonly objects: number
}

/**
 * Does one job: settles calls of dead processes, and deletes unused sessions and objects, at most 500 of each. `retentionDays`:
 * null to keep all sessions. `objects`: null if there is no store. Several processes may call this at once.
 */
export async function runUpkeep(
  database: Database,
  retentionDays: number | null,
  objects: ObjectStore | null = null,
): Promise<Upkeep> {
  const settled = await settleAbandonedCalls(database)
  await database.query("delete from gateway_processes where seen_at < now() - interval '1 day'")
  const deleted = retentionDays === null ? 0 : await deleteUnusedSessions(database, retentionDays)
  return { settled, deleted, objects: objects === null ? 0 : await deleteUnusedObjects(database, objects) }
}

async function deleteUnusedSessions(database: Database, retentionDays: number): Promise<number> {
  const unusedSeconds = retentionDays * 86_400
  const { rows } = await database.query<{ scope: string; session: string }>(
    // Compared by the clock of the database, which also wrote `used_at`, because the clock of a process may be days ahead.
    'select scope, session from gateway_sessions where used_at <= now() - make_interval(secs => $1) order by used_at limit $2',
    [unusedSeconds, BATCH],
  )
  let deleted = 0
  for (const { scope, session } of rows)
    if ((await deleteSession(database, { scope, session, actor: 'retention', unusedSeconds })) !== null)
      deleted += 1
  return deleted
}
