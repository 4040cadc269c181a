/**
 * A model and what the policy derives from it: token estimator, limits, request parameters and connection. Each session
 * has its own connection and the parameters that it was given; sessions share the rest.
 */
import { createToolResultRules, type ToolResultRules } from '@tidemark/core/clearing/tool-result-index'
import type { SeparateSummaryModel } from '@tidemark/core/engine/host'
import type { Model } from '@tidemark/core/engine/ports'
import type { JsonObject } from '@tidemark/core/log/json'
import {
  computeScaledLimits,
  describeCappedReserve,
  type ScaledLimits,
} from '@tidemark/core/policy/scale-policy'
import { applyParameterChanges } from '@tidemark/core/request/prefix-snapshot'
import { createEstimator, type Estimator } from '@tidemark/core/tokens/estimator'
import { renamePriceClasses } from '@tidemark/wire/catalogue/custom-models'
import type { ModelChoice } from '../models/model-choice.ts'
import { findCodec } from '../models/providers.ts'
import { withNeutralReplies } from '../platform/checked-ports.ts'
import type { SessionTelemetry } from '../telemetry/telemetry.ts'
import type { SessionListeners } from './events.ts'
import type { TidemarkSettings } from './options.ts'

export interface SessionModel {
  readonly choice: ModelChoice
  readonly port: Model
  readonly estimator: Estimator
  readonly scaled: ScaledLimits
  readonly rules: ToolResultRules
  readonly parameters: JsonObject
  /** Parameters given to `next` so far, null for those it removed. They are applied again after a switch of the model. */
  readonly parameterChanges: JsonObject
}

const DEFAULT_OUTPUT_LIMIT = 8_192

/**
 * Derives everything from a model and the policy, and connects to the model. The connection belongs to no session yet:
 * see `withSessionConnection`.
 */
export function createSessionModel(given: ModelChoice, settings: TidemarkSettings): SessionModel {
  const choice = withPresentPriceNames(given)
  const { policy, switches, options } = settings
  const { maxOutput } = choice
  const estimator = createEstimator(choice.weights(policy.estimate), choice.hasTokenizerOf)
  const scaled = computeScaledLimits(policy, { window: choice.window, maxOutput }, switches)
  const rules = createToolResultRules({
    estimator,
    policy: policy.clear,
    largeInput: scaled.budgets.clear.largeInput,
    // If the policy lists tools, only these can be cleared. Without a list, tools of any name can, except protected ones.
    host: {
      clearsUnlisted: options.policy?.clear?.tools === undefined,
      ...options.hostTools,
      protected: [...policy.rehydrate.todoTools, ...(options.hostTools?.protected ?? [])],
    },
  })
  // The request allows as many output tokens as the policy reserves. More would leave less space for input.
  const reserve = scaled.known ? scaled.reserve : DEFAULT_OUTPUT_LIMIT
  const { profile } = choice
  const limit = profile.spelling.settings(
    { maxOutput: Math.max(1, Math.min(maxOutput ?? reserve, reserve)) },
    profile,
  )
  const parameters = withCompactionBeta({ ...limit, ...choice.parameters }, choice)
  const port = connect(choice, settings)
  return { choice, port, estimator, scaled, rules, parameters, parameterChanges: {} }
}

/** Returns the application's model, with former names of its prices replaced by the present ones. */
function withPresentPriceNames(choice: ModelChoice): ModelChoice {
  const priceList: ModelChoice['priceList'] = (model, at) => {
    const prices = choice.priceList(model, at)
    return prices === null || prices.writeShort !== undefined ? prices : renamePriceClasses(prices)
  }
  return { ...choice, priceList }
}

/**
 * Returns a notice for the user if the policy asks for a larger output reserve than it allows in this window; otherwise
 * an empty list.
 */
