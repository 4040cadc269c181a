/** Creates descriptions of models that speak OpenAI's APIs: OpenAI's own, and those of servers that speak like it. */
import { createHash } from 'node:crypto'
import { type JsonObject, omitUndefined } from '@tidemark/core/log/json'
import { createChatCodec } from '@tidemark/wire/openai/chat-codec'
import { DIALECT_NAMES, DIALECTS, type DialectName } from '@tidemark/wire/openai/dialects'
import { createResponsesCodec } from '@tidemark/wire/openai/responses-codec'
import { createChatProfile, createResponsesProfile } from '@tidemark/wire/profiles/provider-profile'
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

export interface OpenaiOptions extends ModelOptions {
  /** API key. Default: the environment variable `OPENAI_API_KEY`. */
  readonly apiKey?: string
  /** Base URL of the API, with `/v1`. Default: `OPENAI_BASE_URL`, else `https://api.openai.com/v1`. */
  readonly baseUrl?: string
  /** The API to call. Default: `responses`. Chat Completions does not return the model's reasoning. */
  readonly api?: 'responses' | 'chat'
  /** Fields added to every API request, such as `reasoning` or `service_tier`. */
  readonly parameters?: JsonObject
}

export interface CompatibleOptions extends ModelOptions, Pick<OpenaiOptions, 'parameters'> {
  /** Base URL of the server, with `/v1` if it has that: `http://localhost:11434/v1`. */
  readonly baseUrl: string
  /** API key. Default: none, because local servers need none. */
  readonly apiKey?: string
  /** Context window in tokens, as the server is set up. */
  readonly window: number
  /** The server's way of speaking Chat Completions. Default: `vllm`, which most others follow. */
  readonly dialect?: DialectName
}

const OPENAI_ADDRESS = 'https://api.openai.com/v1'

/** The provider stores nothing, because the log has the conversation. Reasoning is returned encrypted, to be sent again. */
const RESPONSES_PARAMETERS: JsonObject = { store: false, include: ['reasoning.encrypted_content'] }

/**
 * Returns a model of OpenAI by its id. Throws `bad-option` if there is no API key or if the model's context window is unknown.
 *
 * @example createTidemark({ model: openai('gpt-6-sol') })
 */
export function openai(id: string, options: OpenaiOptions = {}): ModelChoice {
  return createOpenaiModel(id, options, false)
}

/**
 * Returns a model of OpenAI that a client names. The client's requests have the real key, and decide whether the
 * provider stores responses.
 */
export function createClientNamedOpenaiModel(id: string, options: OpenaiOptions): ModelChoice {
  return createOpenaiModel(id, options, true)
}

function createOpenaiModel(id: string, options: OpenaiOptions, isClient: boolean): ModelChoice {
  checkModelId('openai', id)
  const call = `openai("${id}")`
  checkOptionNames(call, options, OPENAI_OPTIONS)
  if (options.api !== undefined && options.api !== 'responses' && options.api !== 'chat')
    throw badOptionError(
      'api',
      `${call}: api is ${JSON.stringify(options.api)}; expected "responses" or "chat".`,
    )
  const { catalogue, entry, notes } = findModel('openai', id, options)
  const secret = options.apiKey ?? readEnvironmentVariable('OPENAI_API_KEY')
  if (secret === undefined || secret === '')
    throw badOptionError(
      'apiKey',
      `${call}: no API key. Set OPENAI_API_KEY, or give apiKey; for the simulator any text will do.`,
    )
  const baseUrl = findBaseUrl(call, options.baseUrl, 'OPENAI_BASE_URL', OPENAI_ADDRESS)
  if (options.fetch === undefined && !isClient)
    checkVendor(call, entry, { vendor: 'openai', address: OPENAI_ADDRESS }, baseUrl)
  const isChat = options.api === 'chat'
  const account = isClient ? null : nameAccount(secret)
  const codec = isChat ? createChatCodec(DIALECTS.openai) : createResponsesCodec(account ?? undefined)
  const fetch = options.fetch ?? (options.baseUrl === undefined ? fetchAsClient : undefined)
  const connection = omitUndefined({ baseUrl, fetch })
  return {
    ...toModelFacts(id, catalogue, entry, 'openai'),
    profile: isChat ? createChatProfile(entry, DIALECTS.openai) : createResponsesProfile(entry, account),
    codec,
    connect: ({ session, ...settings }) =>
      createHttpModel({
        codec,
        credentials: { style: 'bearer', secret },
        ...settings,
        ...connection,
        fields: session === undefined ? {} : { prompt_cache_key: session },
      }),
    hideKey: createKeyRedactor(secret),
    parameters: { ...(isChat || isClient ? {} : RESPONSES_PARAMETERS), ...options.parameters },
    sibling: (other) => {
      const { apiKey, baseUrl: address, fetch: own, api } = options
      return createOpenaiModel(other, omitUndefined({ apiKey, baseUrl: address, fetch: own, api }), isClient)
    },
    notes,
  }
}

