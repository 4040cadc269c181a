/**
 * `tidemark/internal`: exports that only other packages and tests of this repository use, such as the command, the
 * gateway and the page. The subpath is not published (it exists only under the `tidemark-source` condition) and may
 * change at any time.
 */

export { redactStrings } from '@tidemark/core/text/redact'
export { DIALECT_NAMES, type DialectName } from '@tidemark/wire/openai/dialects'
export { findRecordIdProblem } from './compact/compact-log.ts'
export type {
  CompactionPreview,
  CompactLogRefusal,
  LogCopy,
  RecordsAndTokens,
} from './compact/compact-report.ts'
export { findOutputProblem, writeLogAndBlobs } from './compact/write-log.ts'
export { copyResponseHead, isEventStream } from './dropin/client-response.ts'
export { withoutAddedUsage, withUsageRequested } from './dropin/stream-usage.ts'
export {
  findRemovedBlockText,
  listContextRemovals,
  listRemovedBlockTexts,
  searchRemovedBlocks,
} from './explore/context-removals.ts'
export type {
  ContextRemoval,
  ListedSession,
  PagePolicyReplay,
  PageUndoOutcome,
  RemovedBlockMatch,
  RequestContents,
  SessionList,
  SessionOwner,
  SessionPageData,
  SpendingRow,
  TeamCacheLoss,
  TeamFigures,
  TeamKeySpending,
  TeamViewer,
  UndoAvailability,
} from './explore/page-data.ts'
export { readRequestDetail } from './explore/request-detail.ts'
export {
  chooseSession,
  filterSessionsSince,
  parseRowNumber,
  parseSinceTime,
  shortenSessionIds,
} from './inspect/choose-session.ts'
export {
  findNamedLogs,
  type NamedLog,
  type SortKey,
  type SpendingTotal,
  sortSessions,
  sumSessions,
  type UnreadableLog,
} from './inspect/inspect-files.ts'
export type { ClearingCost, LoggedCacheBreak } from './inspect/report.ts'
export { createDayFormatter } from './inspect/spending.ts'
export { type ClientTidemark, createClientTidemark } from './library/client-tidemark.ts'
export { exportLogToFile } from './logs/export-log.ts'
export { findDefaultLogs, listDefaultLogFolders } from './logs/find-logs.ts'
export type { BlobCopyReport } from './logs/log-blobs.ts'
export { createLogNotes, followLogNotes, type NotesFromLog } from './logs/log-notes.ts'
export { hasSession, resolveLogPath, type SessionInfo } from './logs/own-sessions.ts'
export { readLogText } from './logs/read-log.ts'
export { createRefusalResponse, LIMIT_STATUS } from './models/client-error.ts'
export { createHttpModel } from './models/http-model.ts'
export { createClientNamedModel, findRouteByPath, PROVIDERS } from './models/providers.ts'
export { createDeadlines, systemIds } from './platform/node-ports.ts'
export {
  type AdmittedRequest,
  closeServer,
  createClientServer,
  createUpstreamFinder,
  listenOn,
  PROVIDER_UPSTREAMS,
  type RefusedRequest,
  sendUpstream,
} from './proxy/client-server.ts'
export { serveLoopbackProxy } from './proxy/loopback-proxy.ts'
export { countBlockTokens, RELATIVE_RATES } from './replay/billed-cache.ts'
export { ASSUMED_SUMMARY_TOKENS, createEnginePolicy } from './replay/engine-policy.ts'
export type { PolicyReplay } from './replay/policy-replay.ts'
export { type RecordedSession, readRecordedSession } from './replay/recorded-session.ts'
export { collectTextLines, listReplacedLines, listStrings } from './replay/replaced-lines.ts'
export {
  isPresetName,
  type LogReplay,
  type NamedPolicy,
  replayLog,
} from './replay/replay-log.ts'
export {
  ATTACHED_FILE_PREFIX,
  type BilledRequest,
  createStandInText,
  listRequestBlocks,
  type ReplayEnvironment,
  type ReplayedAgent,
  type ReplayedInput,
  type ReplayOptions,
  type ReplayPolicy,
  type ReplayTotals,
  type RewriteReport,
  replaySession,
  type TooLongRequest,
} from './replay/replay-session.ts'
export { computeBlobId, copyBlobBytes } from './storage/blob-folder.ts'
export { createSingleLogJournal } from './storage/file-journal.ts'
export { type FileSystem, nodeFileSystem, type OpenFile } from './storage/file-system.ts'
export { isSessionId, sessionPaths, tidemarkHome } from './storage/home-paths.ts'
