/**
 * The entry point `tidemark/sqlite`: session logs in one SQLite file. Needs Node 22.13 or newer.
 *
 * @module tidemark/sqlite
 */
export {
  createSqliteJournal,
  type SqliteJournal,
  type SqliteJournalOptions,
} from './storage/sqlite-journal.ts'
