/** From whatever a log, a config or a provider calls a model to what is known of it. */
import type { Catalogue } from './catalogue.ts'
import type { ModelEntry } from './model-entry.ts'
import { timesFactor } from './model-prices.ts'
import { type Candidate, candidatesOf, type Spelling } from './spelling.ts'

export type LookUp = FoundModel | UnknownModel

export interface FoundModel {
  readonly found: true
  /** As the id asks for it: with the window of a `[1m]` suffix and the prices of a regional endpoint. */
  readonly model: ModelEntry
  readonly spelling: Spelling
  /** What the id changed, and what it leaves open. */
  readonly notes: readonly string[]
}

export interface UnknownModel {
  readonly found: false
  readonly asked: string
  /** Every name that was looked for. */
  readonly tried: readonly string[]
  readonly reason: string
}

const FAMILY = /^(?:fable|mythos|opus|sonnet|haiku|opusplan|default)$/

export function lookUpModel(catalogue: Catalogue, id: string): LookUp {
  const candidates = candidatesOf(id)
  for (const candidate of candidates) {
    const model = catalogue.byName.get(candidate.name)
    if (model !== undefined) return foundAs(model, candidate)
  }
  return unknown(id, candidates)
}

function unknown(asked: string, candidates: readonly Candidate[]): UnknownModel {
  const tried = candidates.map(({ name }) => name)
  const reason = FAMILY.test(tried.at(-1) ?? '')
    ? `"${asked}" is a family of models, and which of them it means changes with time: give the model's id`
    : `no model of the catalogue goes by "${asked}": give its figures with withModels`
  return { found: false, asked, tried, reason }
}

function foundAs(model: ModelEntry, { spelling }: Candidate): FoundModel {
  const windowed = atWindow(model, spelling)
  const priced = atRegion(windowed.model, spelling)
  return { found: true, model: priced.model, spelling, notes: [...windowed.notes, ...priced.notes] }
}

interface Adjusted {
  readonly model: ModelEntry
  readonly notes: readonly string[]
}

function atWindow(model: ModelEntry, { isLong, platform }: Spelling): Adjusted {
  const { longWindow, window } = model
  if (isLong && longWindow !== undefined) {
    return {
      model: { ...model, window: longWindow, maxInput: longWindow },
      notes: [`[1m]: a window of ${longWindow}`],
    }
  }
  const isShort = isLong && window !== null && window < 1_000_000
  if (isShort) return { model, notes: [`[1m]: no window larger than ${window} is known of ${model.id}`] }
  const isCloud = platform !== null && window !== null && window >= 1_000_000
  return { model, notes: isCloud ? ['cloud platforms may run this model with a window of 200000'] : [] }
}

function atRegion(model: ModelEntry, { platform, region }: Spelling): Adjusted {
  const { regionalFactor } = model
  if (regionalFactor === undefined || platform === null || region === 'global') return { model, notes: [] }
  if (region === null) {
    return {
      model,
      notes: [
        `prices are the global ones; an endpoint tied to a region costs ${regionalFactor} times as much`,
      ],
    }
  }
  const note = `prices are ${regionalFactor} times the global ones: the endpoint is tied to "${region}"`
  return { model: timesFactor(model, regionalFactor), notes: [note] }
}
