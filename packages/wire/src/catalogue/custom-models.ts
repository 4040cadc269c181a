/**
 * Adds a user's own figures to the model catalogue: corrections, negotiated prices and new models. The input is plain
 * JSON, and all its problems are reported at once.
 */
import { isObject } from '@tidemark/core/log/json'
import { PRICE_CLASSES } from '@tidemark/core/tokens/usage'
import { type Catalogue, createCatalogue, lookUpModel } from './catalogue.ts'
import type { ModelEntry } from './model-entry.ts'

type WithModelsResult =
  | { readonly ok: true; readonly catalogue: Catalogue }
  | { readonly ok: false; readonly problems: readonly ModelProblem[] }

type InputFields = Readonly<Record<string, unknown>>

/**
 * Returns the catalogue with the user's models added, or all problems of the input. `given` is `{ source?, asOf?,
 * models: { [id]: fields } }`. If a name is in the catalogue, its fields correct that model. Otherwise a model is
 * added, based on the model named in `like`, else on the model that the name resolves to, else on `UNKNOWN_MODEL`.
 */
export function withModels(catalogue: Catalogue, given: unknown): WithModelsResult {
  const problems: ModelProblem[] = []
  const { models, ...file } = isObject(given) ? given : { models: undefined }
  problems.push(...findFieldProblems(FILE_FIELDS, file, ''))
  if (!isObject(models))
    problems.push(expectedProblem('models', 'an object with a model id for each key', models))
  let result = catalogue
  for (const [id, fields] of Object.entries(isObject(models) ? models : {})) {
    const read = readCustomModel(result, id, fields, file)
    problems.push(...read.problems)
    result = read.catalogue
  }
  return problems.length === 0 ? { ok: true, catalogue: result } : { ok: false, problems }
}

interface ReadModelResult {
  readonly catalogue: Catalogue
  readonly problems: readonly ModelProblem[]
}

function readCustomModel(
  catalogue: Catalogue,
  id: string,
  given: unknown,
  file: InputFields,
): ReadModelResult {
  const path = `models.${id}`
  if (!isObject(given))
    return { catalogue, problems: [expectedProblem(path, 'an object with the fields of a model', given)] }
  const { prices } = given
  const fields = isObject(prices) ? { ...given, prices: renamePriceClasses(prices) } : given
  const shapes = findFieldProblems(MODEL_FIELDS, fields, path)
  if (shapes.length > 0) return { catalogue, problems: shapes }
  const base = findBaseModel(catalogue, id, fields.like)
  const model = applyFields(base ?? UNKNOWN_MODEL, fields, { id, file })
  const problems = [
    ...(base === null
      ? [expectedProblem(`${path}.like`, 'the name of a model in the catalogue', fields.like)]
      : []),
    ...checkPriceTiers(base, fields, path),
    ...checkAliases(catalogue, model, path),
  ]
  return { catalogue: problems.length === 0 ? replaceModel(catalogue, model) : catalogue, problems }
}

/** Names of price classes in files that were written for earlier versions. */
const FORMER_NAMES: Readonly<Record<string, string>> = { write5m: 'writeShort', write1h: 'writeLong' }

/** Returns prices with the former names of price classes replaced by the present ones, also inside price tiers. */
export function renamePriceClasses<Prices extends object>(prices: Prices): Prices {
  const { tiers } = prices as InputFields
  const entries = Object.entries(prices).map(([name, value]) => [FORMER_NAMES[name] ?? name, value])
  const renamed = Object.fromEntries(entries)
  if (!Array.isArray(tiers)) return renamed
  return { ...renamed, tiers: tiers.map((tier) => (isObject(tier) ? renamePriceClasses(tier) : tier)) }
}

function findBaseModel(catalogue: Catalogue, id: string, like: unknown): ModelEntry | null {
  if (typeof like !== 'string') return catalogue.byName.get(id) ?? findModel(catalogue, id) ?? UNKNOWN_MODEL
  return findModel(catalogue, like)
}

function findModel(catalogue: Catalogue, id: string): ModelEntry | null {
  const looked = lookUpModel(catalogue, id)
  return looked.found ? looked.model : null
}

/**
 * Reports a problem if the user gives new prices but no new price tiers. The old tiers would not match the new prices.
 */
