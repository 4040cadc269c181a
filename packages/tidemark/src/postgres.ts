/**
 * The entry point `tidemark/postgres`: session logs and blobs in Postgres, through a pool of the package `pg`.
 *
 * @module tidemark/postgres
 */
export {
  createPostgresBlobs,
  createPostgresJournal,
  createPostgresTables,
  type PostgresJournal,
  type PostgresJournalOptions,
  type PostgresPool,
} from './storage/postgres-journal.ts'
