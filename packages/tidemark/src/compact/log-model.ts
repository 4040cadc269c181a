/** Finds the model that continues a logged session: its provider profile, context window and prices, as far as known. */
import type { FindModelPrices } from '@tidemark/core/cost/session-cost'
import { isObject } from '@tidemark/core/log/json'
import {
  isKnownRecord,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type SystemRecord,
} from '@tidemark/core/log/record'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { TokenEstimatePolicy } from '@tidemark/core/policy/window-policy'
import type { EstimatorWeights } from '@tidemark/core/tokens/estimator'
import { createPriceFinder, lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { withModels } from '@tidemark/wire/catalogue/custom-models'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import { createProviderProfile, strictProfile } from '@tidemark/wire/profiles/provider-profile'
import { detectContextWindow, readContextHistory } from '../inspect/context-curve.ts'
import { listConversationCalls } from '../inspect/logged-calls.ts'
import type { LogContents } from '../logs/read-log.ts'

export interface LogModel {
  /** The model id; `unknown` if neither the log nor the caller names a model. */
  readonly id: string
  readonly profile: ProviderProfile
  /** The model's context window in tokens; null if unknown. */
  readonly window: number | null
  readonly maxOutput: number | null
  readonly weights: (policy: TokenEstimatePolicy) => EstimatorWeights
  readonly pricesOf: FindModelPrices
  /** Sentences for the user about facts of the model that are unknown, such as its window. */
  readonly notes: readonly string[]
}

/**
 * Finds the model of a logged session. `records`: the records to compact. A model or context window in the options
 * overrides the log.
 */
export function findLogModel(
  log: LogContents,
  records: readonly SessionRecord[],
  { model, window }: { readonly model?: string; readonly window?: number },
): LogModel {
  const id = model ?? findNewestModel(records) ?? UNKNOWN_MODEL
  const looked = lookUpModel(modelCatalogue, id)
  const entry = looked.found ? looked.model : null
  const known = model === undefined ? findWindowInLog(log, records, id, looked) : (entry?.window ?? null)
  const size = window ?? known
  return {
    id,
    profile: entry === null ? createUnknownModelProfile() : createProviderProfile(entry),
    window: size,
    maxOutput: entry?.maxOutput ?? null,
    weights: (policy) => createEstimatorWeights(entry?.tokenizer ?? null, policy),
    pricesOf: createPriceFinder(modelCatalogue),
    notes: [...listModelNotes(id, looked.found, size), ...(looked.found ? looked.notes : [])],
  }
}

const UNKNOWN_MODEL = 'unknown'

function findNewestModel(records: readonly SessionRecord[]): string | null {
  for (const record of records.toReversed()) {
    if (!isKnownRecord(record)) continue
    if (record.type === 'assistant' && isModelName(record.message.model) && record.isCompactSummary !== true)
      return record.message.model
    const { epoch } = record as SystemRecord
    if (record.type === 'system' && isObject(epoch) && isModelName(epoch.model)) return epoch.model
  }
  return null
}

function isModelName(model: unknown): model is string {
  return typeof model === 'string' && model !== '' && model !== SYNTHETIC_MODEL && model !== UNKNOWN_MODEL
}

/** Returns the provider rules for a model that is not in the catalogue. */
function createUnknownModelProfile(): ProviderProfile {
  const laid = withModels(modelCatalogue, { models: { [UNKNOWN_MODEL]: {} } })
  const looked = laid.ok ? lookUpModel(laid.catalogue, UNKNOWN_MODEL) : null
  return looked?.found === true ? createProviderProfile(looked.model) : strictProfile
}

/**
 * Returns the context window with which the session ran, as far as the log shows it; null if unknown. It applies only
 * to the model in the log, because another model may have another window.
 */
function findWindowInLog(
  log: LogContents,
  records: readonly SessionRecord[],
  id: string,
  looked: ReturnType<typeof lookUpModel>,
): number | null {
  const origin = log.meta.copiedFrom?.format
  const calls = listConversationCalls(records, { elsewhere: new Set(), origin })
  const { points, compactions } = readContextHistory(
    records,
    calls.filter(({ model }) => model === id),
  )
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  const model = looked.found ? looked : null
  const format = calls.at(-1)?.copiedFrom ?? log.format
  return detectContextWindow({ format, logged: log.meta.contextWindow, model, compactions, peak }).window
}

function listModelNotes(id: string, isListed: boolean, window: number | null): readonly string[] {
  const notes: string[] = []
  if (id === UNKNOWN_MODEL) notes.push('the log names no model: --model says which it is')
  else if (!isListed)
    notes.push(
      `the catalogue has no model ${id}: prices are not known, and tokens are estimated by a fixed rule`,
    )
  if (window === null) notes.push('its window is not known: --window says how many tokens it has')
  return notes
}
