/** Classifies the errors of OpenAI's APIs, and of servers that speak like them, as typed failures. */
import type { ModelFailure, ModelFailureKind } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import { classifyFailure, type ErrorClassifier, type FailedResponse } from '../failure/classify-failure.ts'
import type { ErrorBody } from '../failure/error-body.ts'

/** OpenAI's vendor name in the origin of blocks. */
export const OPENAI_VENDOR = 'openai'

const QUOTA_ERROR = 'insufficient_quota'

const KIND_BY_CODE: ReadonlyMap<string, ModelFailureKind> = new Map([
  ['invalid_encrypted_content', 'thinking-binding'],
  [QUOTA_ERROR, 'billing'],
  ['billing_hard_limit_reached', 'billing'],
  ['rate_limit_exceeded', 'rate-limit'],
  ['server_error', 'server'],
  ['server_is_overloaded', 'overloaded'],
  ['slow_down', 'overloaded'],
  ['invalid_api_key', 'auth'],
  ['model_not_found', 'not-found'],
  ['image_too_large', 'media'],
  ['image_file_too_large', 'media'],
  ['invalid_image', 'media'],
  ['invalid_base64_image', 'media'],
  ['invalid_prompt', 'invalid-request'],
])

/** Patterns for error messages that have no code of their own. */
const KIND_BY_MESSAGE: readonly (readonly [ModelFailureKind, RegExp])[] = [
  ['thinking-binding', /encrypted content .*could not be (?:verified|decrypted)/i],
  ['thinking-binding', /without its required '?reasoning'? item/i],
  ['thinking-binding', /of type 'reasoning' was provided without its required following item/i],
]

const KIND_BY_TYPE: ReadonlyMap<string, ModelFailureKind> = new Map([
  ['authentication_error', 'auth'],
  ['permission_error', 'permission'],
  [QUOTA_ERROR, 'billing'],
  ['rate_limit_error', 'rate-limit'],
  ['tokens', 'rate-limit'],
  ['requests', 'rate-limit'],
  ['server_error', 'server'],
])

const OPENAI_ERRORS: ErrorClassifier = { provider: OPENAI_VENDOR, classifyError }

export function readOpenaiFailure(call: FailedResponse): ModelFailure {
  return classifyFailure(call, OPENAI_ERRORS)
}

function classifyError({ code, type, message }: ErrorBody): ModelFailureKind | undefined {
  const byCode = code === undefined ? undefined : KIND_BY_CODE.get(code)
  if (byCode !== undefined) return byCode
  const byMessage = KIND_BY_MESSAGE.find(([, pattern]) => pattern.test(message))?.[0]
  return byMessage ?? (type === undefined ? undefined : KIND_BY_TYPE.get(type))
}

const TYPE_BY_STATUS: ReadonlyMap<number, string> = new Map([
  [401, 'authentication_error'],
  [402, QUOTA_ERROR],
  [403, 'permission_error'],
  [429, 'rate_limit_error'],
])

/** Returns an error in the provider's format. Clients recognize an exhausted quota by the code of the error. */
export function toOpenaiErrorBody(status: number, message: string): JsonObject {
  const type = TYPE_BY_STATUS.get(status) ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  return { error: { message, type, param: null, code: type === QUOTA_ERROR ? QUOTA_ERROR : null } }
}
