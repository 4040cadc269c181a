/**
 * How far the token estimates of a recorded session were from the truth: for each call after the first, the growth of the
 * context, predicted from what was known before the call was answered, against what the provider reported.
 * `inspect` shows the result; scripts/fit-estimator.ts fits the estimator's weights with it.
 */
import {
  type AssistantRecord,
  type Block,
  type Calibration,
  calibrateGrowth,
  countContextTokens,
  DEFAULT_POLICY,
  type EstimatePolicy,
  type Estimator,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isObject,
  isPrompt,
  isThinking,
  isToolUse,
  isTurnEnd,
  isVisibleToModel,
  type KnownRecord,
  readScale,
  type SessionRecord,
  SYNTHETIC_MODEL,
  startCalibration,
  toBlocks,
  toMessageParts,
  withObservation,
} from '@tidemark/core'
import { claudeCodeReminder, isClaudeCodeRestart, type LogFormat, type ReminderRule } from '@tidemark/wire'
import type { EstimatorReport } from './report.ts'

export function estimatorReport(
  records: readonly SessionRecord[],
  format: LogFormat,
  forModel: EstimatorTrial['forModel'],
): EstimatorReport {
  const isClaudeCodes = format === 'claude-code'
  const reminder = isClaudeCodes ? claudeCodeReminder(records) : undefined
  const turns = predictTurns(listApiCalls(records, isClaudeCodes ? isClaudeCodeRestart : undefined), {
    policy: DEFAULT_POLICY.estimate,
    forModel,
    ...(reminder === undefined ? {} : { reminder }),
  })
  const { turns: counted, medianAbsError, bias, excluded } = measureError(turns)
  return {
    turns: counted,
    medianAbsError: counted === 0 ? null : medianAbsError,
    bias: counted === 0 ? null : Math.round(bias * 1e4) / 1e4,
    excluded,
  }
}

export type ExclusionReason = BreakReason | 'model-change' | 'negative-growth'

export type EstimatedTurn =
  | { readonly counted: true; readonly predicted: number; readonly high: number; readonly reported: number }
  | { readonly counted: false; readonly reason: ExclusionReason }

export interface EstimatorError {
  readonly turns: number
  /** Tokens. */
  readonly medianAbsError: number
  /** What the predictions come to beyond the reports, as a share of the reports. */
  readonly bias: number
  readonly excluded: readonly { readonly reason: ExclusionReason; readonly count: number }[]
}

export interface ModelEstimator {
  readonly estimator: Estimator
  /** The provider leaves out the thinking of finished turns. */
  readonly stripsThinking: boolean
}

export interface EstimatorTrial {
  readonly policy: EstimatePolicy
  /** Models that count alike share one estimator. */
  readonly forModel: (model: string) => ModelEstimator
  /** What the host of this log sends and does not log. */
  readonly reminder?: ReminderRule | undefined
}

export function predictTurns(calls: readonly ApiCall[], trial: EstimatorTrial): readonly EstimatedTurn[] {
  const reminders = trial.reminder === undefined ? [] : reminderTokens(calls, trial.reminder)
  const turns: EstimatedTurn[] = []
  let state: State | null = null
  for (const [index, call] of calls.entries()) {
    const step: Step = stepTo(call, state, { ...trial, reminding: reminders[index] ?? 0 })
    if (step.turn !== null) turns.push(step.turn)
    state = step.state
  }
  return turns
}

export function measureError(turns: readonly EstimatedTurn[]): EstimatorError {
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

/** How things stand when a call has been answered. */
interface State {
  readonly model: ModelEstimator
  readonly context: number
  readonly calibration: Calibration
  /** Estimate of the thinking in the context that goes when the turn is finished. */
  readonly thinking: number
}

interface Step {
  readonly turn: EstimatedTurn | null
  readonly state: State
}

/** `reminding`: tokens of the reminder that goes with this call. */
function stepTo(
  call: ApiCall,
  before: State | null,
  trial: EstimatorTrial & { readonly reminding: number },
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
      calibration: isLesson ? withObservation(before.calibration, lesson) : before.calibration,
      thinking: call.broken !== null || call.endsTurn ? 0 : before.thinking + added.thinking,
    },
  }
}

interface Added {
  /** Estimate of what stays. */
  readonly tokens: number
  /** Estimate of the thinking in it. */
  readonly thinking: number
}

function addedBy({ said, heard, endsTurn }: ApiCall, { estimator, stripsThinking }: ModelEstimator): Added {
  const tokens = (blocks: readonly Block[]): number => sum(blocks.map(estimator.block))
  const thinking = tokens(said.filter(isThinking))
  const rest = tokens(said.filter((block) => !isThinking(block))) + tokens(heard)
  return { tokens: endsTurn && stripsThinking ? rest : rest + thinking, thinking }
}

