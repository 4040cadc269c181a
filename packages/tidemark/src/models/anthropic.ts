/** Creates the description of a Messages API model, from the model catalogue or from figures that the caller gives. */
import type { FindModelPrices } from '@tidemark/core/cost/session-cost'
import type { JsonObject } from '@tidemark/core/log/json'
import { omitUndefined } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import type { Credentials } from '@tidemark/wire/anthropic/headers'
import { type Catalogue, lookUpModel, modelCatalogue } from '@tidemark/wire/catalogue/catalogue'
import { withModels } from '@tidemark/wire/catalogue/custom-models'
import { estimatorWeights } from '@tidemark/wire/catalogue/estimator-weights'
import { type ModelEntry, pricesAtDate } from '@tidemark/wire/catalogue/model-entry'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import { createAnthropicModel } from './anthropic-http.ts'
import { fetchAsClient } from './client-connection.ts'
import { createKeyRedactor } from './hidden-key.ts'
import type { ModelChoice } from './model-choice.ts'

export interface AnthropicOptions {
  /** API key. Default: the environment variable `ANTHROPIC_API_KEY`. */
  readonly apiKey?: string
  /** Bearer token, used instead of an API key. Default: the environment variable `ANTHROPIC_AUTH_TOKEN`. */
  readonly authToken?: string
  /** Base URL of the API, without `/v1`. Default: `ANTHROPIC_BASE_URL`, else `https://api.anthropic.com`. */
  readonly baseUrl?: string
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
  /**
   * True if the provider shares cache entries between organisations: the static part of the system prompt then asks for
   * it with `scope: "global"`. Refused by a provider that does not. Default: false.
   */
  readonly globalCache?: boolean
  /** Fields added to every API request, such as `max_tokens`, `thinking` or `temperature`. */
  readonly parameters?: JsonObject
}

export interface PriceOverrides {
  readonly input?: number
  readonly cacheRead?: number
  readonly write5m?: number
  readonly write1h?: number
  readonly output?: number
}

/**
 * Returns a model of the Messages API by its id, in any spelling that the catalogue recognizes. Throws `bad-option` if
 * there is no API key or if the model's context window is unknown.
 *
 * @example createTidemark({ model: anthropic('claude-sonnet-5-5') })
 */
export function anthropic(id: string, options: AnthropicOptions = {}): ModelChoice {
  if (typeof id !== 'string' || id.trim() === '')
    throw badOptionError(
      'model',
      'anthropic(id): expected the id of a model, as in anthropic("claude-sonnet-5-5").',
    )
  checkOptionNames(`anthropic("${id}")`, options, OPTION_NAMES)
  const catalogue = extendCatalogue(id, options)
  const { entry, notes, platform } = findEntry(catalogue, id, options)
  const credentials = findCredentials(id, options)
  const baseUrl = findBaseUrl(id, options)
  if (options.fetch === undefined) checkVendor(id, entry, baseUrl)
  // Under a client, a model without an address of its own has that of the client.
  const fetch = options.fetch ?? (options.baseUrl === undefined ? fetchAsClient : undefined)
  const connection = omitUndefined({ baseUrl, fetch })
  const sameTokenizer = new Map<string, boolean>()
  return {
    id,
    profile: createProfile(entry, options),
    window: entry.window,
    maxOutput: entry.maxOutput,
    priceList: priceList(catalogue),
    weights: (policy) => estimatorWeights(entry.tokenizer ?? 'claude-from-4.7', policy),
    hasTokenizerOf: (model) => {
      // Asked for every response of a session; most name the same model.
      const known = sameTokenizer.get(model)
      if (known !== undefined) return known
      const other = lookUpModel(catalogue, model)
      const isSame = !other.found || other.model.tokenizer === entry.tokenizer
      sameTokenizer.set(model, isSame)
      return isSame
    },
    connect: (settings) => createAnthropicModel({ credentials, ...settings, ...connection }),
    hideKey: createKeyRedactor(credentials.secret),
    parameters: options.parameters ?? {},
    isBedrock: platform === 'bedrock' || isBedrockHost(baseUrl),
    sibling: (other) => anthropic(other, omitUndefined(findConnection(options))),
    notes,
  }
}

/** Returns the options that say how to reach the provider, and none of those that describe one model. */
function findConnection({ apiKey, authToken, baseUrl, fetch, globalCache }: AnthropicOptions) {
  return { apiKey, authToken, baseUrl, fetch, globalCache }
}

function createProfile(entry: ModelEntry, { globalCache }: AnthropicOptions): ProviderProfile {
  const profile = createProviderProfile(entry)
  return globalCache === true ? { ...profile, cache: { ...profile.cache, scopes: ['global'] } } : profile
}

