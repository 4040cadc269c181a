/** The public names of the engine, one by one. */

export {
  countPayingRenewals,
  findCacheExpiry,
  findRenewalTime,
  isSummaryCheaper,
  listPauses,
  pricePause,
  type RenewalInput,
  renewCache,
} from './background/idle-cache.ts'
export {
  canStartPreparing,
  commitPreparedDraft,
  describeEndedPreparation,
  type EndedPreparation,
  findNewestCompaction,
  findReasonOvertaken,
  PREPARED_COMPACTION,
} from './background/prepare-summary.ts'
export { areNotesBehind, isNotesUpdateDue, updateNotes } from './background/update-notes.ts'
export {
  type CacheBreak,
  type CacheBreakReason,
  type ExternalCause,
  formatCount,
  formatDuration,
  type MessageDifference,
  type OwnRewrite,
  type OwnRewriteCost,
  type ProviderMissReport,
  type ProviderZone,
  type RequestDifference,
  type RewriteAnnouncement,
  readMissReport,
} from './cache/cache-break.ts'
export {
  type CacheForecast,
  type ForecastReason,
  forecastCacheRead,
  forecastLoggedRead,
  restoreCacheModel,
  updateCacheFromFork,
  updateCacheFromResponse,
} from './cache/cache-forecast.ts'
export { type CacheModel, cacheExpiry, EMPTY_CACHE_MODEL } from './cache/cache-model.ts'
export {
  announceRewrite,
  type CacheBreakRules,
  type CacheCheckInput,
  type CacheCheckOutcome,
  type CacheMonitor,
  createCacheMonitor,
  recordSentRequest,
} from './cache/cache-monitor.ts'
export {
  type CacheLapseCounts,
  type CacheTemperature,
  type CacheTemperatureInput,
  countCallGap,
  estimateRemainingCalls,
  type FirstRewrittenPart,
  measureCacheTemperature,
  NO_CACHE_LAPSES,
} from './cache/cache-temperature.ts'
export {
  checkCacheRead,
  countLostCacheTokens,
  isCacheBreak,
  priceLostCacheTokens,
  toCallRates,
} from './cache/detect-break.ts'
export { describeCause } from './cache/explain-break.ts'
export type { RedactText } from './cache/request-diff.ts'
export {
  type MessageEditor,
  type MonitoredRequest,
  type SendContext,
  type SentMarker,
  type SentParameters,
  type SentPrefixPiece,
  type SentRequest,
  toSentParameters,
  toSentRequest,
} from './cache/sent-request.ts'
export {
  countDeletedTokens,
  createDeletionsExpiredNotice,
} from './clearing/cached-clearing.ts'
export {
  type ClearProposal,
  findFirstClearable,
  HISTORY_TOOL_NAME,
  NO_RETRIEVAL,
  type ReleasedContent,
  type RetrievalPaths,
  retrievalHint,
} from './clearing/clear-candidates.ts'
export {
  type ClearingDecision,
  type ProposeClearingInput,
  proposeClearing,
} from './clearing/propose-clearing.ts'
export {
  type AppliedEdits,
  type ContextEdit,
  findAppliedClearing,
  type ProviderEdit,
  type ProviderEditPlan,
  planProviderEdits,
  readAppliedEdits,
  reportEdits,
  toContextEdits,
} from './clearing/provider-clearing.ts'
export {
  createIndexRules,
  createToolResultIndex,
  type HostTools,
  type IndexRulesOptions,
  type ToolResultIndex,
  type ToolResultRules,
} from './clearing/tool-result-index.ts'
export { updateToolResultIndex } from './clearing/update-tool-result-index.ts'
export { type CompactionResult, commitCompaction } from './compaction/commit-draft.ts'
export { compact, countCompactionFailure } from './compaction/compact.ts'
export { hasReadyNotes, planWithLogNotes } from './compaction/compact-with-notes.ts'
export type { CompactionDraft } from './compaction/draft.ts'
export { type CompactionOptions, type CompactionPlan, planCompaction } from './compaction/plan-compaction.ts'
export { prepareCompaction } from './compaction/prepare-draft.ts'
export {
  type ClearedParts,
  type ContextEntry,
  isTurnEnd,
  isVisibleToModel,
  toMessageParts,
} from './context/context-entry.ts'
export {
  buildContextView,
  type ContextRewrite,
  type ContextView,
  emptyContextView,
  findUndoTarget,
  type UndoTarget,
  updateContextView,
} from './context/context-view.ts'
export { findCutPointAtOrBefore, findCutPoints, groupIntoRounds } from './context/cut-points.ts'
export {
  createMissingResultsRecord,
  type FlattenedContext,
  flattenContext,
  listTracedMessages,
  listUnansweredCalls,
  type TracedMessage,
  toApiMessages,
} from './context/flatten.ts'
export type { ApiMessage, Payload, Role } from './context/payload.ts'
export { withProviderClearings } from './context/provider-clearings.ts'
export {
  createInterruptedResult,
  type MessageRepair,
  type MessageRepairKind,
  MISSING_RESULT_TEXT,
  type UnansweredCall,
} from './context/tool-pairing.ts'
export {
  addCosts,
  type Cost,
  findPriceFactor,
  findRates,
  type ModelPrices,
  type PriceTier,
  priceUsage,
  priceUsageUncached,
  scaleRates,
  type TokenRates,
  ZERO_COST,
} from './cost/prices.ts'
export {
  addTokens,
  type BilledCall,
  COMPACTION_SOURCE,
  type CostTotals,
  emptySessionCost,
  type FindModelPrices,
  type PricedCall,
  priceCall,
  readLoggedCall,
  type SessionCost,
  sumSessionCost,
  updateSessionCost,
  ZERO_TOKENS,
} from './cost/session-cost.ts'
export { collectOpeningRecords } from './engine/attach-sources.ts'
export type { BackgroundEvent, KeptCache, ResumeCost, SummaryDropReason } from './engine/background-events.ts'
export {
  createCallRecords,
  estimateBilledUsage,
  finishModelCall,
  type PendingModelCall,
  toLossRecords,
  withCosts,
} from './engine/call-model.ts'
export type {
  CommittedCompaction,
  CompletedTurn,
  ContextPart,
  ForkCacheRead,
  RefusalReason,
  RefusedRewrite,
  RewriteEvent,
  TurnEvent,
  TurnFailure,
  TurnOutcome,
} from './engine/events.ts'
export {
  HOOK_POINTS,
  type Hook,
  type HookContextOutput,
  type HookResult,
  runHooks,
  type SessionHooks,
  type SessionStartSource,
  type ToolDecision,
} from './engine/hooks.ts'
export {
  type CleanupFailure,
  type CommittedRewrite,
  type CompactingHost,
  type CompactionServices,
  type CompleteSummary,
  type HostSummaryInput,
  keepsNotes,
  type ModelSettings,
  type NotesServices,
  type PermissionCheck,
  type RawSummary,
  type RewriteCleanup,
  type SeparateSummaryModel,
  type SummaryWriter,
  type ToolResultContent,
  type ToolRunner,
  type TurnHost,
} from './engine/host.ts'
export {
  adviseCompaction,
  createUndoNotice,
  findInputLimit,
  gatherPlanContext,
  measureAhead,
  measureContext,
  UNDO_NOTICE_TYPE,
  withContextState,
} from './engine/measure-context.ts'
export { countPrefixTokens } from './engine/next-request.ts'
export type { NotesCost, NotesEvent, NotesFailureReason, NotesRefusalReason } from './engine/notes-events.ts'
export type {
  AppendOutcome,
  BlobStore,
  Clock,
  DeadlineResult,
  Deadlines,
  IdGenerator,
  Journal,
  JournalState,
  Model,
  ModelCall,
  NewRecord,
  NotesClaim,
  NotesStore,
  Signal,
  StoredNotes,
} from './engine/ports.ts'
export {
  addReplyEvent,
  type BlockDelta,
  type BlockEnded,
  emptyReplyAssembly,
  type ModelFailure,
  type ModelFailureKind,
  type OpenBlock,
  planRetry,
  type Reply,
  type ReplyAssembly,
  type ReplyEnded,
  type ReplyEvent,
  type ReplyFailed,
  type ReplyUpdated,
  type RetryInfo,
  type TokenExcess,
  toReply,
} from './engine/reply.ts'
export { type ContextState, openSession, readNewRecords, type SessionState } from './engine/session-state.ts'
export {
  appendUnlinkedRecords,
  type PreparedSummary,
  refreshSession,
  type TurnContext,
  type UnlinkedRecord,
  type WriteLock,
} from './engine/session-writer.ts'
export { buildForkRequest, type ForkRequestOptions } from './engine/side-call.ts'
export { fitReply } from './engine/tool-input.ts'
export { TidemarkError } from './errors.ts'
export { exportMarkdown, streamMarkdown } from './history/export-markdown.ts'
export {
  createHistoryTool,
  type HistoryAnswer,
  isHistoryTool,
  runHistoryTool,
} from './history/history-tool.ts'
export { createMatcher, type HistorySource, type TextMatcher } from './history/search-history.ts'
export {
  type BlobReader,
  readSpilledParts,
  restoreSpilledResults,
  type SpillInput,
  spillResult,
} from './history/spill-results.ts'
export type { Damage, DamageKind } from './log/batch.ts'
export {
  type Block,
  isBlankText,
  isBlock,
  isCompactionBlock,
  isMediaBlock,
  isServerToolResult,
  isServerToolUse,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type MessageContent,
  type ToolResultBlock,
  type ToolUseBlock,
  toBlocks,
} from './log/block.ts'
export { isBranchSwitch } from './log/branch-switch.ts'
export { readRunStatus, splitOutputHead } from './log/command-status.ts'
export {
  createLogHeader,
  createLogLineReader,
  type DecodeResult,
  decodeRecord,
  isUserInputs,
  LOG_VERSION,
  type LogLineReader,
  type LogReaderOptions,
  type LogReadResult,
  type LogResumePoint,
} from './log/decode-log.ts'
export { isHostNotice, REFUSED_CALL_TEXT, readRefusalText, wrapInReminder } from './log/host-texts.ts'
export {
  findJsonMember,
  findNonJsonPath,
  findRawBlockTexts,
  findUnstableJsonText,
  formatJsonArray,
  formatJsonObject,
  isNestedTooDeep,
  isObject,
  type Json,
  type JsonMember,
  type JsonObject,
  MAX_JSON_DEPTH,
  parseJson,
  splitJsonArray,
  splitJsonObject,
  survivesJsonRoundTrip,
  withJsonMember,
  withoutJsonMember,
} from './log/json.ts'
export { AppendList } from './log/persistent-collections.ts'
export {
  type AssistantMessage,
  type AssistantRecord,
  type Attachment,
  type AttachmentRecord,
  type BatchStamp,
  CACHE_EDITS_DROPPED_SUBTYPE,
  type CacheLoss,
  CLEARED_RESULT_TEXT,
  type ClearedInput,
  type ClearedMedia,
  type ClearMode,
  type CompactBoundary,
  type CompactCause,
  type CompactMetadata,
  type CompactTrigger,
  isClearedByProvider,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isPrompt,
  isRewriteBoundary,
  isSyntheticError,
  isTurnEndingBlock,
  isTurnEndingMessage,
  type KnownRecord,
  type MicrocompactBoundary,
  type MicrocompactMetadata,
  type PrefixSnapshot,
  type PrefixUpdate,
  type PreservedMessages,
  type PreservedSegment,
  type RawBlockText,
  type RecordBase,
  type RecordedUserInput,
  type SessionRecord,
  type SnapshotSection,
  type SpilledContent,
  SYNTHETIC_MODEL,
  type SystemRecord,
  type Usage,
  type UserRecord,
} from './log/record.ts'
export {
  appendRecord,
  appendRecordAsIs,
  buildSessionLog,
  emptySessionLog,
  findRecordIndex,
  listBranchRecords,
  readRecordAt,
  type SessionLog,
} from './log/session-log.ts'
export type { PrintedFile } from './log/shell-commands.ts'
export {
  createCommandMessage,
  expandArguments,
  hasArgumentPlace,
  parseSlashCommand,
  type SlashCommand,
  splitArguments,
  splitShellParts,
} from './log/slash-commands.ts'
export type { TodoItem } from './log/todo-list.ts'
export {
  canToolReadFiles,
  describeToolCall,
  type FileTouch,
  isFileUnchangedNotice,
  normalizePath,
  readToolResultText,
  type TextReplacement,
  type ToolCallFacts,
  type ToolCallKind,
} from './log/tool-calls.ts'
export { findPrintedByCall, type ToolRun } from './log/tool-runs.ts'
export {
  type CallLookup,
  createUserInputs,
  readUserInputs,
  readUserTypedText,
  type UserInput,
} from './log/user-input.ts'
export { type BranchNotes, createBranchNotes } from './notes/branch-notes.ts'
export { createNoteKeeper, type KeptNotes, type NoteKeeper } from './notes/note-keeper.ts'
export { NOTES_SECTION_NAMES, NOTES_SECTIONS, type NotesSectionName, parseNotes } from './notes/notes-file.ts'
export { isClaimDead } from './notes/notes-limits.ts'
export type { NotesRenderOptions } from './notes/render-notes.ts'
export { type CompactionAdvice, type ContextPlan, makeContextPlan } from './planner/context-plan.ts'
export {
  type ExpectedCompactionResult,
  estimateCompactionResult,
  findOptimalCompactionSize,
  type NewContextPrice,
  type OptimalCompactionSize,
  type PlanContext,
  priceNewContext,
  type TurnMoment,
} from './planner/plan-input.ts'
export { createPolicy, DEFAULT_POLICY, type PolicyOverrides } from './policy/create-policy.ts'
export { type Policy, policyFieldPaths, readPolicyValue, type TokenEstimatePolicy } from './policy/policy.ts'
export {
  type DeepPartial,
  type FieldProblem,
  findNearestName,
  formatErrorValue,
} from './policy/policy-fields.ts'
export { type PresetName, presets } from './policy/presets.ts'
export {
  defineProviderProfile,
  type ProviderProfile,
  type ProviderProfileOverrides,
  strictProfile,
} from './policy/provider-profile.ts'
export {
  type ContentBudgets,
  computeThresholdState,
  describeCappedReserve,
  findSmallestWindow,
  type KnownWindowLimits,
  type ModelLimits,
  type ScaledPolicy,
  type SpillBudgets,
  scalePolicy,
  type ThresholdState,
  type Thresholds,
} from './policy/scale-policy.ts'
export {
  findMechanismStates,
  NO_SWITCHES,
  readSwitches,
  type Switches,
  type SwitchName,
} from './policy/switches.ts'
export {
  type AnnouncedPrefix,
  applyParameterChanges,
  type CurrentPrefix,
  emptyAnnouncedPrefix,
  listLoadedTools,
  updateAnnouncedPrefix,
} from './request/announced-prefix.ts'
export type { MessageList } from './request/block-index.ts'
export {
  type AssembledRequest,
  type AssembleRequestInput,
  assembleRequest,
  findRequestProblems,
  listMessageMarkers,
  listRawTexts,
  type ModelCallInput,
  stripMessageMarkers,
  toModelCallInput,
  toPayload,
  toRequestFields,
} from './request/build-request.ts'
export {
  type FirstClearableMarker,
  type MarkerKind,
  type MarkerPlace,
  NO_FIRST_CLEARABLE,
  type PlannedMarker,
  updateFirstClearable,
} from './request/cache-markers.ts'
export {
  addCallGap,
  type ChooseTtlInput,
  chooseRequestTtl,
  chooseTtl,
  computeLongTtlSavings,
  EMPTY_GAP_TALLY,
  type GapTally,
  readGapsFromLog,
  type TtlEntitlement,
} from './request/cache-ttl.ts'
export {
  captureForkParent,
  computeCacheReadShare,
  createForkRequest,
  type ForkOutcome,
  type ForkParent,
  listMessagesAfterRequest,
} from './request/fork-request.ts'
export type { HostMarker } from './request/host-markers.ts'
export {
  buildRequestPrefix,
  createPrefixSnapshot,
  type DesiredPrefix,
  hasBoundThinking,
  orderTools,
  type ReplaceSnapshotResult,
  type RequestPrefix,
  replacePrefixSnapshot,
} from './request/prefix-snapshot.ts'
export {
  createSnapshotRecord,
  diffPrefix,
  mustDelayUpdate,
  type PrefixChange,
  type PrefixChangeCause,
  type PrefixUpdateRules,
  type RecordBody,
} from './request/prefix-updates.ts'
export {
  EMPTY_MEDIA_TALLY,
  type MediaDropProposal,
  measureNonMessageBytes,
  proposeMediaDrop,
  type RequestSize,
  type RequestSizeInput,
  type RequestSizeRules,
  updateMediaTally,
} from './request/request-size.ts'
export {
  type CallerPrompt,
  listPresentSections,
  listSectionsToCompute,
  orderPromptSections,
  type PlacedSection,
  type Section,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  type SystemPrompt,
  section,
  toHostSections,
  volatileSection,
} from './request/system-prompt.ts'
export {
  AMBIENT_TYPE,
  type AmbientPart,
  type AmbientParts,
  ambientSource,
} from './sources/ambient-source.ts'
export {
  agentsSource,
  attachHookOutputs,
  type BackgroundAgent,
  type HookOutput,
  type HostSourceItem,
  type HostSourceOptions,
  hostSource,
  type InvokedSkill,
  instructionsSource,
  permissionSource,
  planModeSource,
  planSource,
  type SourceText,
  skillsSource,
  type Todo,
  type TodosSourceOptions,
  todosSource,
} from './sources/builtin-sources.ts'
export {
  type AttachmentOrder,
  arrangeAttachments,
  collectSources,
  type DroppedAttachments,
  dropOptionalAttachments,
  findPreviousAttachments,
  type PreviousAttachments,
} from './sources/collect-sources.ts'
export {
  type CollectedSources,
  type CollectSourcesInput,
  type CollectUpdatesInput,
  type ContextSource,
  createListSource,
  findShownAttachments,
  NO_SHOWN_ATTACHMENTS,
  type RenderedItem,
  type ShownAttachments,
  type SkippedAttachment,
  type SkippedItem,
  SOURCE_KINDS,
  type SourceAttachment,
  type SourceContext,
  type SourceItem,
  type SourceKind,
  type SourceLimit,
  updateShownAttachments,
  type ValueOrPromise,
} from './sources/context-source.ts'
export { type FilePart, splitFileLines } from './sources/file-regions.ts'
export {
  type FileReader,
  type FileReadResult,
  type FilesSourceOptions,
  filesSource,
} from './sources/file-source.ts'
export {
  isInFolder,
  type LoadedMemoryFile,
  type MemoryDisk,
  type MemoryFiles,
  type MemoryPlaces,
  MemoryReader,
  type RuleText,
  type UnreadMemoryFile,
} from './sources/memory-files.ts'
export { memorySource } from './sources/memory-source.ts'
export {
  compileGlob,
  compileIgnorePattern,
  type Glob,
  MAX_GLOB_CHARACTERS,
  matchesStars,
} from './sources/path-glob.ts'
export {
  type ListedSkill,
  listInvokedSkills,
  skillListingSource,
} from './sources/skills.ts'
export {
  type AnnouncedItem,
  collectSourceUpdates,
  type DeltaSourceOptions,
  deltaSource,
  type SourceUpdates,
} from './sources/source-updates.ts'
export {
  type AcceptanceRules,
  acceptCompactionBlock,
  acceptSummary,
  defuseReminderTags,
  parseSummary,
  type SummaryAnswer,
  type SummaryRefusalReason,
} from './summary/accept-summary.ts'
export {
  isAttemptsOutcome,
  recordAttemptResult,
  rejectLargeSummary,
  startAttempts,
} from './summary/attempt-chain.ts'
export type {
  AcceptedSummary,
  AttemptDeadlines,
  AttemptFailure,
  AttemptResult,
  AttemptsFailure,
  AttemptsInput,
  BlockAttempt,
  DirectAttempt,
  FallbackReason,
  ForkAttempt,
  LocalAttempt,
  SummaryAttempt,
  SummaryAttemptState,
  SummaryAttemptStep,
  SummaryAttemptsOutcome,
} from './summary/attempt-types.ts'
export { buildLedger } from './summary/ledger.ts'
export { type LocalSummaryOptions, writeLocalSummary } from './summary/local-summary.ts'
export { createReceipt, type Receipt } from './summary/receipt.ts'
export { type RepairRules, repairSummary } from './summary/repair-summary.ts'
export {
  type CompactionSpan,
  chooseCompactionSpan,
  listKeptUuids,
  type SpanOptions,
  type SpanRefusalReason,
} from './summary/select-span.ts'
export {
  extractSessionFacts,
  type FailedCall,
  type FailingCommand,
  type RecordText,
  type SessionFacts,
  type TouchedFile,
} from './summary/session-facts.ts'
export {
  buildSummaryRequest,
  chooseSummaryOutputSettings,
  type DirectInputOptions,
  dropOldestRounds,
  type SummaryModel,
  type SummaryRequest,
  TRUNCATION_MARKER,
} from './summary/summary-input.ts'
export {
  chooseContinuation,
  createSummaryRecord,
  formatSummaryMessage,
  type SummaryMessageInput,
} from './summary/summary-message.ts'
export {
  type CompactionForm,
  composeInstructions,
  listSectionTitles,
  type SummaryTask,
  writeSummaryPrompt,
} from './summary/summary-prompt.ts'
export { describeAuthor, type UserPrompt, type UserPromptLimits } from './summary/user-messages.ts'
export { REDACTED, redact, redactBeginning, redactStrings } from './text/redact.ts'
export { type TokenCounter, truncateEnd } from './text/truncate-text.ts'
export { replaceLoneSurrogates, sliceText } from './text/well-formed-text.ts'
export {
  type BreakdownOptions,
  createBreakdown,
  type DuplicateRead,
  findDuplicateReads,
  type TokenBreakdown,
  type TokenTally,
  toShownRecord,
} from './tokens/breakdown.ts'
export { CHARACTER_CLASSES, type CharacterClass } from './tokens/character-classes.ts'
export { type ContextMeter, createMeter, updateMeter } from './tokens/context-meter.ts'
export {
  type CalibrationStart,
  createEstimator,
  createEvenWeights,
  createFixedWeights,
  type Estimator,
  type EstimatorWeights,
  type ImageWeights,
  type TextWeights,
} from './tokens/estimator.ts'
export { measureContextTokens, measureGrowthPerCall } from './tokens/read-meter.ts'
export {
  addGrowthObservation,
  type BilledPart,
  type Calibration,
  type ContextTokens,
  calibrateGrowth,
  calibrateSize,
  computeSafetyFactor,
  countContextTokens,
  countOutputTokens,
  type GrowthObservation,
  isNothingBilled,
  listBilledParts,
  listIterations,
  PRICE_CLASSES,
  type PriceClass,
  readCalibrationScale,
  readLowerBound,
  startCalibration,
  type TokenEstimate,
  type TokensByClass,
  toTokenCount,
} from './tokens/usage.ts'
export { type ClearResult, clearChosenResults } from './turn/clear-chosen.ts'
export { pinRecord } from './turn/pin.ts'
export {
  findLastAnswer,
  NO_REMEDIES_TRIED,
  NOTHING_TO_ANSWER,
  type Remedies,
  recoverFromRefusal,
} from './turn/recover-refusal.ts'
export { plansRewrite, reduceContext } from './turn/reduce-context.ts'
export { spillLargeResult } from './turn/run-tools.ts'
export { askAside, type SideAnswer, type UnansweredQuestion } from './turn/side-question.ts'
export {
  type CompactionCopy,
  clearConversation,
  findNewestUndo,
  findReturnPoint,
  type MoveRecord,
  repeatCompaction,
  rewindTo,
  type SwitchResult,
} from './turn/switch-branch.ts'
export { prepareNextRequest, recordResponse, takeTurn } from './turn/turn.ts'
export { findMoveToUndo, type UndoResult, type UndoRewriteOptions, undoRewrite } from './turn/undo.ts'
export { withdrawTooLongPrompts } from './turn/withdraw-prompt.ts'
export type { Finding, FindingCode } from './validate/findings.ts'
export {
  startValidation,
  updateValidation,
  type ValidationState,
  validateRequest,
} from './validate/validate.ts'
