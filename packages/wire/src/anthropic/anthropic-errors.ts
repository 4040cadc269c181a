/**
 * Classifies errors of the Messages API by error code and type. The message text is used only if code and type are not
 * specific.
 */
import type { ModelFailure, ModelFailureKind } from '@tidemark/core/engine/reply'
import type { JsonObject } from '@tidemark/core/log/json'
import { omitUndefined } from '@tidemark/core/log/json'
import { classifyFailure, type ErrorClassifier, type FailedResponse } from '../failure/classify-failure.ts'
import type { ErrorBody } from '../failure/error-body.ts'

const KIND_BY_TYPE: Readonly<Record<string, ModelFailureKind>> = {
  invalid_request_error: 'invalid-request',
  authentication_error: 'auth',
  billing_error: 'billing',
  permission_error: 'permission',
  not_found_error: 'not-found',
  conflict_error: 'conflict',
  request_too_large: 'too-large',
  rate_limit_error: 'rate-limit',
  api_error: 'server',
  timeout_error: 'timeout',
  overloaded_error: 'overloaded',
}

const KIND_BY_CODE: Readonly<Record<string, ModelFailureKind>> = {
  enforced_spend_limit_reached: 'billing',
  ramp_limit_exceeded: 'rate-limit',
  organization_on_hold: 'billing',
  request_body_too_large_after_decoding: 'too-large',
  compaction_unavailable: 'overloaded',
}

/**
 * Patterns for the messages of `invalid_request_error`, with the failure kind of each. The error type alone does not
 * distinguish them.
 */
const KIND_BY_MESSAGE: readonly (readonly [ModelFailureKind, RegExp])[] = [
  ['thinking-binding', /invalid `?signature`? in `?thinking`? block/i],
  ['thinking-binding', /`?thinking`? or `?redacted_thinking`? blocks .*cannot be modified/i],
  ['thinking-binding', /block is bound to a different/i],
  ['media', /image dimensions exceed max allowed size/i],
  ['media', /image exceeds [\d.]+ ?MB maximum/i],
  ['media', /maximum of \d+ PDF pages/i],
  ['media', /too much media/i],
  ['media', /could not process image/i],
  ['media', /the PDF specified was not valid/i],
  ['too-large', /request exceeds the maximum (?:size|allowed number of bytes)/i],
  ['billing', /credit balance is too low/i],
  ['billing', /reached your specified (?:\w+ )?API usage limits/i],
]

const ANTHROPIC_ERRORS: ErrorClassifier = { provider: 'anthropic', classifyError: classifyAnthropicError }

export function readAnthropicFailure(call: FailedResponse): ModelFailure {
  return classifyFailure(call, ANTHROPIC_ERRORS)
}

/**
 * Converts a failure to the `error` object of a Messages API error response, for servers that imitate the API. Kinds for
 * which the API has no error type become `api_error` if they may be retried, otherwise `invalid_request_error`.
 */
export function toAnthropicErrorObject(failed: ModelFailure): JsonObject {
  const fromKind = Object.entries(KIND_BY_TYPE).find(([, kind]) => kind === failed.kind)?.[0]
  const type = failed.errorType ?? fromKind ?? (failed.retryable ? 'api_error' : 'invalid_request_error')
  const details =
    failed.details ?? (failed.errorCode === undefined ? undefined : { error_code: failed.errorCode })
  return { type, message: failed.message, ...omitUndefined({ details }) }
}

const TYPE_BY_STATUS: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

/** Returns the error type that the API sends with this status; `api_error` for a status that it does not document. */
export function toAnthropicErrorType(status: number): string {
  return TYPE_BY_STATUS[status] ?? 'api_error'
}

function classifyAnthropicError(body: ErrorBody, status: number | undefined): ModelFailureKind | undefined {
  const byCode = findKind(KIND_BY_CODE, body.code)
  if (byCode !== undefined) return byCode
  const byType = findKind(KIND_BY_TYPE, body.type)
  if (byType !== undefined && byType !== 'invalid-request') return byType
  const byMessage = KIND_BY_MESSAGE.find(([, pattern]) => pattern.test(body.message))?.[0]
  return byMessage ?? (status === undefined || status === 400 ? byType : undefined)
}

/**
 * Looks up a failure kind by a name that the server sent. A name such as `constructor` must not match the object's
 * prototype.
 */
function findKind(
  kinds: Readonly<Record<string, ModelFailureKind>>,
  name: string | undefined,
): ModelFailureKind | undefined {
  return name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined
}
