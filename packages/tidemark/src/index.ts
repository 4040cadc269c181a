/** The public names of what people install, one by one. */

export { REDACTED, redact, redactAll } from '@tidemark/core'
export { type BlobFolderOptions, createBlobFolder } from './blobs/blob-folder.ts'
export { type DiskCarriersOptions, diskCarriers } from './carry/disk-carriers.ts'
export { createDiskReader } from './carry/disk-reader.ts'
export { compactLog } from './compact/compact-log.ts'
export type {
  CompactedLog,
  CompactLogOptions,
  CompactLogRefusal,
  WrittenLog,
} from './compact/compact-options.ts'
export type {
  CompactionPreview,
  CompactionReport,
  PlannedCompaction,
  Portion,
} from './compact/compact-report.ts'
export type { CompactionStep } from './compact/compaction-trace.ts'
export { createOneLogJournal } from './compact/one-log-journal.ts'
export type { CompactionPrice } from './compact/price.ts'
export {
  type UndoLogOptions,
  type UndoneLog,
  type UndoPreview,
  type UndoReport,
  undoLog,
} from './compact/undo-log.ts'
export {
  outProblem,
  type SessionWriting,
  type WriteSessionOptions,
  writeSession,
} from './compact/write-session.ts'
export {
  type ExportedLog,
  type ExportLogOptions,
  type ExportOutcome,
  exportLog,
  exportToFile,
} from './export/export-log.ts'
export type { DirectoryEntry, FileFacts, FilePort, OpenFile, OpenPurpose } from './files/file-port.ts'
export { nodeFiles } from './files/node-files.ts'
export { type HomeVariables, tidemarkHome } from './home/home.ts'
export { checkSessionId, isSessionId } from './home/session-id.ts'
export { blobsFolder, type SessionPaths, sessionPaths, sessionsFolder } from './home/session-paths.ts'
export { type AnthropicModelOptions, createAnthropicModel } from './http/anthropic-model.ts'
export type { BreakCause, CacheBreak, CacheReport, ClearingCost } from './inspect/breaks/cache-report.ts'
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
  MoneyLost,
  MoneyReport,
  MoneySpent,
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
export { type HitRates, hitRatesOf } from './replay/hit-rates.ts'
export { readTrace, type TraceReading } from './replay/read-trace.ts'
export { type ReplayedCall, replayTrace, type TraceReplay } from './replay/replay-trace.ts'
export {
  isEventFree,
  type Trace,
  type TraceCall,
  type TraceEvent,
  type TracePiece,
  type TraceUsage,
} from './replay/trace.ts'
export type { LifetimeFound } from './replay/trace-lifetime.ts'
export { type AnthropicOptions, anthropic, type GivenPrices } from './session/anthropic.ts'
export type { Breakdown, MessageShare, Share } from './session/breakdown.ts'
export type { ContextLeft } from './session/context-left.ts'
export type { EventStream } from './session/event-stream.ts'
export {
  assistant,
  attachment,
  type Said,
  type SaidAttachment,
  type SaidMessage,
  type ToolResultOptions,
  toolResult,
  user,
} from './session/messages.ts'
export type { ConnectSettings, ModelChoice, Retry } from './session/model-choice.ts'
export type { NextOptions, NextOutcome, OpenCalls, ReadyRequest, RequestBody } from './session/next.ts'
export type { Carriers, SessionPlace, TidemarkOptions } from './session/options.ts'
export type { ActOptions, Busy, CompactOptions, PinOutcome, UndoOptions } from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
export type { Session } from './session/session.ts'
export type { EventOf, SessionEvent, SessionEventType } from './session/session-event.ts'
export type { SwitchOutcome, SwitchRefused } from './session/switch-model.ts'
export { createTidemark, type OpenOptions, type Tidemark } from './session/tidemark.ts'
export type {
  GivenTools,
  RunCall,
  Tool,
  ToolContext,
  ToolDefinitions,
  ToolOutput,
  Tools,
} from './session/tools.ts'
export { createDeadlines } from './system/deadlines.ts'
export { type Fate, type Processes, type ProcessMark, systemProcesses } from './system/processes.ts'
export { systemClock } from './system/system-clock.ts'
export { systemIds } from './system/system-ids.ts'