export function listModelNotices(
  { choice, scaled }: SessionModel,
  { policy }: TidemarkSettings,
): readonly string[] {
  const capped = describeCappedReserve(policy, scaled, choice.maxOutput)
  return capped === null ? [] : [capped]
}

/** Returns the model with request parameters changed. A value of null removes a parameter. */
export function withParameters(model: SessionModel, changes: JsonObject): SessionModel {
  return {
    ...model,
    parameters: applyParameterChanges(model.parameters, changes),
    parameterChanges: { ...model.parameterChanges, ...changes },
  }
}

/**
 * Returns the model with the parameters that `next` was given while the session had another model. Output tokens and
 * thinking budget above this model's limit are lowered; a later switch starts from the given values again.
 */
export function withTransferredParameters(model: SessionModel, given: JsonObject): SessionModel {
  const changed = withParameters(model, given)
  const { maxOutput, profile } = model.choice
  if (maxOutput === null) return changed
  return { ...changed, parameters: profile.spelling.limitOutput(changed.parameters, maxOutput) }
}

/**
 * Adds the beta flag for summaries that the provider writes. All requests have the flag, because adding it only to
 * summary requests would change the prefix and break the cache.
 */
function withCompactionBeta(parameters: JsonObject, { profile: { compaction } }: ModelChoice): JsonObject {
  const betas = Array.isArray(parameters.betas) ? parameters.betas : []
  if (compaction.beta === null || betas.includes(compaction.beta)) return parameters
  return { ...parameters, betas: [...betas, compaction.beta] }
}

function connect(choice: ModelChoice, { clock, policy }: TidemarkSettings, reports?: SessionReports): Model {
  const { network } = policy.turn
  if (reports === undefined) return withNeutralReplies(choice.connect({ clock, network }))
  const { listeners, telemetry, id } = reports
  const model = choice.connect({
    session: id,
    clock,
    network,
    onRetry: (retry) => listeners.emit({ type: 'retrying', ...retry }),
  })
  const complete = withNeutralReplies(model)
  if (telemetry === null) return complete
  return telemetry.traceModel(complete, {
    provider: nameTelemetryProvider(choice),
    readOutputLimit: (payload) => choice.profile.spelling.readSettings(payload).maxOutput,
  })
}

/** Receives what the connections of a session report. */
interface SessionReports {
  /** Id of the session. */
  readonly id: string
  readonly listeners: SessionListeners
  readonly telemetry: SessionTelemetry | null
}

/** Returns the name of the provider as telemetry has it, such as `anthropic` or `aws.bedrock`. */
export function nameTelemetryProvider(choice: ModelChoice): string {
  return choice.isBedrock === true ? 'aws.bedrock' : findCodec(choice).vendor
}

/**
 * Returns the model with a separate connection for one session. Retries on this connection are emitted as events of the session.
 */
export function withSessionConnection(
  model: SessionModel,
  settings: TidemarkSettings,
  reports: SessionReports,
): SessionModel {
  return { ...model, port: connect(model.choice, settings, reports) }
}

/** Creates the separate model that writes summaries; null if options and policy name none. */
export function createSeparateSummaryModel(settings: TidemarkSettings): SeparateSummaryModel | null {
  const { summariser } = settings
  if (summariser === null) return null
  const { port, scaled } = createSessionModel(summariser, settings)
  const outputTokens = scaled.known ? scaled.summaryOutput : settings.policy.compact.direct.outputTokens
  const { id, profile, window } = summariser
  return { model: port, summariser: { model: id, profile, window, outputTokens } }
}

/**
 * Returns the summary model with a separate connection for one session. Retries on this connection are emitted as
 * events of the session.
 */
export function withSummarizerConnection(
  summarizer: SeparateSummaryModel | null,
  settings: TidemarkSettings,
  reports: SessionReports,
): SeparateSummaryModel | null {
  const { summariser } = settings
  if (summarizer === null || summariser === null) return summarizer
  return { ...summarizer, model: connect(summariser, settings, reports) }
}
