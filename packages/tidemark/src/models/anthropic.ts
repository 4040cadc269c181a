/** Creates the description of a Messages API model, from the model catalogue or from figures that the caller gives. */
import { type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import type { ProviderProfile } from '@tidemark/core/policy/provider-profile'
import { anthropicCodec } from '@tidemark/wire/anthropic/codec'
import type { ModelEntry } from '@tidemark/wire/catalogue/model-entry'
import { createProviderProfile } from '@tidemark/wire/profiles/provider-profile'
import type { Credentials } from '@tidemark/wire/providers/provider-codec'
import { badOptionError, checkOptionNames } from '../platform/argument-errors.ts'
import {
  checkVendor,
  findBaseUrl,
  findModel,
  MODEL_OPTION_NAMES,
  type ModelOptions,
  readEnvironmentVariable,
  toModelFacts,
} from './catalogue-model.ts'
import { fetchAsClient } from './client-connection.ts'
import { createHttpModel } from './http-model.ts'
import { createKeyRedactor } from './key-redaction.ts'
import type { ModelChoice } from './model-choice.ts'

export interface AnthropicOptions extends ModelOptions {
  /** API key. Default: the environment variable `ANTHROPIC_API_KEY`. */
  readonly apiKey?: string
  /** Bearer token, used instead of an API key. Default: the environment variable `ANTHROPIC_AUTH_TOKEN`. */
  readonly authToken?: string
  /** Base URL of the API, without `/v1`. Default: `ANTHROPIC_BASE_URL`, else `https://api.anthropic.com`. */
  readonly baseUrl?: string
  /**
   * True if the provider shares cache entries between organisations: the static part of the system prompt then asks for
   * it with `scope: "global"`. Refused by a provider that does not. Default: false.
   */
  readonly globalCache?: boolean
  /** Fields added to every API request, such as `max_tokens`, `thinking` or `temperature`. */
  readonly parameters?: JsonObject
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
  const { catalogue, entry, notes, platform } = findModel('anthropic', id, options)
  const credentials = findCredentials(id, options)
  const baseUrl = findBaseUrl(`anthropic("${id}")`, options.baseUrl, 'ANTHROPIC_BASE_URL', OWN_ADDRESS)
  if (options.fetch === undefined)
    checkVendor(`anthropic("${id}")`, entry, { vendor: 'anthropic', address: OWN_ADDRESS }, baseUrl)
  // While a client's request is being answered, a model without an address of its own is called at the client's address.
  const fetch = options.fetch ?? (options.baseUrl === undefined ? fetchAsClient : undefined)
  const connection = omitUndefined({ baseUrl, fetch })
  return {
    ...toModelFacts(id, catalogue, entry),
    profile: createProfile(entry, options),
    codec: anthropicCodec,
    connect: (settings) =>
      createHttpModel({ codec: anthropicCodec, credentials, ...settings, ...connection }),
    hideKey: createKeyRedactor(credentials.secret),
    parameters: options.parameters ?? {},
    isBedrock: platform === 'bedrock' || isBedrockHost(baseUrl),
    sibling: (other) => anthropic(other, omitUndefined(findConnection(options))),
    notes,
  }
}

/** Returns only the options that say how to reach the provider, for other models of the same provider. */
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

const OPTION_NAMES: readonly (keyof AnthropicOptions)[] = [...MODEL_OPTION_NAMES, 'authToken', 'globalCache']

/**
 * Returns the credentials from the `apiKey` or `authToken` option, else from the environment. Throws `bad-option` if
 * there are none.
 */
function findCredentials(id: string, { apiKey, authToken }: AnthropicOptions): Credentials {
  if (apiKey !== undefined && apiKey !== '') return { style: 'key', secret: apiKey }
  const token =
    authToken ?? (apiKey === undefined ? readEnvironmentVariable('ANTHROPIC_AUTH_TOKEN') : undefined)
  const key = authToken === undefined ? readEnvironmentVariable('ANTHROPIC_API_KEY') : undefined
  if (key !== undefined) return { style: 'key', secret: key }
  if (token !== undefined && token !== '') return { style: 'bearer', secret: token }
  throw badOptionError(
    'apiKey',
    `anthropic("${id}"): no API key. Set ANTHROPIC_API_KEY, or give apiKey or authToken; for the simulator any text will do.`,
  )
}

const OWN_ADDRESS = 'https://api.anthropic.com'
