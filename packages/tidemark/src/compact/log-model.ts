/** The model that continues a log's session: its profile, window and prices, as far as they are known. */
import {
  type EstimatePolicy,
  type EstimatorWeights,
  isKnown,
  isObject,
  type PriceList,
  type Profile,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type SystemRecord,
  strictProfile,
} from '@tidemark/core'
import {
  estimatorWeights,
  lookUpModel,
  modelCatalogue,
  pricesOn,
  profileFor,
  withModels,
} from '@tidemark/wire'
import { callsOf } from '../inspect/calls.ts'
import { curveOf, windowOf } from '../inspect/context-curve.ts'
import type { ReadLog } from '../logs/read-session.ts'

export interface LogModel {
  /** `unknown` if neither the log nor the caller names it. */
  readonly id: string
  readonly profile: Profile
  /** Tokens; null if unknown. */
  readonly window: number | null
  readonly maxOutput: number | null
  readonly weights: (policy: EstimatePolicy) => EstimatorWeights
  readonly pricesOf: PriceList
  /** For the user: what is not known of the model. */
  readonly notes: readonly string[]
}

/** `records`: the part of the log to compact. A given model or window overrides the log. */
export function modelOfLog(
  log: ReadLog,
  records: readonly SessionRecord[],
  { model, window }: { readonly model?: string; readonly window?: number },
): LogModel {
  const id = model ?? newestModel(records) ?? UNKNOWN
  const looked = lookUpModel(modelCatalogue, id)
  const entry = looked.found ? looked.model : null
  const known = model === undefined ? windowInLog(log, records, looked) : (entry?.window ?? null)
  const size = window ?? known
  return {
    id,
    profile: entry === null ? strangerProfile() : profileFor(entry),
    window: size,
    maxOutput: entry?.maxOutput ?? null,
    weights: (policy) => estimatorWeights(entry?.tokenizer ?? null, policy),
    pricesOf: (name, at) => {
      const found = lookUpModel(modelCatalogue, name)
      return found.found ? pricesOn(found.model, at) : null
    },
    notes: [...notesOn(id, looked.found, size), ...(looked.found ? looked.notes : [])],
  }
}

const UNKNOWN = 'unknown'

function newestModel(records: readonly SessionRecord[]): string | null {
  for (const record of records.toReversed()) {
    if (!isKnown(record)) continue
    if (record.type === 'assistant' && isModel(record.message.model) && record.isCompactSummary !== true)
      return record.message.model
    const { epoch } = record as SystemRecord
    if (record.type === 'system' && isObject(epoch) && isModel(epoch.model)) return epoch.model
  }
  return null
}

function isModel(model: unknown): model is string {
  return typeof model === 'string' && model !== '' && model !== SYNTHETIC_MODEL && model !== UNKNOWN
}

/** The rules for a model that is not in the catalogue. */
function strangerProfile(): Profile {
  const laid = withModels(modelCatalogue, { models: { [UNKNOWN]: {} } })
  const looked = laid.ok ? lookUpModel(laid.catalogue, UNKNOWN) : null
  return looked?.found === true ? profileFor(looked.model) : strictProfile
}

/** What the log shows of its window holds for its own model alone. */
function windowInLog(
  log: ReadLog,
  records: readonly SessionRecord[],
  looked: ReturnType<typeof lookUpModel>,
): number | null {
  const { points, compactions } = curveOf(records, callsOf(records, { elsewhere: new Set() }))
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  const model = looked.found ? looked : null
  return windowOf({ format: log.format, logged: log.meta.contextWindow, model, compactions, peak }).window
}

function notesOn(id: string, isListed: boolean, window: number | null): readonly string[] {
  const notes: string[] = []
  if (id === UNKNOWN) notes.push('the log names no model: --model says which it is')
  else if (!isListed)
    notes.push(
      `the catalogue has no model ${id}: prices are not known, and tokens are estimated by a fixed rule`,
    )
  if (window === null) notes.push('its window is not known: --window says how many tokens it has')
  return notes
}
