/** The model that a log's session goes on with: what it can do, how large it is, what it costs, as far as is known. */
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
  type Catalogue,
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
  /** `unknown` where neither the log nor anybody else names it. */
  readonly id: string
  readonly profile: Profile
  /** Tokens; null where nobody knows. */
  readonly window: number | null
  readonly maxOutput: number | null
  readonly weights: (policy: EstimatePolicy) => EstimatorWeights
  readonly pricesOf: PriceList
  /** What a person should know of it. */
  readonly notes: readonly string[]
}

export interface GivenModel {
  readonly model?: string
  readonly window?: number
}

/** `records`: of the log, as far as they count. What is given comes before what the log says. */
export function modelOfLog(
  log: ReadLog,
  records: readonly SessionRecord[],
  { model, window }: GivenModel,
): LogModel {
  const id = model ?? newestModel(records) ?? UNKNOWN
  const looked = lookUpModel(modelCatalogue, id)
  const entry = looked.found ? looked.model : null
  const size = window ?? windowIn(log, records, { id, isGiven: model !== undefined })
  return {
    id,
    profile: entry === null ? strangerProfile() : profileFor(entry),
    window: size,
    maxOutput: entry?.maxOutput ?? null,
    weights: (policy) => estimatorWeights(entry?.tokenizer ?? null, policy),
    pricesOf: pricesIn(modelCatalogue),
    notes: [...notesOn({ id, isKnown: looked.found, window: size }), ...(looked.found ? looked.notes : [])],
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

/** The rules of providers that nobody here has heard of. */
function strangerProfile(): Profile {
  const laid = withModels(modelCatalogue, { models: { [UNKNOWN]: {} } })
  const looked = laid.ok ? lookUpModel(laid.catalogue, UNKNOWN) : null
  return looked?.found === true ? profileFor(looked.model) : strictProfile
}

interface Named {
  readonly id: string
  readonly isGiven: boolean
}

/** What the log shows of its window is true of its own model alone. */
function windowIn(log: ReadLog, records: readonly SessionRecord[], { id, isGiven }: Named): number | null {
  const looked = lookUpModel(modelCatalogue, id)
  const model = looked.found ? looked : null
  if (isGiven) return model?.model.window ?? null
  const { points, compactions } = curveOf(records, callsOf(records, { elsewhere: new Set() }))
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  return windowOf({ format: log.format, logged: log.meta.contextWindow, model, compactions, peak }).window
}

function notesOn({
  id,
  isKnown: isListed,
  window,
}: {
  readonly id: string
  readonly isKnown: boolean
  readonly window: number | null
}): readonly string[] {
  const who =
    id === UNKNOWN
      ? ['the log names no model: --model says which it is']
      : isListed
        ? []
        : [`the catalogue has no model ${id}: prices are not known, and tokens are estimated by a fixed rule`]
  const size = window === null ? ['its window is not known: --window says how many tokens it has'] : []
  return [...who, ...size]
}

function pricesIn(catalogue: Catalogue): PriceList {
  return (model, at) => {
    const looked = lookUpModel(catalogue, model)
    return looked.found ? pricesOn(looked.model, at) : null
  }
}
