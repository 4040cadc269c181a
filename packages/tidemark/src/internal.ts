/**
 * `tidemark/internal`: what the command and the tests of this repository use beyond the public entries. No promise, and not
 * published: the subpath exists only under the `tidemark-source` condition.
 */

export { REDACTED, redact, redactAll } from '@tidemark/core'
export {
  compactLog,
  type UndoLogOptions,
  type UndoLogResult,
  type UndoPreview,
  type UndoReport,
  undoLog,
} from './compact/compact-log.ts'
export type {
  CompactionPreview,
  CompactionPrice,
  CompactionReport,
  CompactionStep,
  CompactLogOptions,
  CompactLogRefusal,
  CompactLogResult,
  PlannedCompaction,
  Portion,
  WrittenLog,
} from './compact/compact-report.ts'
export {
  explainBadOutput,
  type WriteSessionOptions,
  type WriteSessionResult,
  writeSession,
} from './compact/write-log.ts'
export {
  chooseSession,
  filterSince,
  parseRowNumber,
  parseSince,
  type SessionChoice,
  SORT_KEYS,
  type SortKey,
  shortenIds,
  sortSessions,
} from './inspect/choose-session.ts'
export {
  findNamedLogs,
  findRepository,
  type InspectionResult,
  type InspectOptions,
  type InspectProgress,
  inspectFiles,
  type NamedLog,
  type SpendingTotal,
  type SpendingTotals,
  sumSessions,
  type UnreadableLog,
} from './inspect/inspect-files.ts'
export { type InspectLogOptions, inspectLog } from './inspect/inspect-log.ts'
export type {
  AgentReport,
  BreakCause,
  CacheLossCosts,
  CacheReport,
  ClearingCost,
  ContentTokens,
  ContextCurve,
  ContextPoint,
  CostReport,
  CostSummary,
  DailySpending,
  EstimatorReport,
  LargeBlock,
  LogDamage,
  LoggedCacheBreak,
  LoggedClearing,
  LoggedCompaction,
  RepeatedRead,
  SessionReport,
  TokenClassCost,
  ToolTokens,
  UsageTotals,
} from './inspect/report.ts'
export { createDayFormatter, type DayFormatter } from './inspect/spending.ts'
export {
  type ExportLogOptions,
  type ExportOutcome,
  exportLog,
  exportLogToFile,
  type MarkdownExport,
} from './logs/export-log.ts'
export {
  defaultLogLocations,
  findDefaultLogs,
  type LogEnvironment,
  type LogLocation,
} from './logs/find-logs.ts'
export {
  type DeleteSessionOutcome,
  deleteSession,
  listSessions,
  type SessionInfo,
  type SessionListing,
  type SessionMatch,
  searchSessions,
} from './logs/own-sessions.ts'
export { type AgentLog, type LogContents, type ReadLogOptions, readLog } from './logs/read-session.ts'
export { type RepairOptions, type RepairOutcome, type RepairReport, repairLog } from './logs/repair-log.ts'
export { type AnthropicOptions, anthropic, type PriceOverrides } from './models/anthropic.ts'
export { type AnthropicModelOptions, createAnthropicModel } from './models/anthropic-http.ts'
export type { ConnectOptions, ModelChoice, RetryInfo } from './models/model-choice.ts'
export { createDeadlines, systemClock, systemIds } from './platform/node-ports.ts'
export {
  type OwnerStatus,
  type Processes,
  type ProcessIdentity,
  systemProcesses,
} from './platform/processes.ts'
export {
  compareHitRates,
  type DetectedCacheTtl,
  type HitRateComparison,
  type ReplayedCall,
  replayTrace,
  type TraceReplay,
} from './replay/replay-trace.ts'
export {
  hasNoEvents,
  type ReadTraceResult,
  readTrace,
  type Trace,
  type TraceCall,
  type TraceEvent,
  type TraceInputBlock,
  type TraceUsage,
} from './replay/trace.ts'
export type { EventOf, EventStream, SessionEvent, SessionEventType } from './session/events.ts'
export {
  type AttachmentInput,
  assistant,
  attachment,
  type Message,
  type MessageInput,
  type ToolResultOptions,
  toolResult,
  user,
} from './session/messages.ts'
export type { NextOptions, NextOutcome, ReadyRequest, RequestBody, UnansweredCalls } from './session/next.ts'
export type { ContextSources, SessionLocation, TidemarkOptions } from './session/options.ts'
export type {
  BusyOutcome,
  CompactOptions,
  PinOutcome,
  RewriteOptions,
  UndoOptions,
} from './session/rewrite.ts'
export type { Run, RunOptions, RunOutcome } from './session/run.ts'
export type { Session } from './session/session.ts'
export type { ContextBreakdown, ContextRemaining, ContextShare, MessageShare } from './session/status.ts'
export type { SwitchOutcome, SwitchRefusal } from './session/switch-model.ts'
export { createTidemark, type OpenOptions, type Tidemark } from './session/tidemark.ts'
export type {
  RunToolCall,
  Tool,
  ToolContext,
  ToolDefinitions,
  ToolOptions,
  ToolOutput,
  Tools,
} from './session/tools.ts'
export { createDiskFileReader, type DiskSourcesOptions, diskSources } from './sources/disk-sources.ts'
export { type BlobFolderOptions, createBlobFolder } from './storage/blob-folder.ts'
export {
  createFileJournal,
  createSingleLogJournal,
  type FileJournal,
  type FileJournalOptions,
} from './storage/file-journal.ts'
export {
  type DirectoryEntry,
  type FileFacts,
  type FileSystem,
  nodeFileSystem,
  type OpenFile,
  type OpenMode,
} from './storage/file-system.ts'
export type { LockedResult } from './storage/journal-lock.ts'
export {
  blobsFolder,
  checkSessionId,
  type HomeEnvironment,
  isSessionId,
  type SessionPaths,
  sessionPaths,
  sessionsFolder,
  tidemarkHome,
} from './storage/paths.ts'
