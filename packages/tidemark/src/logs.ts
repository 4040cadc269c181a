/**
 * `tidemark/logs`: finds, reads, inspects, compacts, repairs and exports past sessions of Claude Code, Codex and Tidemark.
 *
 * @module tidemark/logs
 */

export { compactLog, type UndoReport, undoLog } from './compact/compact-log.ts'
export type { CompactionReport, CompactLogOptions } from './compact/compact-report.ts'
export {
  findRepository,
  type InspectionResult,
  type InspectOptions,
  inspectFiles,
  sumSessions,
} from './inspect/inspect-files.ts'
export { type InspectLogOptions, inspectLog } from './inspect/inspect-log.ts'
export type { SessionReport } from './inspect/report.ts'
export { exportLog, exportLogToFile } from './logs/export-log.ts'
export { findLogs } from './logs/find-logs.ts'
export {
  deleteSession,
  hasSession,
  listSessions,
  type SessionListing,
  type SessionMatch,
  searchSessions,
} from './logs/own-sessions.ts'
export { type LogContents, type ReadLogOptions, readLog } from './logs/read-log.ts'
export { type RepairReport, repairLog } from './logs/repair-log.ts'
export { findSessionWriter } from './storage/file-journal.ts'
export { isSessionId, sessionPaths, tidemarkHome } from './storage/home-paths.ts'