interface Comparison {
  readonly call: ApiCall
  readonly added: Added
  readonly before: State
  readonly reported: number
  readonly reminder: number
}

function turnOf(
  { call, added, before, reported, reminder }: Comparison,
  trial: EstimatorTrial,
): EstimatedTurn {
  const { calibration, model } = before
  if (call.broken !== null) return { counted: false, reason: call.broken }
  if (reported < 0 && !model.stripsThinking) return { counted: false, reason: 'negative-growth' }
  const grown = calibrateGrowth(calibration, added.tokens, trial.policy)
  const stripped = model.stripsThinking && call.endsTurn ? before.thinking : 0
  const rest = reminder - Math.round(readScale(calibration) * stripped)
  return { counted: true, predicted: grown.expected + rest, high: grown.high + rest, reported }
}

function exclusions(turns: readonly EstimatedTurn[]): EstimatorError['excluded'] {
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

// The API calls of a log: the size of each context by the provider's count, and what was added to it.

/** Why a context cannot be compared with the one before. */
export type BreakReason = 'boundary' | 'clearing' | 'restart' | 'rewind'

export interface ApiCall {
  readonly model: string
  /** Tokens of the context that was sent. */
  readonly context: number
  /** The response to the call before. */
  readonly said: readonly Block[]
  /** What came since: tool results, prompts, attachments. */
  readonly heard: readonly Block[]
  /** What came since ended the turn that the call before was of. */
  readonly endsTurn: boolean
  readonly broken: BreakReason | null
}

/** Was the host that wrote this log started anew here? Its prefix may then have changed. */
export type IsRestart = (record: SessionRecord, before: SessionRecord | undefined) => boolean

/** In the order of the log. Records of side agents and responses without usage are left out. */
export function listApiCalls(
  records: Iterable<SessionRecord>,
  isRestart: IsRestart = () => false,
): readonly ApiCall[] {
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
  readonly calls: ApiCall[]
  said: Block[]
  heard: Block[]
  endsTurn: boolean
  broken: BreakReason | null
  /** `message.id` of the newest call. */
  response: string | null
  /** Record → the newest response on its way up, or null. */
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
  draft.heard.push(...toMessageParts(entry).map((part) => part.block))
  draft.endsTurn ||= isTurnEnd(entry)
}

function breakAt(draft: Draft, record: KnownRecord, above: string | null | undefined): BreakReason | null {
  if (isCompactBoundary(record)) return 'boundary'
  if (draft.broken !== null) return draft.broken
  if (isMicrocompactBoundary(record)) return 'clearing'
  // Words that a host puts in the model's mouth, other than errors, mend a turn that an exit cut off.
  if (record.type === 'assistant' && record.isApiErrorMessage !== true) return 'restart'
  return isPrompt(record) && above !== undefined && above !== draft.response ? 'rewind' : null
}

/** Several records may hold one response; the first of them is where the call was made. */
function takeResponse(draft: Draft, { message }: AssistantRecord): void {
  const context = countContextTokens(message.usage)
  if (message.id !== draft.response && context > 0) {
    const { said, heard, endsTurn, broken } = draft
    const edited = hasEdits(message.context_management)
    draft.calls.push({ model: message.model, context, said, heard, endsTurn, broken: broken ?? edited })
    Object.assign(draft, { said: [], heard: [], endsTurn: false, broken: null, response: message.id })
  }
  draft.said.push(...toBlocks(message.content))
}

/** The provider itself left something out of the context of this call. */
function hasEdits(management: unknown): 'clearing' | null {
  const edits = isObject(management) ? management.applied_edits : undefined
  return Array.isArray(edits) && edits.length > 0 ? 'clearing' : null
}

// Reminders that a host sends after a number of blocks without certain tools, and does not log.

/** For each call, the tokens of the reminder sent with it: 0 for most. */
export function reminderTokens(calls: readonly ApiCall[], rule: ReminderRule): readonly number[] {
  let sinceUse = 0
  let sinceReminder = 0
  return calls.map(({ said, broken }) => {
    for (const block of said) {
      if (isThinking(block)) continue
      sinceUse = isToolUse(block) && rule.tools.includes(block.name) ? 0 : sinceUse + 1
      sinceReminder += 1
    }
    if (broken !== null) sinceUse = sinceReminder = 0
    if (Math.min(sinceUse, sinceReminder) < rule.every) return 0
    sinceReminder = 0
    return rule.tokens
  })
}
