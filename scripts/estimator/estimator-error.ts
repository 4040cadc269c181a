/**
 * Measures the error of the token estimator on a logged session. For each call after the first, the predicted growth of
 * the context is compared with the growth that the provider reported. scripts/fit-estimator.ts fits the estimator's
 * weights with it, and test/estimator.test.ts holds them.
 */
import { endsPreviousTurn, isVisibleToModel, toTracedBlocks } from '@tidemark/core/context/context-entry'
import { type Block, isThinkingBlock, isToolUse, toBlocks } from '@tidemark/core/log/block'
import { isObject } from '@tidemark/core/log/json'
import {
  type AssistantRecord,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isPrompt,
  type KnownRecord,
  type SessionRecord,
  SYNTHETIC_MODEL,
} from '@tidemark/core/log/record'
import type { TokenEstimatePolicy } from '@tidemark/core/policy/window-policy'
import type { Estimator } from '@tidemark/core/tokens/estimator'
import {
  addGrowthObservation,
  type Calibration,
  calibrateGrowth,
  computeCalibrationScale,
  readReportedContextTokens,
  startCalibration,
} from '@tidemark/core/tokens/usage'
import { FITTED_CONSTANTS } from '@tidemark/wire/catalogue/estimator-constants'

/** A reminder that a host sends to the model when certain tools were not used for a while. It is not in the log. */
export interface ReminderRule {
  /** Names of the tools. A call of one of them postpones the reminder. */
  readonly tools: readonly string[]
  /** Number of content blocks in responses between two reminders. Thinking blocks are not counted. */
  readonly every: number
  readonly tokens: number
}

/** The reminder of those Claude Code versions that did not log it. */
export const CLAUDE_CODE_REMINDER: ReminderRule = {
  tools: ['TodoWrite', 'TaskCreate', 'TaskUpdate'],
  every: 10,
  tokens: FITTED_CONSTANTS.reminder,
}

type ExclusionReason = IncomparableReason | 'model-change' | 'negative-growth'

export type PredictedGrowth =
  | { readonly counted: true; readonly predicted: number; readonly high: number; readonly reported: number }
  | { readonly counted: false; readonly reason: ExclusionReason }

export interface EstimatorError {
  readonly turns: number
  /** The median of the absolute prediction errors, in tokens. */
  readonly medianAbsError: number
  /**
   * The sum of all prediction errors divided by the context growth that the provider reported; positive if the
   * estimates are too high.
   */
  readonly bias: number
  readonly excluded: readonly { readonly reason: ExclusionReason; readonly count: number }[]
}

export interface ModelEstimator {
  readonly estimator: Estimator
  /** True if the provider removes the thinking blocks of finished turns from the context. */
  readonly stripsThinking: boolean
}

export interface PredictionOptions {
  readonly policy: TokenEstimatePolicy
  /** Returns the estimator for a model; models with the same tokenizer share one. */
  readonly forModel: (model: string) => ModelEstimator
  /** Describes reminders that the host sends to the model at intervals but does not log. */
  readonly reminder?: ReminderRule | undefined
}

export function predictGrowth(
  calls: readonly MeasuredCall[],
  trial: PredictionOptions,
): readonly PredictedGrowth[] {
  const reminders = trial.reminder === undefined ? [] : listReminderTokens(calls, trial.reminder)
  const turns: PredictedGrowth[] = []
  let state: State | null = null
  for (const [index, call] of calls.entries()) {
    const step: Step = stepTo(call, state, { ...trial, reminding: reminders[index] ?? 0 })
    if (step.turn !== null) turns.push(step.turn)
    state = step.state
  }
  return turns
}

export function measurePredictionError(turns: readonly PredictedGrowth[]): EstimatorError {
  const counted = turns.filter((turn) => turn.counted)
  const errors = counted.map(({ predicted, reported }) => predicted - reported)
  const grown = sum(counted.map(({ reported }) => reported))
  return {
    turns: counted.length,
    medianAbsError: median(errors.map(Math.abs)),
    bias: grown === 0 ? 0 : sum(errors) / grown,
    excluded: exclusions(turns),
  }
}

/** What is known about the context after a call. The prediction for the next call starts from it. */
interface State {
  readonly model: ModelEstimator
  readonly context: number
  readonly calibration: Calibration
  /** Estimated tokens of the current turn's thinking blocks, which the provider may remove when the turn ends. */
  readonly thinking: number
}

