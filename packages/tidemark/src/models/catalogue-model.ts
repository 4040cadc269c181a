/** What the functions that create models have in common: figures from the catalogue or the caller, address, environment. */
import { omitUndefined } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import {
  type Catalogue,
  createPriceFinder,
  lookUpModel,
  modelCatalogue,
} from '@tidemark/wire/catalogue/catalogue'
import { withModels } from '@tidemark/wire/catalogue/custom-models'
import { createEstimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import type { ModelEntry, TokenizerFamily } from '@tidemark/wire/catalogue/model-entry'
import { badOptionError } from '../platform/argument-errors.ts'
import type { ModelChoice } from './model-choice.ts'

/** Prices in dollars per million tokens that replace those of the catalogue. */
export interface PriceOverrides {
  readonly input?: number
  readonly cacheRead?: number
  /** Cache writes for the provider's default lifetime; `writeLong`: for its longest. */
  readonly writeShort?: number
  readonly writeLong?: number
  /** Former names of `writeShort` and `writeLong`, still accepted. */
  readonly write5m?: number
  readonly write1h?: number
  readonly output?: number
}

/** Options for any model: figures that replace those of the catalogue, and how its API is called. */
export interface ModelOptions {
  /** Replaces the global `fetch` for API requests, for example with `createSimulator().fetch`. */
  readonly fetch?: typeof globalThis.fetch
  /** Context window in tokens. Default: the window in the model catalogue. */
  readonly window?: number
  /** Output limit in tokens. Default: the limit in the model catalogue. */
  readonly maxOutput?: number
  /** Prices in dollars per million tokens. Default: the prices in the model catalogue. */
  readonly prices?: PriceOverrides
  /** Id of a catalogue model with the same behaviour, for a model that is not in the catalogue. */
  readonly like?: string
}

/** Names of the options that every model has. */
export const MODEL_OPTION_NAMES = [
  'apiKey',
  'baseUrl',
  'fetch',
  'window',
  'maxOutput',
  'prices',
  'like',
  'parameters',
] as const

interface FoundModel {
  readonly catalogue: Catalogue
  readonly entry: ModelEntry
  readonly notes: readonly string[]
  readonly platform: string | null
}

/**
 * Finds a model in the catalogue, with the caller's own figures in place of the catalogue's. `maker`: name of the
 * calling function, for messages. `vendor`: used if the catalogue does not have the model. Throws `bad-option` if the
 * model or its window is not known, or a figure is wrong.
 */
export function findModel(
  maker: string,
  id: string,
  figures: ModelOptions,
  vendor: string = maker,
): FoundModel {
  const call = `${maker}("${id}"`
  const catalogue = extendCatalogue(call, vendor, id, figures)
  const found = lookUpModel(catalogue, id)
  if (!found.found)
    throw badOptionError(
      'model',
      `${call}): the catalogue has no such model. Give its figures, as in ${call}, { window: 200_000, maxOutput: 64_000 }), or name a similar model with like.`,
    )
  const { model, notes, nameParts } = found
  if (figures.window !== undefined || figures.like !== undefined || model.window !== null)
    return { catalogue, entry: model, notes, platform: nameParts.platform }
  throw badOptionError(
    'window',
    `${call}): the context window of this model is not known. Give it, as in ${call}, { window: 200_000 }).`,
  )
}

function extendCatalogue(call: string, vendor: string, id: string, figures: ModelOptions): Catalogue {
  const { window, maxOutput, prices, like } = figures
  const fields = omitUndefined({ window, maxOutput, prices, like })
  if (Object.keys(fields).length === 0) return modelCatalogue
  const isNew = like === undefined && !lookUpModel(modelCatalogue, id).found
  const extended = withModels(modelCatalogue, {
    models: { [id]: isNew ? { vendor, ...fields } : fields },
  })
  if (extended.ok) return extended.catalogue
  const [first] = extended.problems
  const path = first?.path.replace(`models.${id}.`, '') ?? 'model'
  throw badOptionError(path, `${call}): ${path}: ${first?.message}.`)
}

/**
 * Returns the figures of a catalogue entry as fields of a `ModelChoice`. `tokenizer`: the family to assume if the entry
 * names none.
 */
export function toModelFacts(
  id: string,
  catalogue: Catalogue,
  entry: ModelEntry,
  tokenizer: TokenizerFamily = 'claude-from-4.7',
): Pick<ModelChoice, 'id' | 'window' | 'maxOutput' | 'priceList' | 'weights' | 'hasTokenizerOf'> {
  const sameTokenizer = new Map<string, boolean>()
  return {
    id,
    window: entry.window,
    maxOutput: entry.maxOutput,
    priceList: createPriceFinder(catalogue),
    weights: (policy) => createEstimatorWeights(entry.tokenizer ?? tokenizer, policy),
    hasTokenizerOf: (model) => {
      // Cached, because it is called for every response of a session, and most of them name the same model.
      const known = sameTokenizer.get(model)
      if (known !== undefined) return known
      const other = lookUpModel(catalogue, model)
      const isSame = !other.found || other.model.tokenizer === entry.tokenizer
      sameTokenizer.set(model, isSame)
      return isSame
    },
  }
}

/**
 * Returns the address from the option, else from the environment variable, without slashes at its end; undefined if
 * neither is set. `call`, `example`: for the message. Throws `bad-option` if it is invalid.
 */
export function findBaseUrl(
  call: string,
  option: string | undefined,
  variable: string,
  example: string,
): string | undefined {
  const url = option ?? readEnvironmentVariable(variable)
  if (url === undefined) return undefined
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '')
  const name = option === undefined ? variable : 'baseUrl'
  throw badOptionError(
    'baseUrl',
    `${call}: ${name} is ${formatErrorValue(url)}; expected an address such as ${example}.`,
  )
}

/** Throws `bad-option` for a model of another vendor at a vendor's own address, which does not serve it. */
export function checkVendor(
  call: string,
  { vendor }: ModelEntry,
  own: { readonly vendor: string; readonly address: string },
  baseUrl: string = own.address,
): void {
  const { origin } = new URL(own.address)
  if (vendor === own.vendor || vendor === 'unknown' || new URL(baseUrl).origin !== origin) return
  throw badOptionError(
    'model',
    `${call}: a model of ${vendor}, which ${origin} does not have. Name a model of ${own.vendor}, or give the baseUrl of a server that offers this one through the same API.`,
  )
}

/** Returns a variable of the environment; undefined if it is not set or empty. */
export function readEnvironmentVariable(name: string): string | undefined {
  const value = process.env[name]
  return value === undefined || value === '' ? undefined : value
}