function checkPriceTiers(
  base: ModelEntry | null,
  { prices }: InputFields,
  path: string,
): readonly ModelProblem[] {
  const steps = (base?.prices.tiers ?? []).map(({ above }) => above)
  if (steps.length === 0 || !isObject(prices) || prices.tiers !== undefined) return []
  if (!PRICE_CLASSES.some((kind) => prices[kind] !== undefined)) return []
  const message = `has other prices over ${steps.join(' and ')} tokens: give prices.tiers too, [] for none`
  return [{ path: `${path}.prices`, message }]
}

function checkAliases(
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

function replaceModel({ models }: Catalogue, model: ModelEntry): Catalogue {
  const isThere = models.some(({ id }) => id === model.id)
  return createCatalogue(
    isThere ? models.map((old) => (old.id === model.id ? model : old)) : [...models, model],
  )
}

function applyFields(
  base: ModelEntry,
  fields: InputFields,
  { id, file }: { readonly id: string; readonly file: InputFields },
): ModelEntry {
  const { like, source = file.source ?? 'given by the user', asOf = file.asOf, ...facts } = fields
  const isNew = base.id !== id && !base.aliases.includes(id)
  const names = isNew ? { id, aliases: [] } : { id: base.id }
  const prompt = fields.window === undefined ? {} : { maxInput: fields.window }
  const provenance = {
    source: base === UNKNOWN_MODEL ? source : `${source}, over: ${base.source}`,
    asOf: asOf ?? base.asOf,
  }
  const doubts = base.doubts.filter(({ field }) => !hasField(facts, field.split('.')))
  const { pastPrices, ...lasting } = base
  // The user's prices apply to every day. The catalogue's past prices are dropped, because they have another scale.
  const start = fields.prices === undefined ? base : lasting
  // The cast is safe, because every field was checked against `MODEL_FIELDS`.
  return {
    ...mergeFields(start, { ...names, ...prompt, ...facts, ...provenance }),
    doubts,
  } as unknown as ModelEntry
}

/**
 * Merges the user's fields into a catalogue entry. Nested objects are merged field by field; other values, and
 * `factors` and `fees`, are replaced.
 */
function mergeFields(base: object, over: InputFields): InputFields {
  const result: Record<string, unknown> = { ...base }
  for (const [key, value] of Object.entries(over)) {
    const old = result[key]
    const isGroup = isObject(old) && isObject(value) && key !== 'factors' && key !== 'fees'
    result[key] = isGroup ? mergeFields(old, value) : value
  }
  return result
}

function hasField(facts: unknown, [key, ...rest]: readonly string[]): boolean {
  if (key === undefined) return facts !== undefined
  return isObject(facts) && Object.hasOwn(facts, key) && hasField(facts[key], rest)
}

/**
 * A catalogue entry in which everything is unknown. Base of a user's model that resembles no model in the catalogue.
 */
export const UNKNOWN_MODEL: ModelEntry = {
  id: 'unknown',
  vendor: 'unknown',
  aliases: [],
  window: null,
  maxInput: null,
  maxOutput: null,
  prices: { input: null, cacheRead: null, writeShort: null, writeLong: null, output: null },
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
  /** Path of the field in the input, such as `models.my-model.window`. */
  readonly path: string
  readonly message: string
}

/** Returns all problems of a custom model's fields, in the order in which the fields are given. */
function findFieldProblems(group: FieldGroup, given: InputFields, path: string): readonly ModelProblem[] {
  return Object.entries(given).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`
    const node = Object.hasOwn(group, key) ? group[key] : undefined
    if (node === undefined)
      return [{ path: at, message: `no such field; the fields are ${Object.keys(group).join(', ')}` }]
    if (isFieldCheck(node)) return node.accepts(value) ? [] : [expectedProblem(at, node.expects, value)]
    return isObject(value)
      ? findFieldProblems(node, value, at)
      : [expectedProblem(at, `an object with any of ${Object.keys(node).join(', ')}`, value)]
  })
}

function expectedProblem(path: string, expects: string, given: unknown): ModelProblem {
  const shown = given === undefined ? 'nothing' : JSON.stringify(given)
  return { path, message: `expected ${expects}; got ${shown.length > 80 ? `${shown.slice(0, 80)}…` : shown}` }
}

// Which fields a custom model may have, and which values each field accepts.

interface FieldCheck {
  /** Description of a valid value, which completes the sentence "expected …". */
  readonly expects: string
  accepts(value: unknown): boolean
}

interface FieldGroup {
  readonly [field: string]: FieldCheck | FieldGroup
}

function isFieldCheck(node: FieldCheck | FieldGroup): node is FieldCheck {
  return typeof node.accepts === 'function'
}

const wholeNumber = (least: number): FieldCheck => ({
  expects: `a whole number of ${least} or more`,
  accepts: (value) => Number.isSafeInteger(value) && Number(value) >= least,
})
const priceRate: FieldCheck = {
  expects: 'dollars per million tokens, 0 or more',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value >= 0,
}
const positiveNumber: FieldCheck = {
  expects: 'a number above 0',
  accepts: (value) => typeof value === 'number' && Number.isFinite(value) && value > 0,
}
const flag: FieldCheck = { expects: 'true or false', accepts: (value) => typeof value === 'boolean' }
const nonBlank: FieldCheck = {
  expects: 'a string that is not blank',
  accepts: (value) => typeof value === 'string' && value.trim() !== '',
}
const isoDay: FieldCheck = {
  expects: 'a day as YYYY-MM-DD',
  accepts: (value) => typeof value === 'string' && /^\d{4}-\d\d-\d\d$/.test(value),
}
const oneChoice = (...choices: readonly string[]): FieldCheck => ({
  expects: choices.map((choice) => `"${choice}"`).join(' or '),
  accepts: (value) => choices.some((choice) => choice === value),
})
const listWith = (item: FieldCheck): FieldCheck => ({
  expects: `a list, each item ${item.expects}`,
  accepts: (value) => Array.isArray(value) && value.every((part) => item.accepts(part)),
})
const tableWith = (item: FieldCheck): FieldCheck => ({
  expects: `an object, each value ${item.expects}`,
  accepts: (value) => isObject(value) && Object.values(value).every((part) => item.accepts(part)),
})
const eitherCheck = (one: FieldCheck, other: FieldCheck): FieldCheck => ({
  expects: `${one.expects}, or ${other.expects}`,
  accepts: (value) => one.accepts(value) || other.accepts(value),
})
const isNull: FieldCheck = { expects: 'null if it is not known', accepts: (value) => value === null }
const orNull = (check: FieldCheck): FieldCheck => eitherCheck(check, isNull)

/** Returns a check that accepts an object with exactly these fields. */
const exactObject = (fields: Readonly<Record<string, FieldCheck>>): FieldCheck => ({
  expects: `an object with ${Object.keys(fields).join(', ')}`,
  accepts: (value) =>
    isObject(value) &&
    Object.keys(value).every((key) => Object.hasOwn(fields, key)) &&
    Object.entries(fields).every(([key, check]) => check.accepts(value[key])),
})

const rateFields = Object.fromEntries(PRICE_CLASSES.map((kind) => [kind, orNull(priceRate)]))
const flagFields = (...names: readonly string[]): FieldGroup =>
  Object.fromEntries(names.map((name) => [name, orNull(flag)]))

const MODEL_FIELDS: FieldGroup = {
  like: nonBlank,
  vendor: nonBlank,
  aliases: listWith(nonBlank),
  window: orNull(wholeNumber(1)),
  maxInput: orNull(wholeNumber(1)),
  maxOutput: orNull(wholeNumber(1)),
  longWindow: wholeNumber(1),
  prices: {
    ...rateFields,
    tiers: listWith(exactObject({ above: wholeNumber(1), ...rateFields })),
    factors: tableWith(tableWith(orNull(positiveNumber))),
    fees: tableWith(orNull(priceRate)),
  },
  regionalFactor: positiveNumber,
  cache: {
    minimum: orNull(wholeNumber(0)),
    markers: orNull(wholeNumber(0)),
    lookBack: orNull(eitherCheck(wholeNumber(1), oneChoice('unlimited'))),
    ttls: orNull(listWith(exactObject({ name: nonBlank, seconds: wholeNumber(1) }))),
  },
  thinking: {
    modes: orNull(listWith(oneChoice('adaptive', 'enabled', 'between_tools', 'disabled'))),
    leastUpTo: nonBlank,
    efforts: orNull(listWith(nonBlank)),
    binding: orNull(oneChoice('none', 'model', 'prefix')),
    ...flagFields('isOnByDefault', 'keepsPrior', 'isAccountBound'),
  },
  capabilities: flagFields(
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
  limits: { bodyBytes: orNull(wholeNumber(1)), images: orNull(wholeNumber(0)) },
  tokenizer: orNull(oneChoice('claude-to-4.6', 'claude-from-4.7', 'openai', 'gemini')),
  source: nonBlank,
  asOf: isoDay,
}

const FILE_FIELDS: FieldGroup = { source: nonBlank, asOf: isoDay }
