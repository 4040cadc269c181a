/** The public names of the engine, one by one. */

export {
  type ActPaid,
  type Announcement,
  type BreakEvent,
  type Circumstance,
  countText,
  type Difference,
  durationText,
  type MessageDifference,
  type OwnAct,
  type ProviderWord,
  type ProviderZone,
  providerWord,
  type Reason,
} from './cache/cache-break.ts'
export {
  type Forecast,
  type ForecastReason,
  forecastRead,
  forecastSent,
  learnFromFork,
  learnFromResponse,
  recallLineage,
} from './cache/cache-forecast.ts'
export { cacheExpiry, type Lineage, NO_LINEAGE } from './cache/cache-model.ts'
export {
  announceAct,
  type BreakRules,
  type CacheAnswer,
  type CacheOutcome,
  type CacheWatch,
  emptyCacheWatch,
  takeSnapshot,
} from './cache/cache-monitor.ts'
export {
  type CacheTemperature,
  type CallRuns,
  COLD,
  cacheTemperature,
  callsToCome,
  type FirstChange,
  NO_RUNS,
  type TemperatureQuestion,
  tallyCall,
} from './cache/cache-temperature.ts'
export {
  type Compared,
  compareAnswer,
  isBreak,
  moneyLost,
  ratesOf,
  tokensLost,
} from './cache/detect-break.ts'
export type { Redact } from './cache/request-diff.ts'
export {
  type Hand,
  type Sending,
  type SentMarker,
  type SentParameters,
  type SentPiece,
  type SentRequest,
  sentParameters,
  sentRequest,
  type WatchedRequest,
} from './cache/sent-request.ts'
export {
  deletedTokens,
  dropDeletions,
} from './clearing/cached-clearing.ts'
export { type Clearing, type ClearingQuestion, proposeClearing } from './clearing/propose-clearing.ts'
export {
  type AppliedEdits,
  type NativeEdits,
  nativeClearing,
  nativeEdits,
  type ProviderEdit,
  readApplied,
  type SpelledEdit,
  spellEdits,
} from './clearing/provider-clearing.ts'
export {
  type ClearProposal,
  firstClearable,
  HISTORY_TOOL,
  howToGet,
  NO_PATHS,
  type Released,
  type RetrievalPaths,
} from './clearing/select-results.ts'
export {
  emptyRegister,
  type HostTools,
  type Register,
  type RegisterRules,
  type RulesQuestion,
  registerRules,
} from './clearing/tool-result-index.ts'
export { advanceRegister } from './clearing/update-index.ts'
export { type Committed, commitCompaction } from './compaction/commit.ts'
export { compact } from './compaction/compact.ts'
export type { CompactionDraft } from './compaction/draft.ts'
export { type CompactAsked, type CompactionPlan, planCompaction } from './compaction/plan-compaction.ts'
export { prepareCompaction } from './compaction/prepare-draft.ts'
export {
  type Act,
  advance,
  chooseUndo,
  emptyView,
  type UndoChoice,
  type View,
  viewOf,
} from './context/context-view.ts'
export { cutAtOrBefore, legalCuts, roundsOf } from './context/cut-points.ts'
export type { Cleared, Entry } from './context/entry.ts'
export { entryEndsTurn, isShown, partsOf } from './context/entry.ts'
export {
  type Flat,
  type FlatMessage,
  flatMessagesOf,
  flatten,
  messagesOf,
  openCalls,
  repairsOf,
  settlingRecord,
} from './context/flatten.ts'
export type { ApiMessage, Payload, Role } from './context/payload.ts'
export {
  MISSING_RESULT_TEXT,
  missingResult,
  type OpenCall,
  type Repair,
  type RepairKind,
} from './context/tool-pairing.ts'
export {
  addMoney,
  type Money,
  NO_MONEY,
  type Prices,
  type PriceTier,
  priceOf,
  priceTokens,
  priceUncached,
  type Rates,
  ratesFor,
} from './cost/prices.ts'
export {
  addTokens,
  advanceMoney,
  type BilledCall,
  COMPACTION,
  loggedCall,
  type MoneyTotals,
  moneyTotals,
  NO_TOKENS,
  noMoney,
  type PricedCall,
  type PriceList,
  priceCall,
  type SessionMoney,
} from './cost/session-cost.ts'
export { closeCall, type OpenedCall, withMoney } from './engine/call-model.ts'
export type {
  Compacted,
  FloorItem,
  ForkRead,
  Halt,
  RewriteEvent,
  RewriteRefusal,
  RewriteRefused,
  TurnDone,
  TurnEvent,
  TurnOutcome,
} from './engine/events.ts'
export type {
  Cleanup,
  CleanupFault,
  CompactHooks,
  CompactingHost,
  Hook,
  HookContext,
  Offered,
  OtherSummariser,
  RawSummary,
  Rewritten,
  Room,
  RunTool,
  SummaryQuestion,
  ToolAnswer,
  TurnHost,
  WriteSummary,
  WrittenSummary,
} from './engine/host.ts'
export { contextNow, measureNow, prefixTokens, UNDO_NOTICE, undoings } from './engine/measure-context.ts'
export type {
  AppendOutcome,
  BlobStore,
  Bounded,
  Clock,
  Deadlines,
  Ids,
  Journal,
  JournalState,
  Model,
  ModelCall,
  NewRecord,
  Signal,
} from './engine/ports.ts'
export {
  type Assembly,
  assemble,
  type BlockDelta,
  type BlockEnded,
  collect,
  emptyAssembly,
  type Failure,
  type FailureKind,
  type OpenBlock,
  type Reply,
  type ReplyEnded,
  type ReplyEvent,
  type ReplyFailed,
  type ReplyUpdated,
  replyOf,
  type TokenGap,
} from './engine/reply.ts'
export { catchUp, openSession, type RoomState, type SessionState } from './engine/session-state.ts'
export { type Alone, append, refresh, type TurnRun, type Unlinked } from './engine/session-writer.ts'
export { type ForkAsked, type ForkEnd, forkRequest, runFork } from './engine/side-call.ts'
export { TidemarkError } from './errors.ts'
export { exportMarkdown, markdownPieces } from './history/export-markdown.ts'
export { type HistoryAnswer, historyTool, runHistory } from './history/history-tool.ts'
export type { HistorySource } from './history/search.ts'
export { type BlobReader, restoreRecord, type SpillQuestion, spill } from './history/spill.ts'
export type { Damage, DamageKind } from './log/batch.ts'
export {
  type Block,
  blocksOf,
  type Content,
  isBlankText,
  isBlock,
  isCompactionBlock,
  isMedia,
  isServerToolResult,
  isServerToolUse,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  type ToolUseBlock,
} from './log/block.ts'
export { type Decoded, decodeRecord, LOG_VERSION, newHeader } from './log/decode-record.ts'
export {
  arrayText,
  elementsOf,
  firstNonJson,
  isObject,
  isTooDeep,
  type Json,
  type JsonObject,
  MAX_DEPTH,
  type Member,
  memberOf,
  membersOf,
  objectText,
  rawBlocksIn,
  rawUnlessSurvives,
  readJson,
  survives,
  withMember,
  withoutMember,
} from './log/json.ts'
export {
  createLineReader,
  type LineReader,
  type LogEnd,
  type ReadingOptions,
  type ReadingStart,
} from './log/log-reader.ts'
export { List } from './log/persistent-collections.ts'
export {
  type AssistantMessage,
  type AssistantRecord,
  type Attachment,
  type AttachmentRecord,
  type BatchStamp,
  CACHE_EDITS_DROPPED,
  type CacheLoss,
  CLEARED_TEXT,
  type ClearedInput,
  type ClearedMedia,
  type ClearWay,
  type CompactBoundary,
  type CompactCause,
  type CompactMetadata,
  type CompactTrigger,
  type Delta,
  type Epoch,
  type EpochSection,
  endsTurn,
  goesBeyondResults,
  isAct,
  isCompactBoundary,
  isKnown,
  isMicrocompactBoundary,
  isPrompt,
  isSyntheticError,
  type KnownRecord,
  type MicrocompactBoundary,
  type MicrocompactMetadata,
  type PreservedMessages,
  type PreservedSegment,
  type RawBlock,
  type RecordBase,
  type SessionRecord,
  type Spilled,
  SYNTHETIC_MODEL,
  type SystemRecord,
  typedText,
  type Usage,
  type UserRecord,
} from './log/record.ts'
export { emptySession, historyOf, placeOf, recordAt, reduce, type Session, sessionOf } from './log/session.ts'
export type { TodoItem } from './log/todo-list.ts'
export {
  describeToolCall,
  type FileTouch,
  plainPath,
  type Replacement,
  resultText,
  type ToolCallFacts,
  type ToolKind,
  type ToolRun,
} from './log/tool-calls.ts'
export { type Plan, plan } from './planner/plan.ts'
export {
  type CompactionOutlook,
  type Moment,
  NO_TRACKING,
  type OptimalTrigger,
  optimalTrigger,
  type PlanContext,
  usualOutlook,
} from './planner/plan-input.ts'
export { createPolicy, DEFAULT_POLICY } from './policy/create-policy.ts'
export {
  type Budgets,
  type KnownWindow,
  type LadderState,
  type Lines,
  type ModelSize,
  type ScaledPolicy,
  type SpillBudgets,
  scalePolicy,
  smallestWindow,
  standOn,
} from './policy/limits.ts'
export { type EstimatePolicy, type Policy, policyPaths, policyValue } from './policy/policy.ts'
export { type DeepPartial, nearest, type Problem, show } from './policy/policy-fields.ts'
export {
  createProfile,
  type Profile,
  type ProfileOverrides,
  strictProfile,
} from './policy/provider-profile.ts'
export {
  mechanismStates,
  NO_SWITCHES,
  readSwitches,
  type Switches,
  type SwitchName,
} from './policy/switches.ts'
export {
  advanceTold,
  mergeParameters,
  nothingTold,
  type StandingEpoch,
  type Told,
} from './request/announced-prefix.ts'
export type { MessageList } from './request/block-index.ts'
export {
  type AssembledRequest,
  type AssembleQuestion,
  assembleRequest,
  callOf,
  payloadOf,
  placedMarkers,
  rawTextsOf,
  requestFields,
  requestFindings,
  type SpelledCall,
} from './request/build-request.ts'
export {
  type HeldEdge,
  holdEdge,
  type MarkerKind,
  NO_EDGE,
  type Place,
  type PlannedMarker,
} from './request/cache-markers.ts'
export {
  chooseTtl,
  type Entitlement,
  type GapTally,
  longLifeSaves,
  NO_GAPS,
  recallGaps,
  type TtlQuestion,
  tallyGap,
  ttlFor,
} from './request/cache-ttl.ts'
export {
  type CacheSafeParams,
  captureParams,
  type ForkOutcome,
  fork,
  messagesSince,
  readShare,
} from './request/fork.ts'
export {
  type EpochTurn,
  type Front,
  frontOf,
  hasBoundThinking,
  openEpoch,
  orderTools,
  type Present,
  turnEpoch,
} from './request/prefix.ts'
export {
  type ChangeCause,
  type ChangeRules,
  changesOf,
  epochRecord,
  mustHold,
  type PrefixChange,
  type RecordBody,
} from './request/prefix-updates.ts'
export {
  advanceMedia,
  type BudgetRules,
  bytesAround,
  NO_MEDIA,
  proposeSize,
  type RequestSize,
  type SizedRequest,
  type SizeProposal,
} from './request/request-size.ts'
export {
  type CallerPrompt,
  type PlacedSection,
  placeSections,
  presentSections,
  type Section,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  type SystemPrompt,
  section,
  sectionsDue,
  volatileSection,
} from './request/system-prompt.ts'
export {
  agentsCarrier,
  type BackgroundAgent,
  type HookOutput,
  type HostCarrier,
  type HostState,
  hookContext,
  hostCarrier,
  type InvokedSkill,
  permissionCarrier,
  planCarrier,
  planModeCarrier,
  type StandingText,
  skillsCarrier,
  standingCarrier,
  type Todo,
  type TodosOptions,
  todosCarrier,
} from './sources/builtin-sources.ts'
export {
  type Arrangement,
  arrange,
  carry,
  type FormerCarried,
  formerCarried,
  type Shedding,
  shed,
} from './sources/collect.ts'
export {
  advanceShown,
  CARRIED_KINDS,
  type Carried,
  type CarriedKind,
  type Carrier,
  type CarryContext,
  type CarryOutcome,
  type ChangeQuestion,
  type CompactionQuestion,
  type Given,
  type Limit,
  NOTHING_SHOWN,
  type NotCarried,
  type NotOffered,
  type Offer,
  type Rendering,
  type Shown,
  shownIn,
} from './sources/context-source.ts'
export { type FileRead, type FileReader, type FilesOptions, filesCarrier } from './sources/file-source.ts'
export {
  type Announced,
  type CarriedChanges,
  carryChanges,
  type DeltaCarrier,
  deltaCarrier,
} from './sources/updates.ts'
export {
  type AcceptRules,
  type AnswerRefusal,
  acceptBlock,
  acceptSummary,
  parseSummary,
  type SummaryAnswer,
} from './summary/accept-summary.ts'
export type {
  Ask,
  AskDeadlines,
  AskFailure,
  AskOutcome,
  BlockAsk,
  Chain,
  ChainContext,
  ChainFailure,
  ChainStep,
  ChainSummary,
  DirectAsk,
  Done,
  FallbackReason,
  ForkAsk,
  LocalAsk,
} from './summary/attempt.ts'
export { splitParts } from './summary/attempt-requests.ts'
export { answered, isDone, mostCalls, nextAsk, startChain, unfit } from './summary/attempts.ts'
export { type GateRules, passGate } from './summary/check-summary.ts'
export { ledgerOf } from './summary/ledger.ts'
export { composeSummary, type LocalSummaryRules, localSummary } from './summary/local-summary.ts'
export { type Receipt, receiptOf } from './summary/receipt.ts'
export { REDACTED, redact, redactAll } from './summary/redact.ts'
export {
  chooseSpan,
  keptMetadata,
  keptUuids,
  type Span,
  type SpanOptions,
  type SpanRefusalReason,
} from './summary/select-span.ts'
export {
  type Facts,
  type FailedCall,
  type FailingCommand,
  factsOf,
  type MessageRules,
  type PersonMessage,
  type Said,
  type TouchedFile,
} from './summary/session-facts.ts'
export {
  answerSettings,
  type DirectInput,
  dropHead,
  type InputParts,
  prepareInput,
  type Summariser,
  TRUNCATION_MARKER,
} from './summary/summary-input.ts'
export {
  continuationFor,
  type SummaryMessageParts,
  summaryMessage,
  summaryRecord,
} from './summary/summary-message.ts'
export {
  type CompactForm,
  composeInstructions,
  type SummaryTask,
  sectionTitles,
  summaryPrompt,
} from './summary/summary-prompt.ts'
export type { Measure } from './summary/truncate-text.ts'
export {
  type Accounting,
  type AccountingRules,
  type DuplicateRead,
  duplicateReads,
  openAccount,
  type Tally,
} from './tokens/breakdown.ts'
export {
  advanceMeter,
  emptyMeter,
  growthPerCall,
  type Meter,
  readMeter,
} from './tokens/context-meter.ts'
export {
  type CalibrationStart,
  CHARACTER_CLASSES,
  type CharacterClass,
  createEstimator,
  type Estimator,
  type EstimatorWeights,
  evenWeights,
  fixedRule,
  type ImageWeights,
  type TextWeights,
} from './tokens/estimator.ts'
export {
  type BilledPart,
  billedParts,
  type Calibration,
  type ContextTokens,
  contextOf,
  countOf,
  type Estimate,
  growthOf,
  highFactor,
  iterationsOf,
  type Observation,
  observe,
  outputOf,
  PRICE_CLASSES,
  type PriceClass,
  scaleOf,
  sizeOf,
  startCalibration,
  type TokensByClass,
} from './tokens/usage.ts'
export { pinRecord } from './turn/pin.ts'
export { makeRoom } from './turn/reduce-context.ts'
export { arrive } from './turn/run-tools.ts'
export { afterAnswer, readyRequest, runTurn, type TurnAsked, takeTurn } from './turn/turn.ts'
export { type UndoAsked, type Undone, undoAct } from './turn/undo.ts'
export type { Finding, FindingCode } from './validate/finding.ts'
export { advanceCheck, type Checked, findingsOf, startCheck, validate } from './validate/validate.ts'
