/** A model under the policy in force: its estimator, its lines, its connection. Made once and shared by all sessions. */
import {
  createEstimator,
  type Estimator,
  type JsonObject,
  type Model,
  type OtherSummariser,
  type Profile,
  type RegisterRules,
  registerRules,
  type ScaledPolicy,
  scalePolicy,
} from '@tidemark/core'
import type { ModelChoice } from '../models/model-choice.ts'
import type { Listeners } from './events.ts'
import type { Settings } from './options.ts'

export interface FittedModel {
  readonly choice: ModelChoice
  readonly port: Model
  readonly estimator: Estimator
  readonly scaled: ScaledPolicy
  readonly rules: RegisterRules
  readonly parameters: JsonObject
}

export function fitModel(choice: ModelChoice, settings: Settings): FittedModel {
  const { policy, switches, options } = settings
  const estimator = createEstimator(choice.weights(policy.estimate))
  const scaled = scalePolicy(policy, { window: choice.window, maxOutput: choice.maxOutput }, switches)
  const rules = registerRules({
    estimator,
    policy: policy.clear,
    largeInput: scaled.budgets.clear.largeInput,
    ...(options.hostTools === undefined ? {} : { host: options.hostTools }),
  })
  return {
    choice,
    port: connected(choice, settings),
    estimator,
    scaled,
    rules,
    parameters: withBetas({ max_tokens: usualOutput(choice, scaled), ...choice.parameters }, choice.profile),
  }
}

function connected({ connect }: ModelChoice, { clock, policy }: Settings, listeners?: Listeners): Model {
  const { network } = policy.turn
  if (listeners === undefined) return connect({ clock, network })
  return connect({ clock, network, onRetry: (retry) => listeners.emit({ type: 'retrying', ...retry }) })
}

/** The same model, whose retries are told to those who listen to one session. */
export function heardModel(fitted: FittedModel, settings: Settings, listeners: Listeners): FittedModel {
  return { ...fitted, port: connected(fitted.choice, settings, listeners) }
}

export function heardSummariser(
  other: OtherSummariser | null,
  settings: Settings,
  listeners: Listeners,
): OtherSummariser | null {
  const { summariser: choice } = settings.options
  if (other === null || choice === undefined) return other
  return { ...other, port: connected(choice, settings, listeners) }
}

const USUAL_OUTPUT = 8_192

/** As much as the policy sets aside for an answer: more would have to be taken from the room for input. */
function usualOutput({ maxOutput }: ModelChoice, scaled: ScaledPolicy): number {
  const reserve = scaled.known ? scaled.offsets.reserve : USUAL_OUTPUT
  return Math.max(1, Math.min(maxOutput ?? reserve, reserve))
}

/** A request that carries the provider's own summary has to name this; named later, it would begin another epoch. */
function withBetas(parameters: JsonObject, { compaction }: Profile): JsonObject {
  const given = Array.isArray(parameters.betas) ? parameters.betas : []
  if (compaction.beta === null || given.includes(compaction.beta)) return parameters
  return { ...parameters, betas: [...given, compaction.beta] }
}
