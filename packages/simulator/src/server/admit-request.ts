/**
 * Decides whether to accept a request: authentication, rate limits, validation and prompt. Every check of a request's
 * content runs here, or is called from here.
 */
import { isIP } from 'node:net'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import type { ThreadRequest } from '../context/message-threads.ts'
import type { Account } from '../prompt-cache/cache-key.ts'
import { type ApiError, type ApiResult, toRejection } from '../protocol/answer.ts'
import { checkRequestRules, checkRequestShape, type MessagesEndpoint } from '../validation/validate.ts'
import { authenticateApiKey, type RequestHeaders, readApiFeatures } from './accounts.ts'
import { type PreparedRequest, prepareRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

export interface IncomingRequest {
  readonly endpoint: MessagesEndpoint
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
 * Validates a request and prepares its prompt, in steps, so that a large request does not block others. If the request
 * is rejected, the response of a message thread that it would have continued can be continued again.
 */
export function* admitRequest(
  state: SimulatorState,
  incoming: IncomingRequest,
  account: Account,
): WorkInSteps<ApiResult<AdmittedRequest>> {
  const { settings, clock } = state
  const { endpoint, headers } = incoming
  const read = readApiFeatures(headers, settings.cachedClearing)
  if (!read.ok) return read
  const { features } = read
  const shape = checkRequestShape(incoming.value, features, endpoint, settings.models)
  if (!shape.ok) return shape
  yield incoming.text.length
  const request = { body: shape.body, scope: account, betas: features.betas, now: clock.now() }
  const thread = state.threads.beginRequest(request)
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

/** Authenticates a request and counts it against the rate limits. Returns an error if either refuses it. */
export function authenticateAndCount(
  state: SimulatorState,
  headers: RequestHeaders,
): ApiResult<{ account: Account }> {
  const identity = authenticateApiKey(headers, state.settings.accounts)
  if (!identity.ok) return identity
  const limited = state.limiter.countRequest(identity.account.organization)
  return limited === null ? identity : toRejection(limited)
}

// Requests from web pages. A page of another site in a browser on this machine could otherwise add or use up faults, or
// read requests.

/**
 * Returns an error text if a request comes from a web page of another site; otherwise null. There are two signs: an
 * `Origin` other than the simulator's own, and a `Host` that somebody else's DNS could point to this machine (DNS
 * rebinding). `ownHost` is the host on which the server listens. A request without these headers is not from a page.
 */
export function describeForeignCaller(headers: Headers, ownHost: string | undefined): string | null {
  const host = headers.get('host')
  if (host !== null && !isOwnHost(host, ownHost))
    return `Host ${host}: expected an address, localhost, a name without dots, or the host that was given to listen on`
  const origin = headers.get('origin')
  if (origin !== null && (host === null || origin.toLowerCase() !== `http://${host.toLowerCase()}`))
    return `Origin ${origin}: the simulator does not answer pages of other sites`
  return null
}

/**
 * Checks whether a `Host` header names this simulator. An address cannot be rebound. Nor can a name without dots, such
 * as that of a container, or a name below `.localhost` and `.internal`, which no public DNS has.
 */
function isOwnHost(header: string, ownHost: string | undefined): boolean {
  const { hostname } = URL.parse(`http://${header}`) ?? { hostname: '' }
  const name = hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (name === '') return false
  if (isIP(name) !== 0 || name === ownHost?.toLowerCase()) return true
  return !name.includes('.') || /\.(?:localhost|internal)$/.test(name)
}
