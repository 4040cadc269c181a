/** The public names of what people install, one by one. */
export { type BlobFolderOptions, createBlobFolder } from './blobs/blob-folder.ts'
export type { DirectoryEntry, FileFacts, FilePort, OpenFile, OpenPurpose } from './files/file-port.ts'
export { nodeFiles } from './files/node-files.ts'
export { type HomeVariables, tidemarkHome } from './home/home.ts'
export { checkSessionId, isSessionId } from './home/session-id.ts'
export { blobsFolder, type SessionPaths, sessionPaths, sessionsFolder } from './home/session-paths.ts'
export { type AnthropicModelOptions, createAnthropicModel } from './http/anthropic-model.ts'
export {
  type Chosen,
  chooseSession,
  readSince,
  rowMeant,
  SORT_KEYS,
  type SortKey,
  shortIds,
  since,
  sortReports,
} from './inspect/choice.ts'
export {
  findNamedLogs,
  type Inspection,
  type InspectOptions,
  type InspectProgress,
  inspectFiles,
  type NamedLog,
  type Unreadable,
} from './inspect/inspect-files.ts'
export { type InspectRules, inspectLog } from './inspect/inspect-log.ts'
export { type Deletion, deleteOwnSession } from './inspect/own-deletion.ts'
export { findInOwnSessions, type OwnMatch } from './inspect/own-search.ts'
export { listOwnSessions, type OwnListing, type OwnSession } from './inspect/own-sessions.ts'
export { REDACTED, redact, redactAll } from './inspect/redact.ts'
export type {
  AgentReport,
  ClassPrice,
  ClearingFound,
  CompactionFound,
  ContextCurve,
  ContextPoint,
  DamagedPlace,
  EstimatorReport,
  LargeItem,
  MoneyReport,
  RepeatedRead,
  SessionReport,
  Spending,
  TokensByKind,
  ToolShare,
  UsageTotals,
} from './inspect/report.ts'
export { repositoryOf } from './inspect/repository.ts'
export { type DayOf, daysIn } from './inspect/spending-table.ts'
export { type Total, type Totals, totalsOf } from './inspect/totals.ts'
export { createFileJournal, type FileJournal, type FileJournalOptions } from './journal/file-journal.ts'
export type { Refusal } from './journal/lock.ts'
export {
  defaultPlaces,
  findDefaultLogs,
  type LogPlace,
  type PlaceVariables,
} from './reading/default-places.ts'
export { type AgentLog, type ReadLog, type ReadOptions, readLog } from './reading/read-log.ts'
export { type Repaired, type RepairOptions, type RepairOutcome, repairLog } from './reading/repair-log.ts'
export { type Fate, type Processes, type ProcessMark, systemProcesses } from './system/processes.ts'
export { systemClock } from './system/system-clock.ts'
export { systemIds } from './system/system-ids.ts'
