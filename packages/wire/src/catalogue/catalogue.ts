/**
 * The built-in model catalogue, and the lookup of a model by the name that a log, a config file or a provider uses.
 * Unknown names are never matched to a similar model: `claude-opus-5-6` is not `claude-opus-5`.
 */
import type { ModelPrices } from '@tidemark/core/cost/prices'
import { ANTHROPIC_MODELS } from './anthropic-models.ts'
import { ANTHROPIC_OLDER_MODELS } from './anthropic-older-models.ts'
import { GOOGLE_MODELS } from './google-models.ts'
import { type ModelEntry, scaleModelPrices } from './model-entry.ts'
import { OPENAI_MODELS } from './openai-models.ts'

export interface Catalogue {
  readonly models: readonly ModelEntry[]
  /** Catalogue entries by model id and by alias. */
  readonly byName: ReadonlyMap<string, ModelEntry>
}

/** Creates a catalogue. If two models have the same id or alias, the name refers to the later model in the list. */
export function createCatalogue(models: readonly ModelEntry[]): Catalogue {
  const names = models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model] as const))
  return { models, byName: new Map(names) }
}

/** The built-in model catalogue. A user's own models and prices can be added with `withModels`. */
export const modelCatalogue: Catalogue = createCatalogue([
  ...ANTHROPIC_MODELS,
  ...ANTHROPIC_OLDER_MODELS,
  ...OPENAI_MODELS,
  ...GOOGLE_MODELS,
])

type ModelLookup = FoundModel | UnknownModel

export interface FoundModel {
  readonly found: true
  /**
   * The catalogue entry of the model. If the name has a `[1m]` suffix or a region, the window or the prices are
   * adjusted.
   */
  readonly model: ModelEntry
  readonly nameParts: ModelNameParts
  /** Notes for the user: how the model name changed the window or prices, or why these are uncertain. */
  readonly notes: readonly string[]
}

interface UnknownModel {
  readonly found: false
  readonly asked: string
  /** All spellings of the model name that were looked up. */
  readonly tried: readonly string[]
  readonly reason: string
}

const FAMILY_NAME = /^(?:fable|mythos|opus|sonnet|haiku|opusplan|default)$/

/** Looks up a model by any of its names: with a date, platform, region, gateway or `[1m]`. Never guesses a similar model. */
export function lookUpModel(catalogue: Catalogue, id: string): ModelLookup {
  const candidates = modelNameCandidates(id)
  for (const candidate of candidates) {
    const model = catalogue.byName.get(candidate.name)
    if (model !== undefined) return applyNameParts(model, candidate)
  }
  const tried = candidates.map(({ name }) => name)
  const reason = FAMILY_NAME.test(tried.at(-1) ?? '')
    ? `"${id}" is a family of models, and which model it means changes over time: give the model's id`
    : `no model in the catalogue is called "${id}": give its figures with withModels`
  return { found: false, asked: id, tried, reason }
}

function applyNameParts(model: ModelEntry, { parts }: NameCandidate): FoundModel {
  const windowed = withRequestedWindow(model, parts)
  const priced = withRegionalPrices(windowed.model, parts)
  return {
    found: true,
    model: priced.model,
    nameParts: parts,
    notes: [...windowed.notes, ...priced.notes],
  }
}

interface AdjustedModel {
  readonly model: ModelEntry
  readonly notes: readonly string[]
}

function withRequestedWindow(
  model: ModelEntry,
  { wantsLongWindow, platform }: ModelNameParts,
): AdjustedModel {
  const { longWindow, window } = model
  if (wantsLongWindow && longWindow !== undefined) {
    return {
      model: { ...model, window: longWindow, maxInput: longWindow },
      notes: [`[1m]: a window of ${longWindow}`],
    }
  }
  const isShort = wantsLongWindow && window !== null && window < 1_000_000
  if (isShort) return { model, notes: [`[1m]: no window larger than ${window} is known of ${model.id}`] }
  const isCloud = platform !== null && window !== null && window >= 1_000_000
  return { model, notes: isCloud ? ['cloud platforms may run this model with a window of 200000'] : [] }
}

function withRegionalPrices(model: ModelEntry, { platform, region }: ModelNameParts): AdjustedModel {
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
  return { model: scaleModelPrices(model, regionalFactor), notes: [note] }
}

/** What a model name contains besides the model: a date, a cloud platform, a region or a `[1m]` suffix. */
interface ModelNameParts {
  readonly platform: 'bedrock' | 'vertex' | null
  /** Region of the endpoint as the platform names it; `global` for an endpoint without a fixed region, null if unknown. */
  readonly region: string | null
  readonly snapshot: string | null
  /** True if the model name has the suffix `[1m]`, which requests the larger context window. */
  readonly wantsLongWindow: boolean
}

interface NameCandidate {
  readonly name: string
  readonly parts: ModelNameParts
}

