/** The public names of the engine, one by one. */

export type { Announcement } from './breaks/announcement.ts'
export type { ActPaid, BreakEvent, OwnAct } from './breaks/break-event.ts'
export { type Compared, compareAnswer } from './breaks/compare-answer.ts'
export type { Redact } from './breaks/diff-text.ts'
export { countText, durationText } from './breaks/figures-in-words.ts'
export { isBreak, moneyLost, ratesOf, tokensLost } from './breaks/loss.ts'
export type { BreakRules, CacheAnswer, CacheOutcome } from './breaks/outcome.ts'
export { type ProviderWord, providerWord } from './breaks/provider-word.ts'
export type { Circumstance, Difference, MessageDifference, ProviderZone, Reason } from './breaks/reason.ts'
export type { Hand, SentMarker, SentParameters, SentPiece, SentRequest } from './breaks/sent.ts'
export { type Sending, sentParameters, sentRequest, type WatchedRequest } from './breaks/sent-request.ts'
export { announceAct, type CacheWatch, emptyCacheWatch, takeSnapshot } from './breaks/watch.ts'
export { agentsCarrier, type BackgroundAgent } from './carry/agents.ts'
export {
  CARRIED_KINDS,
  type Carried,
  type CarriedKind,
  type Carrier,
  type CarryContext,
  type CarryOutcome,
  type ChangeQuestion,
  type CompactionQuestion,
  type Limit,
  type NotCarried,
  type NotOffered,
  type Offer,
  type Rendering,
} from './carry/carrier.ts'
export { carry } from './carry/carry.ts'
export { type CarriedChanges, carryChanges } from './carry/changes.ts'
export { type Announced, type DeltaCarrier, deltaCarrier } from './carry/deltas.ts'
export { type FileRead, type FileReader, type FilesOptions, filesCarrier } from './carry/files.ts'
export { type Arrangement, arrange, type FormerCarried, formerCarried } from './carry/front.ts'
export { type HookOutput, hookContext } from './carry/hook-context.ts'
export { type HostCarrier, type HostState, hostCarrier } from './carry/host.ts'
export { type Shedding, shed } from './carry/shed.ts'
export { advanceShown, NOTHING_SHOWN, type Shown, shownIn } from './carry/shown.ts'
export type { Given } from './carry/simple-carrier.ts'
export { type InvokedSkill, skillsCarrier } from './carry/skills.ts'
export {
  permissionCarrier,
  planCarrier,
  planModeCarrier,
  type StandingText,
  standingCarrier,
} from './carry/standing.ts'
export { lastList, type Todo, type TodosOptions, todosCarrier } from './carry/todos.ts'
export {
  allDeletedTokens,
  deletedTokens,
  dropDeletions,
  type PinnedEdits,
  pinnedEdits,
} from './clear/cached.ts'
export { firstClearable } from './clear/candidates.ts'
export type { HostTools } from './clear/clearable.ts'
export { type NativeEdits, nativeEdits } from './clear/native.ts'
export { type AppliedEdits, nativeClearing, readApplied } from './clear/native-applied.ts'
export type { ClearProposal, Released } from './clear/proposal.ts'
export { type Clearing, type ClearingQuestion, proposeClearing } from './clear/propose.ts'
export { type ProviderEdit, type SpelledEdit, spellEdits } from './clear/provider-edit.ts'
export { advanceRegister } from './clear/register.ts'
export { type RegisterRules, type RulesQuestion, registerRules } from './clear/register-rules.ts'
export { emptyRegister, type Register } from './clear/register-state.ts'
export { NOWHERE, noteOn, type Retrieval } from './clear/stub.ts'
export { type CacheTemperature, COLD, type FirstChange } from './clear/temperature.ts'
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
  type TextBlock,
  type ThinkingBlock,
  type ToolResultBlock,
  type ToolUseBlock,
} from './conversation/block.ts'
export {
  CACHE_EDITS_DROPPED,
  CLEARED_TEXT,
  type CompactBoundary,
  isAct,
  isCompactBoundary,
  isMicrocompactBoundary,
  type MicrocompactBoundary,
} from './conversation/boundary.ts'
export type { Damage, DamageKind } from './conversation/damage.ts'
export { type Decoded, decodeRecord } from './conversation/decode.ts'
export {
  firstNonJson,
  isObject,
  isTooDeep,
  type Json,
  type JsonObject,
  MAX_DEPTH,
} from './conversation/json.ts'
export {
  arrayText,
  elementsOf,
  type Member,
  memberOf,
  membersOf,
  objectText,
  rawUnlessSurvives,
  readJson,
  survives,
  withMember,
  withoutMember,
} from './conversation/json-text.ts'
export {
  createLineReader,
  type LineReader,
  type LogEnd,
  type ReadingOptions,
  type ReadingStart,
} from './conversation/line-reader.ts'
export { List } from './conversation/list.ts'
export type {
  ClearedInput,
  ClearedMedia,
  ClearWay,
  CompactCause,
  CompactMetadata,
  CompactTrigger,
  MicrocompactMetadata,
  PreservedMessages,
  PreservedSegment,
} from './conversation/metadata.ts'
export { rawBlocksIn } from './conversation/raw-text.ts'
export {
  type AssistantMessage,
  type AssistantRecord,
  type Attachment,
  type AttachmentRecord,
  type BatchStamp,
  type Delta,
  type Epoch,
  type EpochSection,
  isKnown,
  isPrompt,
  isSyntheticError,
  type KnownRecord,
  type OtherRecord,
  type Pin,
  type ProgressRecord,
  type RawBlock,
  type RecordBase,
  type SessionRecord,
  type Spilled,
  SYNTHETIC_MODEL,
  type SystemRecord,
  type Usage,
  type UserMessage,
  type UserRecord,
} from './conversation/record.ts'
export { cutAtOrAfter, cutAtOrBefore, legalCuts, roundsOf } from './conversation/round.ts'
export { emptySession, reduce, type Session, sessionOf } from './conversation/session.ts'
export type { CacheLoss, LoggedCall } from './conversation/spending.ts'
export { placeOf, recordAt } from './conversation/tree.ts'
export { endsTurn, goesBeyondResults } from './conversation/turn-end.ts'
export { typedText } from './conversation/typed-text.ts'
export { LOG_VERSION, type LogHeader, newHeader } from './conversation/upcast.ts'
export { type ClosedCall, type Closing, closeCall, type OpenedCall } from './engine/close-call.ts'
export {
  type Assembly,
  assemble,
  collect,
  emptyAssembly,
  replyOf,
} from './engine/collect.ts'
export type { Bounded, Deadlines } from './engine/deadlines.ts'
export type { Failure, FailureKind, TokenGap } from './engine/failure.ts'
export {
  type ForkAsked,
  type ForkEnd,
  forkRequest,
  type NothingToFork,
  runFork,
} from './engine/fork-session.ts'
export type {
  AppendOutcome,
  BlobStore,
  Clock,
  Ids,
  Journal,
  JournalState,
  Model,
  ModelCall,
  NewRecord,
  Signal,
} from './engine/ports.ts'
export { withMoney } from './engine/price-calls.ts'
export type {
  BlockDelta,
  BlockEnded,
  BlockGrew,
  BlockStarted,
  OpenBlock,
  Reply,
  ReplyAlive,
  ReplyEnded,
  ReplyEvent,
  ReplyFailed,
  ReplyOther,
  ReplyStarted,
  ReplyUpdated,
} from './engine/reply.ts'
export { afterAnswer } from './engine/rewrite/after-answer.ts'
export { type Arrived, arrive } from './engine/rewrite/arrive.ts'
export { type Cleanup, type CleanupFault, MAIN, type Rewritten } from './engine/rewrite/cleanups.ts'
export { type Committed, commitCompaction } from './engine/rewrite/commit.ts'
export { compact } from './engine/rewrite/compact.ts'
export { type CompactAsked, type CompactionPlan, planCompaction } from './engine/rewrite/compaction-plan.ts'
export type { CompactionDraft } from './engine/rewrite/draft.ts'
export type {
  CompactHooks,
  Hook,
  HookContext,
  PostCompactInput,
  PreCompactInput,
  PreCompactOutput,
  SessionStartInput,
} from './engine/rewrite/hooks.ts'
export { makeRoom } from './engine/rewrite/make-room.ts'
export { pinRecord } from './engine/rewrite/pin-record.ts'
export { measureNow, type Planned, planNow, prefixTokens } from './engine/rewrite/plan-now.ts'
export { prepareCompaction } from './engine/rewrite/prepare.ts'
export type { FloorItem, RewriteRefusal, RewriteRefused } from './engine/rewrite/refused.ts'
export type { Compacted, RewriteEvent, RewritePhase } from './engine/rewrite/rewrite-event.ts'
export type { OtherSummariser, Room } from './engine/rewrite/room.ts'
export type { RoomState } from './engine/rewrite/room-state.ts'
export { type UndoAsked, type Undone, undoAct } from './engine/rewrite/undo-act.ts'
export { UNDO_NOTICE } from './engine/rewrite/undone-since.ts'
export type {
  RawSummary,
  SummaryQuestion,
  WriteSummary,
  WrittenSummary,
} from './engine/rewrite/written-summary.ts'
export { catchUp, openSession, type SessionState } from './engine/session-state.ts'
export { readyRequest, runTurn, type TurnAsked, takeTurn, undoings } from './engine/turn.ts'
export type {
  AppendRefusal,
  ForkRead,
  Halt,
  QuietOutcome,
  TurnDone,
  TurnEvent,
  TurnOutcome,
} from './engine/turn-event.ts'
export type { KeepDiff, Offered, RunTool, ToolAnswer, TurnHost } from './engine/turn-host.ts'
export { type Alone, append, refresh, type TurnRun, type Unlinked } from './engine/turn-run.ts'
export { TidemarkError, type TidemarkErrorCode } from './errors.ts'
export {
  type Account,
  type Accounting,
  type AccountingRules,
  type DuplicateRead,
  duplicateReads,
  openAccount,
  type Tally,
} from './measure/accounting.ts'
export {
  type BilledPart,
  billedParts,
  iterationsOf,
  PRICE_CLASSES,
  type PriceClass,
  type TokensByClass,
} from './measure/billed.ts'
export {
  type Calibration,
  type Estimate,
  growthOf,
  highFactor,
  type Observation,
  observe,
  scaleOf,
  sizeOf,
  startCalibration,
} from './measure/calibration.ts'
export {
  addTokens,
  type BilledCall,
  NO_TOKENS,
  type PricedCall,
  type PriceList,
  priceCall,
} from './measure/call-price.ts'
export { CHARACTER_CLASSES, type CharacterClass } from './measure/character-classes.ts'
export { createEstimator, type Estimator } from './measure/estimate.ts'
export {
  type CalibrationStart,
  type EstimatorWeights,
  evenWeights,
  fixedRule,
  type ImageWeights,
  type TextWeights,
  type ThinkingWeights,
} from './measure/estimate-weights.ts'
export { type ApiCall, apiCalls, type BreakReason, type IsRestart } from './measure/estimator-calls.ts'
export {
  type EstimatedTurn,
  type EstimatorError,
  type EstimatorTrial,
  type ExclusionReason,
  estimatedTurns,
  estimatorError,
  type ModelEstimator,
} from './measure/estimator-error.ts'
export type { ReminderRule } from './measure/estimator-reminders.ts'
export { countOf } from './measure/figure.ts'
export { type LadderState, standOn } from './measure/ladder.ts'
export { loggedCall } from './measure/logged-call.ts'
export { addMoney, type Money, NO_MONEY } from './measure/money.ts'
export { type Amount, COMPACTION, type MoneyTotals } from './measure/money-totals.ts'
export { type PricesOf, priceOf, priceTokens, priceUncached } from './measure/price.ts'
export { type Prices, type PriceTier, type Rates, ratesFor } from './measure/prices.ts'
export { advanceMoney, moneyTotals, noMoney, type SessionMoney } from './measure/session-money.ts'
export { type ContextQuestion, type ContextTokens, contextTokens } from './measure/usage.ts'
export type { MeasuredView } from './measure/usage-anchor.ts'
export { contextOf, outputOf } from './measure/usage-figures.ts'
export { cacheTemperature, type TemperatureQuestion } from './plan/cache-temperature.ts'
export { type CallRuns, callsToCome, NO_RUNS, tallyCall } from './plan/call-runs.ts'
export { advanceMeter, emptyMeter, growthPerCall, type Meter, readMeter } from './plan/meter.ts'
export {
  type CompactionOutlook,
  type OptimalTrigger,
  optimalTrigger,
  usualOutlook,
} from './plan/optimal-trigger.ts'
export { type Plan, plan } from './plan/plan.ts'
export { type Moment, NO_TRACKING, type PlanContext, type Tracking } from './plan/plan-context.ts'
export type { Tier, TraceStep } from './plan/trace.ts'
export type { Budgets, ClearBudgets, SpillBudgets } from './policy/budgets.ts'
export { createPolicy, DEFAULT_POLICY } from './policy/create-policy.ts'
export type { DeepPartial } from './policy/field.ts'
export type { EstimatePolicy } from './policy/groups/estimate-policy.ts'
export { type Lines, smallestWindow } from './policy/lines.ts'
export {
  type Mechanism,
  type MechanismState,
  type MechanismStates,
  mechanismStates,
} from './policy/mechanisms.ts'
export { type Policy, policyPaths, policyValue } from './policy/policy.ts'
export type { Profile } from './policy/profile.ts'
export type { Problem } from './policy/read-fields.ts'
export {
  type KnownWindow,
  type ModelSize,
  type Offsets,
  type ScaledPolicy,
  scalePolicy,
  type UnknownWindow,
} from './policy/scale.ts'
export { createProfile, type ProfileOverrides, strictProfile } from './policy/strict-profile.ts'
export {
  NO_SWITCHES,
  type PercentName,
  readSwitches,
  type Switches,
  type SwitchName,
  type SwitchNotice,
  type SwitchReading,
} from './policy/switches.ts'
export { type AssembledRequest, type AssembleQuestion, assembleRequest } from './prompt/assemble.ts'
export {
  type BudgetRules,
  bytesAround,
  proposeSize,
  type RequestSize,
  type SizedRequest,
  type SizeProposal,
} from './prompt/budget.ts'
export { type ChangeCause, type ChangeRules, changesOf, type PrefixChange } from './prompt/changes.ts'
export type { MessageList } from './prompt/count.ts'
export { type HeldEdge, holdEdge, NO_EDGE } from './prompt/edge.ts'
export { type EpochTurn, hasBoundThinking, openEpoch, type Present, turnEpoch } from './prompt/epoch.ts'
export { type Forecast, type ForecastReason, forecastRead } from './prompt/forecast.ts'
export { type CacheSafeParams, captureParams, type ForkOutcome, fork, readShare } from './prompt/fork.ts'
export { type Front, frontOf } from './prompt/front.ts'
export { type GapTally, longLifeSaves, NO_GAPS, tallyGap } from './prompt/gaps.ts'
export { mustHold } from './prompt/hold.ts'
export { learnFromFork, learnFromResponse } from './prompt/learn.ts'
export { cacheExpiry, type Lineage, NO_LINEAGE } from './prompt/lineage.ts'
export type { MarkerKind, PlannedMarker } from './prompt/markers.ts'
export { advanceMedia, NO_MEDIA } from './prompt/media.ts'
export type { Place } from './prompt/place.ts'
export { recallLineage } from './prompt/recall.ts'
export { recallGaps } from './prompt/recall-gaps.ts'
export {
  type PlacedSection,
  presentSections,
  type Section,
  SYSTEM_PROMPT_DYNAMIC_BOUNDARY,
  section,
  sectionsDue,
  volatileSection,
} from './prompt/section.ts'
export { messagesSince } from './prompt/since.ts'
export { sourceOf } from './prompt/source.ts'
export {
  callOf,
  payloadOf,
  placedMarkers,
  rawTextsOf,
  requestFields,
  requestFindings,
  type SpelledCall,
} from './prompt/spell.ts'
export { type CallerPrompt, placeSections, type SystemPrompt } from './prompt/system-prompt.ts'
export { epochRecord, type RecordBody } from './prompt/tell.ts'
export { advanceTold, mergeParameters, nothingTold, type StandingEpoch, type Told } from './prompt/told.ts'
export { orderTools } from './prompt/tool-order.ts'
export { chooseTtl, type Entitlement, type TtlQuestion, ttlFor } from './prompt/ttl.ts'
export type { Measure } from './retrieve/fit-text.ts'
export { type HistoryAnswer, runHistory } from './retrieve/history.ts'
export { historyTool } from './retrieve/history-tool.ts'
export { HISTORY_TOOL, howToGet, NO_PATHS, type RetrievalPaths } from './retrieve/how-to-get.ts'
export { type ExportOptions, exportMarkdown, markdownPieces } from './retrieve/markdown/export.ts'
export type { HistorySource } from './retrieve/page.ts'
export { type BlobReader, restoreRecord } from './retrieve/restore.ts'
export { type BlobWriter, type SpillOutcome, type SpillQuestion, spill } from './retrieve/spill.ts'
export {
  type AcceptRules,
  type AnswerRefusal,
  acceptBlock,
  acceptSummary,
  type SummaryAnswer,
  type Verdict,
} from './summarize/accept.ts'
export type {
  Ask,
  AskDeadlines,
  AskFailure,
  AskOutcome,
  BlockAsk,
  ChainContext,
  ChainFailure,
  ChainStep,
  ChainSummary,
  DirectAsk,
  Done,
  FallbackReason,
  ForkAsk,
  LocalAsk,
} from './summarize/ask.ts'
export { answered, mostCalls, nextAsk, startChain, unfit } from './summarize/chain.ts'
export { isDone } from './summarize/chain-settle.ts'
export type { Chain } from './summarize/chain-state.ts'
export { composeSummary, type LocalCover } from './summarize/compose-summary.ts'
export { type Facts, factsOf, type Said, withoutMessages } from './summarize/facts.ts'
export type { FailedCall, FailingCommand } from './summarize/failing-command.ts'
export { type Gated, type GateList, type GateRules, passGate } from './summarize/gate.ts'
export { dropHead, type HeadDrop, type HeadDropContext, TRUNCATION_MARKER } from './summarize/head-drop.ts'
export { historyOf } from './summarize/history.ts'
export { composeInstructions, type InstructionSources, type Instructions } from './summarize/instructions.ts'
export { type KeptMetadata, keptMetadata, keptUuids, type SpanAnchors } from './summarize/kept-metadata.ts'
export { type Ledger, type LedgerRules, ledgerOf } from './summarize/ledger.ts'
export type { LedgerFile } from './summarize/ledger-lines.ts'
export { type LocalSummary, type LocalSummaryRules, localSummary } from './summarize/local-summary.ts'
export { type Missing, missingFrom } from './summarize/missing.ts'
export { type ParsedSummary, parseSummary } from './summarize/parse-summary.ts'
export { type PartRoom, type Parts, splitParts } from './summarize/parts.ts'
export type { MessageRules, PersonMessage } from './summarize/person-message.ts'
export type { Pins } from './summarize/pinned.ts'
export { type DirectInput, type InputParts, prepareInput } from './summarize/prepare-input.ts'
export {
  type CarriedThing,
  type Losses,
  type Lost,
  type Receipt,
  type ReceiptQuestion,
  receiptOf,
} from './summarize/receipt.ts'
export { REDACTED, redact, redactAll } from './summarize/redact.ts'
export { type CompactForm, sectionTitles } from './summarize/sections.ts'
export {
  chooseSpan,
  type Span,
  type SpanChoice,
  type SpanOptions,
  type SpanRefusal,
  type SpanRefusalReason,
} from './summarize/span.ts'
export { answerSettings, type Summariser } from './summarize/summariser.ts'
export {
  type Continuation,
  continuationFor,
  type SummaryMessageParts,
  type SummaryRecordBody,
  summaryMessage,
  summaryRecord,
} from './summarize/summary-message.ts'
export { type SummaryTask, summaryPrompt } from './summarize/summary-prompt.ts'
export type { TodoItem } from './summarize/todo-state.ts'
export type { FileTouch, ToolKind } from './summarize/tool-kind.ts'
export type { ToolRun } from './summarize/tool-run.ts'
export type { TouchedFile } from './summarize/touched-file.ts'
export { advanceCheck, type Checked, findingsOf, startCheck } from './view/checked.ts'
export type { FlatMessage } from './view/draft.ts'
export type { Cleared, Entry } from './view/entry.ts'
export { type Flat, flatMessagesOf, flatten, messagesOf, repairsOf } from './view/flatten.ts'
export { MISSING_RESULT_TEXT, missingResult } from './view/pairing.ts'
export { isShown, partsOf } from './view/parts.ts'
export type { ApiMessage, Payload, Role } from './view/payload.ts'
export type { Repair, RepairKind } from './view/repair.ts'
export { type OpenCall, openCalls, settlingRecord } from './view/settle.ts'
export { chooseUndo, type UndoChoice } from './view/undo.ts'
export type { Finding, FindingCode } from './view/validate/finding.ts'
export { validate } from './view/validate/validate.ts'
export { type Act, advance, emptyView, type View, viewOf } from './view/view.ts'
