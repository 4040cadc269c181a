/**
 * Reads a request and decides whether to accept it: body, authentication, rate limits, validation and prompt. Every
 * check that can reject a request runs here.
 */
import type { ThreadRequest } from '../context/message-threads.ts'
import type { Account } from '../prompt-cache/cache-key.ts'
import { type ApiError, type ApiResult, apiError, invalidRequest, reject } from '../protocol/answer.ts'
import { checkRequestRules, checkRequestShape, type Endpoint } from '../validation/validate.ts'
import { authenticateApiKey, type RequestHeaders, readApiFeatures } from './accounts.ts'
import { type PreparedRequest, prepareRequest } from './prepare-prompt.ts'
import type { SimulatorState } from './simulator-state.ts'

export interface IncomingRequest {
  readonly endpoint: Endpoint
  readonly headers: RequestHeaders
  /** The parsed JSON body of the request. */
  readonly value: unknown
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
 * Validates a request and prepares its prompt. If a rejected request would have continued a response of a message
 * thread, that response can be continued again.
 */
export function admitRequest(
  state: SimulatorState,
  incoming: IncomingRequest,
  account: Account,
): ApiResult<AdmittedRequest> {
  const { settings, clock } = state
  const { endpoint, headers } = incoming
  const read = readApiFeatures(headers, settings.cachedClearing)
  if (!read.ok) return read
  const { features } = read
  const shape = checkRequestShape(incoming.value, features, endpoint, settings.models)
  if (!shape.ok) return shape
  const request = { body: shape.body, scope: account, betas: features.betas, now: clock.now() }
  const thread = state.threads.resolve(request)
  if (!thread.ok) return thread
  const { body, continues } = thread
  const { model } = shape
  const checked = checkRequestRules({ body, features, model, endpoint, settings: settings.rules })
  const outcome = checked.ok
    ? prepareRequest(state, { body, features, model, scope: account, markers: checked.markers })
    : checked
  if (!outcome.ok) {
    state.threads.release(continues)
    return outcome
  }
  return { ok: true, prepared: outcome.prepared, thread: { ...request, body }, continues }
}

/** Authenticates a request and counts it against the rate limits. */
export function authenticateRequest(
  state: SimulatorState,
  headers: RequestHeaders,
): ApiResult<{ account: Account }> {
  const identity = authenticateApiKey(headers, state.settings.accounts)
  if (!identity.ok) return identity
  const limited = state.limiter.countRequest(identity.account.organization)
  return limited === null ? identity : reject(limited)
}

const MAX_BODY_BYTES = 32_000_000

type ReadBodyResult = ApiResult<{ value: unknown; bytes: number }>

const BODY_TOO_LARGE: ApiError = apiError(413, 'Request exceeds the maximum size')

/**
 * Reads a JSON request body and decompresses it if needed. Fails if the body is not valid or larger than the provider
 * accepts.
 */
export async function readRequestBody(request: Request): Promise<ReadBodyResult> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return reject(BODY_TOO_LARGE)
  const encoding = (request.headers.get('content-encoding') ?? 'identity').toLowerCase()
  if (encoding === 'identity') return parseBody(await request.arrayBuffer(), BODY_TOO_LARGE)
  const format = COMPRESSION_FORMATS.find((known) => known === encoding)
  if (format === undefined || request.body === null)
    return reject(encodingError('unsupported', `content-encoding \`${encoding}\` is not supported`))
  try {
    const unpacked = request.body.pipeThrough(new DecompressionStream(format))
    return parseBody(await new Response(unpacked).arrayBuffer(), DECODED_BODY_TOO_LARGE)
  } catch {
    return reject(encodingError('invalid', `the body is not valid \`${encoding}\``))
  }
}

const COMPRESSION_FORMATS = ['gzip', 'deflate'] as const

const DECODED_BODY_TOO_LARGE: ApiError = apiError(413, 'Request exceeds the maximum size after decoding', {
  error_code: 'request_body_too_large_after_decoding',
})

function encodingError(kind: 'unsupported' | 'invalid', message: string): ApiError {
  return invalidRequest(message, { error_code: `request_body_encoding_${kind}` })
}

function parseBody(buffer: ArrayBuffer, tooLarge: ApiError): ReadBodyResult {
  if (buffer.byteLength > MAX_BODY_BYTES) return reject(tooLarge)
  try {
    const text = Buffer.from(buffer).toString('utf8')
    const value: unknown = JSON.parse(text)
    const broken = findLoneSurrogate(text)
    return broken === null ? { ok: true, value, bytes: buffer.byteLength } : reject(invalidRequest(broken))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return reject(invalidRequest(`The request body is not valid JSON: ${why}`))
  }
}

/**
 * Returns the provider's error for half a surrogate pair in a string, which its JSON parser refuses although JavaScript
 * writes and reads it; null if there is none.
 */
function findLoneSurrogate(text: string): string | null {
  // Each match is one escape sequence, so that the second backslash of an escaped backslash begins none.
  for (const { 0: sequence, index } of text.matchAll(ESCAPES)) {
    const [, high, low] = SURROGATES.exec(sequence) ?? []
    if (high === undefined || low !== undefined) continue
    const why = /^d[89ab]/i.test(high) ? 'no low surrogate in string' : 'invalid high surrogate in string'
    const lines = text.slice(0, index).split('\n')
    const place = `line ${lines.length} column ${(lines.at(-1) ?? '').length + 1} (char ${index})`
    return `The request body is not valid JSON: ${why}: ${place}`
  }
  return null
}

const ESCAPES = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/gs
const SURROGATES = /^\\u(d[89a-f]..)(?:\\u(....))?$/i
