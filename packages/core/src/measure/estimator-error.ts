/**
 * How far the estimates of a recorded session were from the truth: for each call after the first, the growth
 * of the context, predicted with nothing but what was known before the call was answered, against what the
 * provider reported.
 */
import { type Block, isThinking } from '../log/block.ts'
import type { EstimatePolicy } from '../policy/policy.ts'
import { type Calibration, growthOf, observe, scaleOf, startCalibration } from '../tokens/calibration.ts'
import type { Estimator } from '../tokens/estimator.ts'
import type { ApiCall, BreakReason } from './estimator-calls.ts'
import { type ReminderRule, reminderTokens } from './estimator-reminders.ts'

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

export function estimatedTurns(calls: readonly ApiCall[], trial: EstimatorTrial): readonly EstimatedTurn[] {
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

export function estimatorError(turns: readonly EstimatedTurn[]): EstimatorError {
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
      calibration: isLesson ? observe(before.calibration, lesson) : before.calibration,
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
  const grown = growthOf(calibration, added.tokens, trial.policy)
  const stripped = model.stripsThinking && call.endsTurn ? before.thinking : 0
  const rest = reminder - Math.round(scaleOf(calibration) * stripped)
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