const NO_NAME_PARTS: ModelNameParts = { platform: null, region: null, snapshot: null, wantsLongWindow: false }

interface NameLayer {
  readonly pattern: RegExp
  /** Replacement string for `pattern`. The result is the model name without this prefix or suffix. */
  readonly rest: string
  readonly read?: (match: RegExpExecArray) => Partial<ModelNameParts>
}

const VENDOR_PREFIXES = 'anthropic|openai|google|azure|bedrock|amazon-bedrock|vertex|google-vertex'
const readBedrock = () => ({ platform: 'bedrock' }) as const

const NAME_LAYERS: readonly NameLayer[] = [
  { pattern: /^(.+)\[1m\]$/, rest: '$1', read: () => ({ wantsLongWindow: true }) },
  { pattern: /^(.*\/)([^/]+)$/, rest: '$2', read: ([, path]) => readPath(path ?? '') },
  { pattern: new RegExp(`^(?:${VENDOR_PREFIXES}):(.+)$`), rest: '$1' },
  { pattern: /^(.+):(?:thinking|beta)$/, rest: '$1' },
  {
    pattern: /^([a-z]{2,6}(?:-gov)?)\.(anthropic\..+)$/,
    rest: '$2',
    read: ([, region]) => ({ platform: 'bedrock', region: region ?? null }),
  },
  { pattern: /^anthropic\.(.+)$/, rest: '$1', read: readBedrock },
  { pattern: /^(claude-.+)-v\d(?::\d+(?::\d+k)?)?$/, rest: '$1', read: readBedrock },
  {
    pattern: /^(.+)@(\d{8}|latest|default)$/,
    rest: '$1',
    read: ([, , snapshot]) => ({ platform: 'vertex', ...readSnapshot(snapshot) }),
  },
  { pattern: /^(.+)-thinking$/, rest: '$1' },
  { pattern: /^(.+)-(\d{8}|\d{4}-\d\d-\d\d)$/, rest: '$1', read: ([, , snapshot]) => readSnapshot(snapshot) },
  { pattern: /^(.+)-latest$/, rest: '$1' },
  { pattern: /^(claude-[^.]*\d)\.(\d+)(.*)$/, rest: '$1-$2$3' },
  { pattern: /^claude-([a-z]+)-3-(\d)$/, rest: 'claude-3-$2-$1' },
  { pattern: /^claude-([a-z]+)-3$/, rest: 'claude-3-$1' },
  { pattern: /^claude-([4-9])-(\d{1,2})-([a-z]+)$/, rest: 'claude-$3-$1-$2' },
  { pattern: /^claude-([4-9])-([a-z]+)$/, rest: 'claude-$2-$1' },
]

/**
 * Returns the spellings of a model name to look up: the name as given, then with one prefix or suffix after another
 * removed.
 */
function modelNameCandidates(id: string): readonly NameCandidate[] {
  const found: NameCandidate[] = [{ name: id, parts: NO_NAME_PARTS }]
  let last: NameCandidate = { name: id.trim().toLowerCase(), parts: NO_NAME_PARTS }
  if (last.name !== id) found.push(last)
  for (const peel of NAME_LAYERS) {
    const { pattern, rest, read } = peel
    const match = pattern.exec(last.name)
    if (match === null) continue
    last = { name: last.name.replace(pattern, rest), parts: { ...last.parts, ...read?.(match) } }
    found.push(last)
  }
  return found
}

function readSnapshot(snapshot: string | undefined): Partial<ModelNameParts> {
  return snapshot !== undefined && /^\d/.test(snapshot) ? { snapshot } : {}
}

/**
 * Reads the platform and region from the path before a model name, such as
 * `projects/p/locations/us-east5/publishers/anthropic/models/`, a Bedrock ARN, or a gateway's `anthropic/`.
 */
function readPath(path: string): Partial<ModelNameParts> {
  if (path.includes('bedrock')) return { platform: 'bedrock' }
  const place = /locations\/([^/]+)\//.exec(path)
  if (place !== null) return { platform: 'vertex', region: place[1] ?? null }
  return /vertex|publishers\//.test(path) ? { platform: 'vertex' } : {}
}

/** Returns the prices that were valid on a day, given as YYYY-MM-DD or as an ISO timestamp. */
export function pricesAtDate(model: ModelEntry, day: string): ModelPrices {
  return model.pastPrices?.find(({ before }) => day < before)?.prices ?? model.prices
}

/** Creates a function that finds the prices of a model at a time; null for an unknown model. Lookups are cached by name. */
export function createPriceFinder(catalogue: Catalogue): (model: string, at: string) => ModelPrices | null {
  const models = new Map<string, ReturnType<typeof lookUpModel>>()
  return (name, when) => {
    const found = models.get(name) ?? lookUpModel(catalogue, name)
    models.set(name, found)
    return found.found ? pricesAtDate(found.model, when) : null
  }
}