interface Step {
  readonly turn: PredictedGrowth | null
  readonly state: State
}

/**
 * Compares the predicted with the reported context growth of one call. `before`: what was known after the previous
 * call. `reminding`: tokens of the unlogged reminder that was sent with this call.
 */
function stepTo(
  call: MeasuredCall,
  before: State | null,
  trial: PredictionOptions & { readonly reminding: number },
): Step {
  const model = trial.forModel(call.model)
  const added = addedBy(call, model)
  const fresh = startCalibration(model.estimator.weights.start)
  if (before === null || before.model.estimator !== model.estimator) {
    const state = { model, context: call.context, calibration: fresh, thinking: 0 }
    return { turn: before === null ? null : { counted: false, reason: call.broken ?? 'model-change' }, state }
  }
  const reported = call.context - before.context
  const turn = turnOf({ call, added, before, reported, reminder: trial.reminding }, trial)
  const isLesson = turn.counted && !(call.endsTurn && model.stripsThinking)
  const lesson = { estimated: added.tokens, reported: reported - trial.reminding }
  return {
    turn,
    state: {
      model,
      context: call.context,
      calibration: isLesson ? addGrowthObservation(before.calibration, lesson) : before.calibration,
      thinking: call.broken !== null || call.endsTurn ? 0 : before.thinking + added.thinking,
    },
  }
}

interface Added {
  /** Estimated tokens added to the context since the previous call, without thinking that the provider removes. */
  readonly tokens: number
  /** Estimated tokens of the thinking blocks in the added content. */
  readonly thinking: number
}

function addedBy(
  { said, heard, endsTurn }: MeasuredCall,
  { estimator, stripsThinking }: ModelEstimator,
): Added {
  const tokens = (blocks: readonly Block[]): number => sum(blocks.map(estimator.block))
  const thinking = tokens(said.filter(isThinkingBlock))
  const rest = tokens(said.filter((block) => !isThinkingBlock(block))) + tokens(heard)
  return { tokens: endsTurn && stripsThinking ? rest : rest + thinking, thinking }
}

interface Comparison {
  readonly call: MeasuredCall
  readonly added: Added
  readonly before: State
  readonly reported: number
  readonly reminder: number
}

function turnOf(
  { call, added, before, reported, reminder }: Comparison,
  trial: PredictionOptions,
): PredictedGrowth {
  const { calibration, model } = before
  if (call.broken !== null) return { counted: false, reason: call.broken }
  if (reported < 0 && !model.stripsThinking) return { counted: false, reason: 'negative-growth' }
  const grown = calibrateGrowth(calibration, added.tokens, trial.policy)
  const stripped = model.stripsThinking && call.endsTurn ? before.thinking : 0
  const rest = reminder - Math.round(computeCalibrationScale(calibration) * stripped)
  return { counted: true, predicted: grown.expected + rest, high: grown.high + rest, reported }
}

function exclusions(turns: readonly PredictedGrowth[]): EstimatorError['excluded'] {
  const counts = new Map<ExclusionReason, number>()
  for (const turn of turns) if (!turn.counted) counts.set(turn.reason, (counts.get(turn.reason) ?? 0) + 1)
  return [...counts].map(([reason, count]) => ({ reason, count }))
}

function median(figures: readonly number[]): number {
  const sorted = figures.toSorted((one, other) => one - other)
  const middle = (sorted.length - 1) / 2
  return ((sorted[Math.floor(middle)] ?? 0) + (sorted[Math.ceil(middle)] ?? 0)) / 2
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}

// The API calls of a log, each with the context size the provider reported and the blocks added since the previous
// call.

/** Why the context of a call cannot be compared with the context of the previous call. */
type IncomparableReason = 'boundary' | 'clearing' | 'restart' | 'rewind'

export interface MeasuredCall {
  readonly model: string
  /** Prompt tokens that the provider reported for the call. */
  readonly context: number
  /** The content blocks of the previous call's response. */
  readonly said: readonly Block[]
  /** The content blocks added since the previous response: tool results, prompts and attachments. */
  readonly heard: readonly Block[]
  /**
   * True if the turn of the previous response ended before this call, for example because the user sent a new prompt.
   */
  readonly endsTurn: boolean
  readonly broken: IncomparableReason | null
}

