/**
 * Failures of the Messages API: classified by error code and type, by message only where the API gives nothing else;
 * and replies that succeeded although the context window was too small.
 */
import {
  type AssistantMessage,
  contextOf,
  type Failure,
  type FailureKind,
  type JsonObject,
  outputOf,
  type TokenGap,
} from '@tidemark/core'
import { classify, type Dialect, type FailedCall } from '../failure/classify-failure.ts'
import type { ErrorBody } from '../failure/error-body.ts'
import { findSilentOverflow } from '../failure/overflow.ts'
import { given } from '../optional-fields.ts'

const BY_TYPE: Readonly<Record<string, FailureKind>> = {
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

const BY_CODE: Readonly<Record<string, FailureKind>> = {
  enforced_spend_limit_reached: 'billing',
  ramp_limit_exceeded: 'rate-limit',
  organization_on_hold: 'billing',
  request_body_too_large_after_decoding: 'too-large',
  compaction_unavailable: 'overloaded',
}

/** Errors that share the type `invalid_request_error` and differ in their message alone. */
const BY_WORDS: readonly (readonly [FailureKind, RegExp])[] = [
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

const dialect: Dialect = { provider: 'anthropic', kindOf: classifyAnthropicError }

export function toFailure(call: FailedCall): Failure {
  return classify(call, dialect)
}

/** The reverse of `toAnthropicFailure`, for servers: the `error` object of an error response. */
export function errorObject(failed: Failure): JsonObject {
  const fromKind = Object.entries(BY_TYPE).find(([, kind]) => kind === failed.kind)?.[0]
  const type = failed.errorType ?? fromKind ?? (failed.retryable ? 'api_error' : 'invalid_request_error')
  const details =
    failed.details ?? (failed.errorCode === undefined ? undefined : { error_code: failed.errorCode })
  return { type, message: failed.message, ...given({ details }) }
}

function classifyAnthropicError(body: ErrorBody, status: number | undefined): FailureKind | undefined {
  const byCode = known(BY_CODE, body.code)
  if (byCode !== undefined) return byCode
  const byType = known(BY_TYPE, body.type)
  if (byType !== undefined && byType !== 'invalid-request') return byType
  const byMessage = BY_WORDS.find(([, pattern]) => pattern.test(body.message))?.[0]
  return byMessage ?? (status === undefined || status === 400 ? byType : undefined)
}

/** The server chooses the name, so names of the prototype must not count. */
function known(
  kinds: Readonly<Record<string, FailureKind>>,
  name: string | undefined,
): FailureKind | undefined {
  return name !== undefined && Object.hasOwn(kinds, name) ? kinds[name] : undefined
}

const STOPPED_BY_LENGTH: ReadonlySet<unknown> = new Set(['max_tokens', 'model_context_window_exceeded'])

/**
 * By how many tokens prompt and reply exceeded `window`, judged by stop reason or usage; null if they fit or if nothing
 * was measured.
 */
export function overflowOfReply({ stop_reason, usage }: AssistantMessage, window: number): TokenGap | null {
  const [inputTokens, outputTokens] = [contextOf(usage), outputOf(usage)]
  const silent = findSilentOverflow(
    { inputTokens, outputTokens, stoppedByLength: STOPPED_BY_LENGTH.has(stop_reason) },
    window,
  )
  if (silent !== null || stop_reason !== 'model_context_window_exceeded') return silent
  const actual = inputTokens + outputTokens
  return actual === 0 ? { limit: window } : { actual, limit: window, over: Math.max(0, actual - window) }
}
