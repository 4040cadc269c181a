/** Requests to the simulated OpenAI APIs without a client library, and the parts of them that tests share. */
import type { Simulator } from '@tidemark/simulator'
import OpenAI from 'openai'
import type { TestResponse } from './ask.ts'

/** A model before GPT-5.6: its cache is implicit. */
export const OLD_MODEL = 'gpt-5.1'
/** A model with cache breakpoints. */
export const NEW_MODEL = 'gpt-5.6-sol'

export function connect({ fetch }: Pick<Simulator, 'fetch'>, apiKey = 'any', headers = {}): OpenAI {
  return new OpenAI({
    apiKey,
    baseURL: 'http://simulator/v1',
    fetch,
    maxRetries: 0,
    defaultHeaders: headers,
  })
}

export async function postOpenai(
  simulator: Simulator,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): Promise<TestResponse> {
  const response = await simulator.fetch(`http://simulator/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer any', ...headers },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type') === 'application/json'
  return { status: response.status, body: isJson ? JSON.parse(text) : text, headers: response.headers }
}

export function postResponse(simulator: Simulator, body: object, headers = {}): Promise<TestResponse> {
  return postOpenai(simulator, '/responses', { model: OLD_MODEL, ...body }, headers)
}

export function postChat(simulator: Simulator, body: object, headers = {}): Promise<TestResponse> {
  return postOpenai(simulator, '/chat/completions', { model: OLD_MODEL, ...body }, headers)
}

export const FUNCTION = {
  type: 'function' as const,
  name: 'read',
  description: 'Reads a file',
  parameters: { type: 'object', properties: { path: { type: 'string' } } },
  strict: false,
}

export const CHAT_FUNCTION = {
  type: 'function' as const,
  function: { name: 'read', description: 'Reads a file', parameters: FUNCTION.parameters },
}

export function functionCall(callId: string, more: object = {}): object {
  return { type: 'function_call', call_id: callId, name: 'read', arguments: '{}', ...more }
}

export function functionOutput(callId: string, output: unknown = 'seen'): object {
  return { type: 'function_call_output', call_id: callId, output }
}

/** The tokens of a response's prompt: all, read from the cache, and written to it. */
export function readPromptUsage({
  body,
}: TestResponse): readonly [all: number, read: number, written: number] {
  const { usage } = body
  const details = usage.input_tokens_details ?? usage.prompt_tokens_details ?? {}
  return [
    usage.input_tokens ?? usage.prompt_tokens,
    details.cached_tokens ?? 0,
    details.cache_write_tokens ?? 0,
  ]
}