/** Checks whether the host was restarted at this record. A restart may change the system prompt and tools. */
export type RestartCheck = (record: SessionRecord, before: SessionRecord | undefined) => boolean

/** Lists the API calls in the order of the log. Records of subagents and responses without usage are skipped. */
export function listMeasuredCalls(
  records: Iterable<SessionRecord>,
  isRestart: RestartCheck = () => false,
): readonly MeasuredCall[] {
  const draft: Draft = {
    calls: [],
    said: [],
    heard: [],
    endsTurn: false,
    broken: null,
    response: null,
    chain: new Map(),
  }
  let before: SessionRecord | undefined
  for (const record of records) {
    if (record.isSidechain === true) continue
    if (isRestart(record, before)) draft.broken ??= 'restart'
    if (isKnownRecord(record)) take(draft, record)
    before = record
  }
  return draft.calls
}

interface Draft {
  readonly calls: MeasuredCall[]
  said: Block[]
  heard: Block[]
  endsTurn: boolean
  broken: IncomparableReason | null
  /** The `message.id` of the newest response. */
  response: string | null
  /**
   * Maps the uuid of a record to the `message.id` of the nearest response at or above it in the conversation; null if
   * there is none.
   */
  readonly chain: Map<string, string | null>
}

function take(draft: Draft, record: KnownRecord): void {
  const above = draft.chain.get(record.parentUuid ?? '')
  if (record.type === 'assistant' && record.message.model !== SYNTHETIC_MODEL) {
    takeResponse(draft, record)
    draft.chain.set(record.uuid, record.message.id === draft.response ? draft.response : (above ?? null))
    return
  }
  draft.broken = breakAt(draft, record, above)
  if (above !== undefined || record.parentUuid === null) draft.chain.set(record.uuid, above ?? null)
  const entry = { record, index: 0 }
  if (record.type === 'assistant' || !isVisibleToModel(entry)) return
  draft.heard.push(...toTracedBlocks(entry).map((part) => part.block))
  draft.endsTurn ||= endsPreviousTurn(entry)
}

function breakAt(
  draft: Draft,
  record: KnownRecord,
  above: string | null | undefined,
): IncomparableReason | null {
  if (isCompactBoundary(record)) return 'boundary'
  if (draft.broken !== null) return draft.broken
  if (isMicrocompactBoundary(record)) return 'clearing'
  // A synthetic assistant message that is not an error shows that the host exited during a turn and was restarted.
  if (record.type === 'assistant' && record.isApiErrorMessage !== true) return 'restart'
  return isPrompt(record) && above !== undefined && above !== draft.response ? 'rewind' : null
}

/**
 * Adds the content blocks of a response. A response may have several records in the log; the first of them counts as
 * the call.
 */
function takeResponse(draft: Draft, { message, usage }: AssistantRecord): void {
  const context = readReportedContextTokens(usage)
  if (message.id !== draft.response && context > 0) {
    const { said, heard, endsTurn, broken } = draft
    const edited = hasEdits(message.context_management)
    draft.calls.push({ model: message.model, context, said, heard, endsTurn, broken: broken ?? edited })
    Object.assign(draft, { said: [], heard: [], endsTurn: false, broken: null, response: message.id })
  }
  draft.said.push(...toBlocks(message.content))
}

/** Returns `clearing` if the provider reports that it removed content from the context of this call; otherwise null. */
function hasEdits(management: unknown): 'clearing' | null {
  const edits = isObject(management) ? management.applied_edits : undefined
  return Array.isArray(edits) && edits.length > 0 ? 'clearing' : null
}

// Reminders that a host sends to the model but does not log. One is sent after a number of response blocks in which
// certain tools were not used.

/** Returns for each call the tokens of the unlogged reminder that was sent with it; 0 if none was sent. */
export function listReminderTokens(calls: readonly MeasuredCall[], rule: ReminderRule): readonly number[] {
  let sinceUse = 0
  let sinceReminder = 0
  return calls.map(({ said, broken }) => {
    for (const block of said) {
      if (isThinkingBlock(block)) continue
      sinceUse = isToolUse(block) && rule.tools.includes(block.name) ? 0 : sinceUse + 1
      sinceReminder += 1
    }
    if (broken !== null) sinceUse = sinceReminder = 0
    if (Math.min(sinceUse, sinceReminder) < rule.every) return 0
    sinceReminder = 0
    return rule.tokens
  })
}
