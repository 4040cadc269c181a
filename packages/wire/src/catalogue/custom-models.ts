/**
 * A user's own figures, applied to the catalogue: corrections, negotiated prices, models that the catalogue does not have.
 * The input is JSON, so that a file can hold it; all its problems are reported at once.
 */
import { isObject, PRICE_CLASSES } from '@tidemark/core'
import { type Catalogue, catalogueOf, lookUpModel } from './catalogue.ts'
import type { ModelEntry } from './model-entry.ts'

type WithModels =
  | { readonly ok: true; readonly catalogue: Catalogue }
  | { readonly ok: false; readonly problems: readonly ModelProblem[] }

type Fields = Readonly<Record<string, unknown>>

/**
 * `given` is `{ source?, asOf?, models: { [id]: fields } }`. A name in the catalogue is corrected. Any other name is a new
 * model, based on the one named in `like`, else on the one that its name resolves to, else on `UNKNOWN_MODEL`.
 */
export function withModels(catalogue: Catalogue, given: unknown): WithModels {
  const problems: ModelProblem[] = []
  const { models, ...file } = isObject(given) ? given : { models: undefined }
  problems.push(...problemsIn(FILE_FIELDS, file, ''))
  if (!isObject(models)) problems.push(wrong('models', 'an object with a model id for each key', models))
  let result = catalogue
  for (const [id, fields] of Object.entries(isObject(models) ? models : {})) {
    const read = readModel(result, id, fields, file)
    problems.push(...read.problems)
    result = read.catalogue
  }
  return problems.length === 0 ? { ok: true, catalogue: result } : { ok: false, problems }
}

interface ReadModel {
  readonly catalogue: Catalogue
  readonly problems: readonly ModelProblem[]
}

function readModel(catalogue: Catalogue, id: string, fields: unknown, file: Fields): ReadModel {
  const path = `models.${id}`
  if (!isObject(fields))
    return { catalogue, problems: [wrong(path, 'an object with the fields of a model', fields)] }
  const shapes = problemsIn(GIVEN_FIELDS, fields, path)
  if (shapes.length > 0) return { catalogue, problems: shapes }
  const base = baseOf(catalogue, id, fields.like)
  const model = laidOver(base ?? UNKNOWN_MODEL, fields, { id, file })
  const problems = [
    ...(base === null ? [wrong(`${path}.like`, 'the name of a model in the catalogue', fields.like)] : []),
    ...halfPrices(base, fields, path),
    ...takenNames(catalogue, model, path),
  ]
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

/** New rates with the old price tiers would be neither the old price list nor the new one. */
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
    return [{ path: `${path}.aliases`, message: `"${alias}" is already a name of ${owner.id}` }]
  })
}

function replaced({ models }: Catalogue, model: ModelEntry): Catalogue {
  const isThere = models.some(({ id }) => id === model.id)
  return catalogueOf(isThere ? models.map((old) => (old.id === model.id ? model : old)) : [...models, model])
}

function laidOver(
  base: ModelEntry,
  fields: Fields,
  { id, file }: { readonly id: string; readonly file: Fields },
): ModelEntry {
  const { like, source = file.source ?? 'given by the user', asOf = file.asOf, ...facts } = fields
  const isNew = base.id !== id && !base.aliases.includes(id)
  const names = isNew ? { id, aliases: [] } : { id: base.id }
  const prompt = fields.window === undefined ? {} : { maxInput: fields.window }
  const provenance = {
    source: base === UNKNOWN_MODEL ? source : `${source}, over: ${base.source}`,
    asOf: asOf ?? base.asOf,
  }
  const doubts = base.doubts.filter(({ field }) => !isGiven(facts, field.split('.')))
  // Every field was checked against `MODEL_FIELDS`.
  return {
    ...merged(base, { ...names, ...prompt, ...facts, ...provenance }),
    doubts,
  } as unknown as ModelEntry
}

/** Objects are merged field by field; everything else is replaced. */
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

/** The base of a user's model that is like no other. */
export const UNKNOWN_MODEL: ModelEntry = {
  id: 'unknown',
  vendor: 'unknown',
  aliases: [],
  window: null,
  maxInput: null,
  maxOutput: null,
  prices: { input: null, cacheRead: null, write5m: null, write1h: null, output: null },
  cache: { minimum: null, markers: null, lookBack: null, ttls: null },
  thinking: {
    modes: null,
    isOnByDefault: null,
    efforts: null,
    keepsPrior: null,
    binding: null,
    isAccountBound: null,
  },
  capabilities: {
    images: null,
    forcedToolChoice: null,
    prefill: null,
    sampling: null,
    systemMessages: null,
    toolChanges: null,
    messageEffort: null,
    contextEditing: null,
    thresholdCompaction: null,
    onDemandCompaction: null,
    endsAtWindow: null,
  },
  limits: { bodyBytes: null, images: null },
  tokenizer: null,
  source: 'nothing is known',
  asOf: null,
  doubts: [],
}

interface ModelProblem {
  /** Such as `models.my-model.window`. */
  readonly path: string
  readonly message: string
}

