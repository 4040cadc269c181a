/**
 * The entry point `tidemark/postgres`: session logs and blobs in Postgres, through a pool of the package `pg`.
 *
 * @module tidemark/postgres
 */
export {
  createPostgresBlobs,
  createPostgresJournal,
  createPostgresLocks,
  createPostgresTables,
  type PostgresJournal,
  type PostgresJournalOptions,
  type PostgresLocks,
  type PostgresPool,
} from './storage/postgres-journal.ts'