function isBedrockHost(baseUrl: string | undefined): boolean {
  return baseUrl !== undefined && /(^|\.)bedrock[-.a-z0-9]*\.amazonaws\.com$/.test(new URL(baseUrl).hostname)
}

const OPTION_NAMES: readonly (keyof AnthropicOptions)[] = [
  'apiKey',
  'authToken',
  'baseUrl',
  'fetch',
  'window',
  'maxOutput',
  'prices',
  'like',
  'globalCache',
  'parameters',
]

/** Returns the model catalogue with the caller's own window, output limit and prices for this model. */
function extendCatalogue(id: string, { window, maxOutput, prices, like }: AnthropicOptions): Catalogue {
  const fields = omitUndefined({ window, maxOutput, prices, like })
  if (Object.keys(fields).length === 0) return modelCatalogue
  const isNew = like === undefined && !lookUpModel(modelCatalogue, id).found
  const extended = withModels(modelCatalogue, {
    models: { [id]: isNew ? { vendor: 'anthropic', ...fields } : fields },
  })
  if (extended.ok) return extended.catalogue
  const [first] = extended.problems
  const path = first?.path.replace(`models.${id}.`, '') ?? 'model'
  throw badOptionError(path, `anthropic("${id}"): ${path}: ${first?.message}.`)
}

function findEntry(
  catalogue: Catalogue,
  id: string,
  { window, like }: AnthropicOptions,
): { readonly entry: ModelEntry; readonly notes: readonly string[]; readonly platform: string | null } {
  const found = lookUpModel(catalogue, id)
  if (!found.found)
    throw badOptionError(
      'model',
      `anthropic("${id}"): the catalogue has no such model. Give its figures, as in anthropic("${id}", { window: 200_000, maxOutput: 64_000 }), or name a similar model with like.`,
    )
  const { model, notes, nameParts } = found
  if (window !== undefined || like !== undefined || model.window !== null)
    return { entry: model, notes, platform: nameParts.platform }
  throw badOptionError(
    'window',
    `anthropic("${id}"): the context window of this model is not known. Give it, as in anthropic("${id}", { window: 200_000 }).`,
  )
}

function priceList(catalogue: Catalogue): FindModelPrices {
  return (model, at) => {
    const found = lookUpModel(catalogue, model)
    return found.found ? pricesAtDate(found.model, at) : null
  }
}

/**
 * Returns the credentials from the `apiKey` or `authToken` option, else from the environment. Throws `bad-option` if
 * there are none.
 */
function findCredentials(id: string, { apiKey, authToken }: AnthropicOptions): Credentials {
  if (apiKey !== undefined && apiKey !== '') return { style: 'key', secret: apiKey }
  const token = authToken ?? (apiKey === undefined ? environmentVariable('ANTHROPIC_AUTH_TOKEN') : undefined)
  const key = authToken === undefined ? environmentVariable('ANTHROPIC_API_KEY') : undefined
  if (key !== undefined) return { style: 'key', secret: key }
  if (token !== undefined && token !== '') return { style: 'bearer', secret: token }
  throw badOptionError(
    'apiKey',
    `anthropic("${id}"): no API key. Set ANTHROPIC_API_KEY, or give apiKey or authToken; for the simulator any text will do.`,
  )
}

function findBaseUrl(id: string, { baseUrl }: AnthropicOptions): string | undefined {
  const url = baseUrl ?? environmentVariable('ANTHROPIC_BASE_URL')
  if (url === undefined) return undefined
  if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url.replace(/\/+$/, '')
  const name = baseUrl === undefined ? 'ANTHROPIC_BASE_URL' : 'baseUrl'
  throw badOptionError(
    'baseUrl',
    `anthropic("${id}"): ${name} is ${formatErrorValue(url)}; expected an address such as https://api.anthropic.com.`,
  )
}

const OWN_ADDRESS = 'https://api.anthropic.com'

/** Throws `bad-option` for a model of another vendor at the provider's own address, which has none. */
function checkVendor(id: string, { vendor }: ModelEntry, baseUrl: string = OWN_ADDRESS): void {
  if (vendor === 'anthropic' || vendor === 'unknown' || new URL(baseUrl).origin !== OWN_ADDRESS) return
  throw badOptionError(
    'model',
    `anthropic("${id}"): a model of ${vendor}, which ${OWN_ADDRESS} does not have. Name a Claude model, or give the baseUrl of a server that offers this one through the Messages API.`,
  )
}

function environmentVariable(name: string): string | undefined {
  const value = process.env[name]
  return value === undefined || value === '' ? undefined : value
}
