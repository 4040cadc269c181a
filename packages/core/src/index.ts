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
export { type Sending, sentRequest, type WatchedRequest } from './breaks/sent-request.ts'
export { announceAct, type CacheWatch, emptyCacheWatch, takeSnapshot } from './breaks/watch.ts'
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
  SYNTHETIC_MODEL,
  type SystemRecord,
  type Usage,
  type UserMessage,
  type UserRecord,
} from './conversation/record.ts'
export { cutAtOrAfter, cutAtOrBefore, legalCuts, roundsOf } from './conversation/round.ts'
export { emptySession, reduce, type Session, sessionOf } from './conversation/session.ts'
export { placeOf, recordAt } from './conversation/tree.ts'
export { LOG_VERSION, type LogHeader, newHeader } from './conversation/upcast.ts'
export {
  type Assembly,
  assemble,
  collect,
  emptyAssembly,
  replyOf,
} from './engine/collect.ts'
export type { Failure, FailureKind, TokenGap } from './engine/failure.ts'
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
export { catchUp, openSession, type SessionState } from './engine/session-state.ts'
export { runTurn, type TurnAsked } from './engine/turn.ts'
export type { AppendRefusal, Halt, TurnDone, TurnEvent, TurnOutcome } from './engine/turn-event.ts'
export type { Offered, RunTool, ToolAnswer, TurnHost } from './engine/turn-host.ts'
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
export { addMoney, type Money, NO_MONEY } from './measure/money.ts'
export { type PricesOf, priceOf, priceTokens, priceUncached } from './measure/price.ts'
export { type Prices, type PriceTier, type Rates, ratesFor } from './measure/prices.ts'
export { type ContextQuestion, type ContextTokens, contextTokens } from './measure/usage.ts'
export type { MeasuredView } from './measure/usage-anchor.ts'
export { contextOf, outputOf } from './measure/usage-figures.ts'
export type { Budgets, ClearBudgets } from './policy/budgets.ts'
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
export { proposeSize, type SizeProposal } from './prompt/budget.ts'
export { type ChangeCause, type ChangeRules, changesOf, type PrefixChange } from './prompt/changes.ts'
export type { MessageList } from './prompt/count.ts'
export { type HeldEdge, holdEdge, NO_EDGE } from './prompt/edge.ts'
export { type EpochTurn, hasBoundThinking, openEpoch, type Present, turnEpoch } from './prompt/epoch.ts'
export { type Forecast, forecastRead } from './prompt/forecast.ts'
export { type CacheSafeParams, captureParams, type ForkOutcome, fork, readShare } from './prompt/fork.ts'
export { type Front, frontOf } from './prompt/front.ts'
export { type GapTally, NO_GAPS, tallyGap } from './prompt/gaps.ts'
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
export { payloadOf, placedMarkers, rawTextsOf, requestFields, requestFindings } from './prompt/spell.ts'
export { type CallerPrompt, placeSections, type SystemPrompt } from './prompt/system-prompt.ts'
export { epochRecord, type RecordBody } from './prompt/tell.ts'
export { advanceTold, nothingTold, type StandingEpoch, type Told } from './prompt/told.ts'
export { orderTools } from './prompt/tool-order.ts'
export { chooseTtl, type Entitlement, type TtlQuestion, ttlFor } from './prompt/ttl.ts'
export { advanceCheck, type Checked, findingsOf, startCheck } from './view/checked.ts'
export type { FlatMessage } from './view/draft.ts'
export type { Cleared, Entry } from './view/entry.ts'
export { type Flat, flatMessagesOf, flatten, messagesOf, repairsOf } from './view/flatten.ts'
export { MISSING_RESULT_TEXT, missingResult } from './view/pairing.ts'
export type { ApiMessage, Payload, Role } from './view/payload.ts'
export type { Repair, RepairKind } from './view/repair.ts'
export { type OpenCall, openCalls, settlingRecord } from './view/settle.ts'
export { chooseUndo, type UndoChoice } from './view/undo.ts'
export type { Finding, FindingCode } from './view/validate/finding.ts'
export { validate } from './view/validate/validate.ts'
export { type Act, advance, emptyView, type View, viewOf } from './view/view.ts'