/** Every problem, in the order of the fields given. */
function problemsIn(group: FieldGroup, given: Fields, path: string): readonly ModelProblem[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`
    const node = Object.hasOwn(group, key) ? group[key] : undefined
    if (node === undefined)
      return [{ path: at, message: `no such field; the fields are ${Object.keys(group).join(', ')}` }]
    if (isCheck(node)) return node.accepts(value) ? [] : [wrong(at, node.expects, value)]
    return isObject(value)
      ? problemsIn(node, value, at)
      : [wrong(at, `an object with any of ${Object.keys(node).join(', ')}`, value)]
  })
}

function wrong(path: string, expects: string, given: unknown): ModelProblem {
  const shown = given === undefined ? 'nothing' : JSON.stringify(given)
  return { path, message: `expected ${expects}; got ${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown}` }
}

// The fields of a model, and what each may hold.

interface Check {
  /** Completes the sentence "expected …". */
  readonly expects: string
  accepts(value: unknown): boolean
}

interface FieldGroup {
  readonly [field: string]: Check | FieldGroup
}

function isCheck(node: Check | FieldGroup): node is Check {
  return typeof node.accepts === 'function'
}

const count = (least: number): Check => ({
  expects: `a whole number of ${least} or more`,
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= least,
})
const rate: Check = {
  expects: 'dollars per million tokens, 0 or more',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
}
const factor: Check = {
  expects: 'a number above 0',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
}
const flag: Check = { expects: 'true or false', accepts: (value) => typeof value === 'boolean' }
const word: Check = {
  expects: 'a string that is not blank',
  accepts: (value) => typeof value === 'string' && value.trim() !== '',
}
const day: Check = {
  expects: 'a day as YYYY-MM-DD',
  accepts: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value),
}
const oneOf = (...choices: readonly string[]): Check => ({
  expects: choices.map((choice) => `"${choice}"`).join(' or '),
  accepts: (value) => choices.some((choice) => choice === value),
})
const listOf = (item: Check): Check => ({
  expects: `a list, each item ${item.expects}`,
  accepts: (value) => Array.isArray(value) && value.every((part) => item.accepts(part)),
})
const tableOf = (item: Check): Check => ({
  expects: `an object, each value ${item.expects}`,
  accepts: (value) => isObject(value) && Object.values(value).every((part) => item.accepts(part)),
})
const either = (one: Check, other: Check): Check => ({
  expects: `${one.expects}, or ${other.expects}`,
  accepts: (value) => one.accepts(value) || other.accepts(value),
})
const isNull: Check = { expects: 'null if it is not known', accepts: (value) => value === null }
const orNull = (check: Check): Check => either(check, isNull)

/** An object with exactly these fields. */
const shape = (fields: Readonly<Record<string, Check>>): Check => ({
  expects: `an object with ${Object.keys(fields).join(', ')}`,
  accepts: (value) =>
    isObject(value) &&
    Object.keys(value).every((key) => Object.hasOwn(fields, key)) &&
    Object.entries(fields).every(([key, check]) => check.accepts(value[key])),
})

const rates = Object.fromEntries(PRICE_CLASSES.map((kind) => [kind, orNull(rate)]))
const flags = (...names: readonly string[]): FieldGroup =>
  Object.fromEntries(names.map((name) => [name, orNull(flag)]))

const GIVEN_FIELDS: FieldGroup = {
  like: word,
  vendor: word,
  aliases: listOf(word),
  window: orNull(count(1)),
  maxInput: orNull(count(1)),
  maxOutput: orNull(count(1)),
  longWindow: count(1),
  prices: {
    ...rates,
    tiers: listOf(shape({ above: count(1), ...rates })),
    factors: tableOf(tableOf(orNull(factor))),
    fees: tableOf(orNull(rate)),
  },
  regionalFactor: factor,
  cache: {
    minimum: orNull(count(0)),
    markers: orNull(count(0)),
    lookBack: orNull(either(count(1), oneOf('unlimited'))),
    ttls: orNull(listOf(shape({ name: word, seconds: count(1) }))),
  },
  thinking: {
    modes: orNull(listOf(oneOf('adaptive', 'enabled', 'between_tools', 'disabled'))),
    leastUpTo: word,
    efforts: orNull(listOf(word)),
    binding: orNull(oneOf('none', 'model', 'prefix')),
    ...flags('isOnByDefault', 'keepsPrior', 'isAccountBound'),
  },
  capabilities: flags(
    'images',
    'forcedToolChoice',
    'prefill',
    'sampling',
    'systemMessages',
    'toolChanges',
    'messageEffort',
    'contextEditing',
    'thresholdCompaction',
    'onDemandCompaction',
    'endsAtWindow',
  ),
  limits: { bodyBytes: orNull(count(1)), images: orNull(count(0)) },
  tokenizer: orNull(oneOf('claude-to-4.6', 'claude-from-4.7', 'openai', 'gemini')),
  source: word,
  asOf: day,
}

const FILE_FIELDS: FieldGroup = { source: word, asOf: day }