/**
 * Returns a model of a server that speaks Chat Completions: OpenRouter, DeepSeek, Kimi, vLLM, Ollama, llama.cpp. Prices
 * are not known unless they are given.
 *
 * @example compatible('qwen3-coder', { baseUrl: 'http://localhost:11434/v1', window: 32_768, dialect: 'ollama' })
 */
export function compatible(id: string, options: CompatibleOptions): ModelChoice {
  checkModelId('compatible', id)
  const call = `compatible("${id}")`
  checkOptionNames(call, options, COMPATIBLE_OPTIONS)
  const { window, dialect: name = 'vllm', apiKey = '', fetch } = options
  if (typeof window !== 'number')
    throw badOptionError(
      'window',
      `${call}: expected the context window of the server, as in { window: 32_768 }.`,
    )
  if (!DIALECT_NAMES.includes(name))
    throw badOptionError(
      'dialect',
      `${call}: dialect is ${JSON.stringify(name)}; expected one of ${DIALECT_NAMES.join(', ')}.`,
    )
  const baseUrl = findBaseUrl(call, options.baseUrl, '', 'http://localhost:11434/v1')
  if (baseUrl === undefined)
    throw badOptionError(
      'baseUrl',
      `${call}: expected the address of the server, as in { baseUrl: "http://localhost:11434/v1" }.`,
    )
  const { catalogue, entry, notes } = findModel('compatible', id, options, name)
  const dialect = DIALECTS[name]
  const codec = createChatCodec(dialect)
  return {
    ...toModelFacts(id, catalogue, entry, 'openai'),
    profile: createChatProfile(entry, dialect),
    codec,
    connect: ({ session: _, ...settings }) =>
      createHttpModel({
        codec,
        credentials: { style: 'bearer', secret: apiKey === '' ? 'none' : apiKey },
        ...settings,
        baseUrl,
        ...omitUndefined({ fetch }),
      }),
    ...(apiKey === '' ? {} : { hideKey: createKeyRedactor(apiKey) }),
    parameters: options.parameters ?? {},
    sibling: (other) =>
      compatible(other, { baseUrl, window, dialect: name, ...omitUndefined({ apiKey, fetch }) }),
    notes,
  }
}

function checkModelId(maker: string, id: string): void {
  if (typeof id === 'string' && id.trim() !== '') return
  throw badOptionError('model', `${maker}(id): expected the id of a model, as in ${maker}("gpt-6-sol").`)
}

const OPENAI_OPTIONS: readonly (keyof OpenaiOptions)[] = [...MODEL_OPTION_NAMES, 'api']
const COMPATIBLE_OPTIONS: readonly (keyof CompatibleOptions)[] = [...MODEL_OPTION_NAMES, 'dialect']

/**
 * Names the account of a key in the log, because encrypted reasoning is accepted only from the same account. It is a
 * hash, from which the key cannot be found.
 */
function nameAccount(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 12)
}
