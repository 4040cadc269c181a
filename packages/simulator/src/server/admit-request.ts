/**
 * Decides whether to accept a request: authentication, rate limits, validation and prompt. Every check of a request's content runs here,
 * or is called from here.
 */
import type { Steps } from '@tidemark/core/log/work-steps'
import type { ThreadRequest } from '../context/message-threads.ts'
import type { Account } from '../prompt-cache/cache-key.ts'
import { type ApiError, type ApiResult, reject } from '../protocol/answer.ts'
import { checkRequestRules, checkRequestShape, type Endpoint } from '../validation/validate.ts'
import { authenticateApiKey, type RequestHeaders, readApiFeatures } from './accounts.ts'
import { type PreparedRequest, prepareRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

export interface IncomingRequest {
  readonly endpoint: Endpoint
  /** The path of the request. */
  readonly path: string
  readonly headers: RequestHeaders
  /** The parsed JSON body of the request. */
  readonly value: unknown
  /** The request body as text, after decompression; empty if it could not be read. */
  readonly text: string
  readonly bodyBytes: number
  /** The error if the request body could not be read or parsed. */
  readonly bodyError?: ApiError
}

export interface AdmittedRequest {
  readonly prepared: PreparedRequest
  readonly thread: ThreadRequest
  /** Id of the response that the request continues in a message thread; null if it continues none. */
  readonly continues: string | null
}

/**
 * Validates a request and prepares its prompt, in steps, so that a large request does not block others. If the request is rejected, the
 * response of a message thread that it would have continued can be continued again.
 */
export function* admitRequest(
  state: SimulatorState,
  incoming: IncomingRequest,
  account: Account,
): Steps<ApiResult<AdmittedRequest>> {
  const { settings, clock } = state
  const { endpoint, headers } = incoming
  const read = readApiFeatures(headers, settings.cachedClearing)
  if (!read.ok) return read
  const { features } = read
  const shape = checkRequestShape(incoming.value, features, endpoint, settings.models)
  if (!shape.ok) return shape
  yield incoming.text.length
  const request = { body: shape.body, scope: account, betas: features.betas, now: clock.now() }
  const thread = state.threads.resolve(request)
  if (!thread.ok) return thread
  const { body, continues } = thread
  const { model } = shape
  const checked = yield* checkRequestRules({ body, features, model, endpoint, settings: settings.rules })
  const outcome = checked.ok
    ? yield* prepareRequest(state, { body, features, model, scope: account, markers: checked.markers })
    : checked
  if (!outcome.ok) {
    state.threads.release(continues)
    return outcome
  }
  return { ok: true, prepared: outcome.prepared, thread: { ...request, body }, continues }
}

/** Authenticates a request and counts it against the rate limits. */
export function authenticateAndCount(
  state: SimulatorState,
  headers: RequestHeaders,
): ApiResult<{ account: Account }> {
  const identity = authenticateApiKey(headers, state.settings.accounts)
  if (!identity.ok) return identity
  const limited = state.limiter.countRequest(identity.account.organization)
  return limited === null ? identity : reject(limited)
}
