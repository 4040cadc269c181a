/** A model of the Messages API: looked up in the catalogue, or described by whoever names it. */
import type { JsonObject, PriceList } from '@tidemark/core'
import {
  type Catalogue,
  type Credentials,
  estimatorWeights,
  lookUpModel,
  type ModelEntry,
  modelCatalogue,
  pricesOn,
  profileFor,
  withModels,
} from '@tidemark/wire'
import { badOption as bad, checkNames, show } from '../platform/argument-errors.ts'
import { type AnthropicModelOptions, createAnthropicModel } from './anthropic-http.ts'
import type { ModelChoice, Retry } from './model-choice.ts'

export interface AnthropicOptions {
  /** `ANTHROPIC_API_KEY` unless given. */
  readonly apiKey?: string
  /** A bearer token in its place; `ANTHROPIC_AUTH_TOKEN` unless given. */
  readonly authToken?: string
  /** Without `/v1`; `ANTHROPIC_BASE_URL`, or the provider's own. */
  readonly baseUrl?: string
  /** What requests go through, as in `createSimulator().fetch`. */
  readonly fetch?: typeof globalThis.fetch
  /** Tokens; the catalogue's unless given. */
  readonly window?: number
  readonly maxOutput?: number
  /** Dollars per million tokens. */
  readonly prices?: GivenPrices
  /** A model of the catalogue that this one behaves like, where the catalogue does not have it. */
  readonly like?: string
  /** Fields of every request: `max_tokens`, `thinking`, `temperature` … */
  readonly parameters?: JsonObject
}

export interface GivenPrices {
  readonly input?: number
  readonly cacheRead?: number
  readonly write5m?: number
  readonly write1h?: number
  readonly output?: number
}

/**
 * A model of the Messages API by its id, any spelling that the catalogue knows.
 *
 * @example createTidemark({ model: anthropic('claude-sonnet-5-5') })
 */
export function anthropic(id: string, options: AnthropicOptions = {}): ModelChoice {
  if (typeof id !== 'string' || id.trim() === '')
    throw bad('model', 'anthropic(id): expected the id of a model, as in anthropic("claude-sonnet-5-5").')
  checkNames(`anthropic("${id}")`, options, NAMES)
  const catalogue = described(id, options)
  const { entry, notes } = entryOf(catalogue, id, options)
  const credentials = credentialsOf(id, options)
  const baseUrl = baseUrlOf(id, options)
  return {
    id,
    profile: profileFor(entry),
    window: entry.window,
    maxOutput: entry.maxOutput,
    pricesOf: pricesIn(catalogue),
    weights: (policy) => estimatorWeights(entry.tokenizer ?? 'claude-from-4.7', policy),
    connect: ({ clock, network, onRetry }) =>
      createAnthropicModel({
        credentials,
        clock,
        network,
        ...(baseUrl === undefined ? {} : { baseUrl }),
        ...(onRetry === undefined ? {} : { onRetry: retryTeller(onRetry) }),
        ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
      }),
    parameters: options.parameters ?? {},
    notes,
  }
}

const NAMES: readonly (keyof AnthropicOptions)[] = [
  'apiKey',
  'authToken',
  'baseUrl',
  'fetch',
  'window',
  'maxOutput',
  'prices',
  'like',
  'parameters',
]

/** The catalogue, with what the caller says of the model laid over it. */
function described(id: string, { window, maxOutput, prices, like }: AnthropicOptions): Catalogue {
  const fields = {
    ...(window === undefined ? {} : { window }),
    ...(maxOutput === undefined ? {} : { maxOutput }),
    ...(prices === undefined ? {} : { prices }),
    ...(like === undefined ? {} : { like }),
  }
  if (Object.keys(fields).length === 0) return modelCatalogue
  const isNew = like === undefined && !lookUpModel(modelCatalogue, id).found
  const laid = withModels(modelCatalogue, {
    models: { [id]: isNew ? { vendor: 'anthropic', ...fields } : fields },
  })
  if (laid.ok) return laid.catalogue
  const [first] = laid.problems
  const path = first?.path.replace(`models.${id}.`, '') ?? 'model'
  throw bad(path, `anthropic("${id}"): ${path}: ${first?.message}.`)
}

interface Found {
  readonly entry: ModelEntry
  readonly notes: readonly string[]
}

function entryOf(catalogue: Catalogue, id: string, { window, like }: AnthropicOptions): Found {
  const looked = lookUpModel(catalogue, id)
  if (!looked.found)
    throw bad(
      'model',
      `anthropic("${id}"): the catalogue has no such model. Give its figures, as in anthropic("${id}", { window: 200_000, maxOutput: 64_000 }), or a model it is like.`,
    )
  const { model, notes } = looked
  const isKnown = window !== undefined || like !== undefined || model.window !== null
  if (isKnown) return { entry: model, notes }
  throw bad(
    'window',
    `anthropic("${id}"): the window of this model is not known. Give it, as in anthropic("${id}", { window: 200_000 }).`,
  )
}

function pricesIn(catalogue: Catalogue): PriceList {
  return (model, at) => {
    const looked = lookUpModel(catalogue, model)
    return looked.found ? pricesOn(looked.model, at) : null
  }
}

function credentialsOf(id: string, { apiKey, authToken }: AnthropicOptions): Credentials {
  if (apiKey !== undefined && apiKey !== '') return { style: 'key', secret: apiKey }
  const token = authToken ?? (apiKey === undefined ? variable('ANTHROPIC_AUTH_TOKEN') : undefined)
  const key = authToken === undefined ? variable('ANTHROPIC_API_KEY') : undefined
  if (key !== undefined) return { style: 'key', secret: key }
  if (token !== undefined && token !== '') return { style: 'bearer', secret: token }
  throw bad(
    'apiKey',
    `anthropic("${id}"): no key. Set ANTHROPIC_API_KEY, or give apiKey or authToken; any text does for the simulator.`,
  )
}

function baseUrlOf(id: string, { baseUrl }: AnthropicOptions): string | undefined {
  const given = baseUrl ?? variable('ANTHROPIC_BASE_URL')
  if (given === undefined) return undefined
  const isUrl = URL.canParse(given) && /^https?:$/.test(new URL(given).protocol)
  if (isUrl) return given.replace(/\/+$/, '')
  const name = baseUrl === undefined ? 'ANTHROPIC_BASE_URL' : 'baseUrl'
  throw bad(
    'baseUrl',
    `anthropic("${id}"): ${name} is ${show(given)}; expected an address such as https://api.anthropic.com.`,
  )
}

function retryTeller(tell: (retry: Retry) => void): NonNullable<AnthropicModelOptions['onRetry']> {
  return ({ failure, attempt, delayMs }) => tell({ cause: failure, delayMs, attempt: attempt + 1 })
}

function variable(name: string): string | undefined {
  const value = process.env[name]
  return value === undefined || value === '' ? undefined : value
}
