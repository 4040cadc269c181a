/** The public names of what people install, one by one. */

export { REDACTED, redact, redactAll } from '@tidemark/core'
export {
  compactLog,
  type UndoLogOptions,
  type UndoneLog,
  type UndoPreview,
  type UndoReport,
  undoLog,
} from './compact/compact-log.ts'
export type {
  CompactedLog,
  CompactionPreview,
  CompactionPrice,
  CompactionReport,
  CompactionStep,
  CompactLogOptions,
  CompactLogRefusal,
  PlannedCompaction,
  Portion,
  WrittenLog,
} from './compact/compact-report.ts'
export {
  outProblem,
  type SessionWriting,
  type WriteSessionOptions,
  writeSession,
} from './compact/write-log.ts'
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
} from './inspect/choose-session.ts'
export {
  findNamedLogs,
  type Inspection,
  type InspectOptions,
  type InspectProgress,
  inspectFiles,
  type NamedLog,
  repositoryOf,
  type Total,
  type Totals,
  totalsOf,
  type Unreadable,
} from './inspect/inspect-files.ts'
export { type InspectRules, inspectLog } from './inspect/inspect-log.ts'
export type {
  AgentReport,
  BreakCause,
  CacheBreak,
  CacheReport,
  ClassPrice,
  ClearingCost,
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
export { type DayOf, daysIn } from './inspect/spending.ts'
export {
  type ExportedLog,
  type ExportLogOptions,
  type ExportOutcome,
  exportLog,
  exportToFile,
} from './logs/export-log.ts'
export {
  defaultPlaces,
  findDefaultLogs,
  type LogPlace,
  type PlaceVariables,
} from './logs/find-logs.ts'
export {
  type Deletion,
  deleteOwnSession,
  findInOwnSessions,
  listOwnSessions,
  type OwnListing,
  type OwnMatch,
  type OwnSession,
} from './logs/own-sessions.ts'
export { type AgentLog, type ReadLog, type ReadOptions, readLog } from './logs/read-session.ts'
export { type Repaired, type RepairOptions, type RepairOutcome, repairLog } from './logs/repair-log.ts'
export { type AnthropicOptions, anthropic, type GivenPrices } from './models/anthropic.ts'
export { type AnthropicModelOptions, createAnthropicModel } from './models/anthropic-http.ts'
export type { ConnectSettings, ModelChoice, Retry } from './models/model-choice.ts'
export { createDeadlines, systemClock, systemIds } from './platform/node-ports.ts'
export { type Fate, type Processes, type ProcessMark, systemProcesses } from './platform/processes.ts'
export {
  type HitRates,
  hitRatesOf,
  type LifetimeFound,
  type ReplayedCall,
  replayTrace,
  type TraceReplay,
} from './replay/replay-trace.ts'
export {
  isEventFree,
  readTrace,
  type Trace,
  type TraceCall,
  type TraceEvent,
  type TracePiece,
  type TraceReading,
  type TraceUsage,
} from './replay/trace.ts'
export type { EventOf, EventStream, SessionEvent, SessionEventType } from './session/events.ts'
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
export type { NextOptions, NextOutcome, OpenCalls, ReadyRequest, RequestBody } from './session/next.ts'
export type { Carriers, SessionPlace, TidemarkOptions } from './session/options.ts'
export type { ActOptions, Busy, CompactOptions, PinOutcome, UndoOptions } from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
export type { Session } from './session/session.ts'
export type { Breakdown, ContextLeft, MessageShare, Share } from './session/status.ts'
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
export { createDiskReader, type DiskCarriersOptions, diskCarriers } from './sources/disk-sources.ts'
export { type BlobFolderOptions, createBlobFolder } from './storage/blob-folder.ts'
export {
  createFileJournal,
  createOneLogJournal,
  type FileJournal,
  type FileJournalOptions,
} from './storage/file-journal.ts'
export {
  type DirectoryEntry,
  type FileFacts,
  type FilePort,
  nodeFiles,
  type OpenFile,
  type OpenPurpose,
} from './storage/file-system.ts'
export type { Refusal } from './storage/journal-lock.ts'
export {
  blobsFolder,
  checkSessionId,
  type HomeVariables,
  isSessionId,
  type SessionPaths,
  sessionPaths,
  sessionsFolder,
  tidemarkHome,
} from './storage/paths.ts'
