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
  RecordsAndTokens,
  WrittenLog,
} from './compact/compact-report.ts'
export { findOutputProblem, writeLogAndBlobs } from './compact/write-log.ts'
export { withoutAddedUsage, withUsageAsked } from './dropin/added-usage.ts'
export { copyHead, isEventStream } from './dropin/client-response.ts'
export {
  findDepartedText,
  listDepartedTexts,
  listDepartures,
  searchDepartures,
} from './explore/departures.ts'
export type {
  DepartedMatch,
  Departure,
  ListedSession,
  PolicyResult,
  RequestContents,
  SessionList,
  SessionOwner,
  SessionPage,
  SpendingRow,
  TeamFigures,
  TeamKey,
  TeamLoss,
  TeamViewer,
  UndoOutcome,
  UndoState,
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
export { createLogNotes, followLogNotes, type LogNotes } from './logs/log-notes.ts'
export { hasSession, resolveLogPath, type SessionInfo } from './logs/own-sessions.ts'
export { readLogText } from './logs/read-log.ts'
export { createRefusalResponse, LIMIT_STATUS } from './models/client-error.ts'
export { createHttpModel } from './models/http-model.ts'
export { createModelOfClient, findRouteByPath, PROVIDERS } from './models/providers.ts'
export { createDeadlines, systemIds } from './platform/node-ports.ts'
export {
  type AdmittedRequest,
  closeServer,
  createClientHost,
  createUpstreamFinder,
  listenOn,
  PROVIDER_UPSTREAMS,
  type RefusedRequest,
  sendUpstream,
} from './proxy/client-host.ts'
export { serveLoopbackProxy } from './proxy/loopback-proxy.ts'
export { countBlockTokens, RELATIVE_RATES } from './replay/billed-cache.ts'
export { collectTextLines, listEditAnchors, listStrings } from './replay/edit-anchors.ts'
export { createEnginePolicy, SUMMARY_TOKENS } from './replay/engine-policy.ts'
export type { PolicyReplay } from './replay/policy-replay.ts'
export { type RecordedSession, readRecordedSession } from './replay/recorded-session.ts'
export {
  isPresetName,
  type LogReplay,
  type NamedPolicy,
  replayLog,
} from './replay/replay-log.ts'
export {
  type BilledRequest,
  createStandInText,
  FILE_NOTICE,
  listRequestBlocks,
  type ReplayedAgent,
  type ReplayedAgentInput,
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
