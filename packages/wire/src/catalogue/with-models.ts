/**
 * A user's own figures, laid over the catalogue: corrections, negotiated prices, models nobody here has heard
 * of. The shape is JSON, so that a file can hold it; what is wrong with it comes back all at once.
 */
import { isObject, PRICE_CLASSES } from '@tidemark/core'
import { type Catalogue, catalogueOf } from './catalogue.ts'
import { FILE_FIELDS, GIVEN_FIELDS } from './given-fields.ts'
import { type ModelProblem, problemsIn, wrong } from './given-problems.ts'
import { lookUpModel } from './look-up.ts'
import type { ModelEntry } from './model-entry.ts'
import { UNKNOWN_MODEL } from './unknown-model.ts'

export type WithModels =
  | { readonly ok: true; readonly catalogue: Catalogue }
  | { readonly ok: false; readonly problems: readonly ModelProblem[] }

type Fields = Readonly<Record<string, unknown>>

/**
 * `{ source?, asOf?, models: { [id]: fields } }`. A name the catalogue has is corrected; another one is new and
 * starts from the model it is `like`, else from the one its spelling names, else from nothing known.
 */
export function withModels(catalogue: Catalogue, given: unknown): WithModels {
  const problems: ModelProblem[] = []
  const { models, ...file } = isObject(given) ? given : { models: undefined }
  problems.push(...problemsIn(FILE_FIELDS, file, ''))
  if (!isObject(models)) problems.push(wrong('models', 'an object with a model id for each key', models))
  let result = catalogue
  for (const [id, fields] of Object.entries(isObject(models) ? models : {})) {
    const read = readModel(result, { id, fields, file })
    problems.push(...read.problems)
    if (read.problems.length === 0) result = read.catalogue
  }
  return problems.length === 0 ? { ok: true, catalogue: result } : { ok: false, problems }
}

interface GivenModel {
  readonly id: string
  readonly fields: unknown
  readonly file: Fields
}

interface ReadModel {
  readonly catalogue: Catalogue
  readonly problems: readonly ModelProblem[]
}

function readModel(catalogue: Catalogue, { id, fields, file }: GivenModel): ReadModel {
  const path = `models.${id}`
  if (!isObject(fields))
    return { catalogue, problems: [wrong(path, 'an object with the fields of a model', fields)] }
  const shapes = problemsIn(GIVEN_FIELDS, fields, path)
  if (shapes.length > 0) return { catalogue, problems: shapes }
  const base = baseOf(catalogue, id, fields.like)
  const problems = [...strangerLike(base, fields, path), ...halfPrices(base, fields, path)]
  const model = laidOver(base ?? UNKNOWN_MODEL, fields, { id, file })
  problems.push(...takenNames(catalogue, model, path))
  return { catalogue: problems.length === 0 ? replaced(catalogue, model) : catalogue, problems }
}

function baseOf(catalogue: Catalogue, id: string, like: unknown): ModelEntry | null {
  if (typeof like !== 'string') return catalogue.byName.get(id) ?? modelOf(catalogue, id) ?? UNKNOWN_MODEL
  return modelOf(catalogue, like)
}

function modelOf(catalogue: Catalogue, id: string): ModelEntry | null {
  const looked = lookUpModel(catalogue, id)
  return looked.found ? looked.model : null
}

function strangerLike(base: ModelEntry | null, { like }: Fields, path: string): readonly ModelProblem[] {
  return base === null ? [wrong(`${path}.like`, 'the name of a model in the catalogue', like)] : []
}

/** New rates beside old price steps would be neither the old price list nor the new one. */
function halfPrices(base: ModelEntry | null, { prices }: Fields, path: string): readonly ModelProblem[] {
  const steps = (base?.prices.tiers ?? []).map(({ above }) => above)
  if (steps.length === 0 || !isObject(prices) || prices.tiers !== undefined) return []
  if (!PRICE_CLASSES.some((kind) => prices[kind] !== undefined)) return []
  const message = `has other prices over ${steps.join(' and ')} tokens: give prices.tiers too, [] for none`
  return [{ path: `${path}.prices`, message }]
}

function takenNames(
  { byName }: Catalogue,
  { id, aliases }: ModelEntry,
  path: string,
): readonly ModelProblem[] {
  return aliases.flatMap((alias) => {
    const owner = byName.get(alias)
    if (owner === undefined || owner.id === id) return []
    return [{ path: `${path}.aliases`, message: `"${alias}" is a name of ${owner.id} already` }]
  })
}

function replaced({ models }: Catalogue, model: ModelEntry): Catalogue {
  const isThere = models.some(({ id }) => id === model.id)
  return catalogueOf(isThere ? models.map((old) => (old.id === model.id ? model : old)) : [...models, model])
}

function laidOver(base: ModelEntry, fields: Fields, { id, file }: Omit<GivenModel, 'fields'>): ModelEntry {
  const { like, source = file.source ?? 'given by the user', asOf = file.asOf, ...facts } = fields
  const isNew = base.id !== id && !base.aliases.includes(id)
  const names = isNew ? { id, aliases: [] } : { id: base.id }
  const prompt = fields.window === undefined ? {} : { maxInput: fields.window }
  const said = {
    source: base === UNKNOWN_MODEL ? source : `${source}, over: ${base.source}`,
    asOf: asOf ?? base.asOf,
  }
  const doubts = base.doubts.filter(({ field }) => !isGiven(facts, field.split('.')))
  // Every field was checked against the table of what it may hold.
  return { ...merged(base, { ...names, ...prompt, ...facts, ...said }), doubts } as unknown as ModelEntry
}

/** Objects field by field, everything else whole. */
function merged(base: object, over: Fields): Fields {
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const old = result[key]
    const isGroup = isObject(old) && isObject(value) && key !== 'factors' && key !== 'fees'
    result[key] = isGroup ? merged(old, value) : value
  }
  return result
}

function isGiven(facts: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return facts !== undefined
  return isObject(facts) && Object.hasOwn(facts, key) && isGiven(facts[key], rest)
}
