/** Reading and admitting a request: body, authentication, limits, validation. Everything that can reject it. */
import type { ThreadRequest } from '../context/message-threads.ts'
import type { Scope } from '../prompt-cache/cache-key.ts'
import { type ApiResult, invalid, type Refusal, refusal, reject } from '../protocol/answer.ts'
import { checkRules, checkShape, type Endpoint } from '../validation/validate.ts'
import { gateOf, type Headers, identify } from './accounts.ts'
import { type Prepared, prepare } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

export interface Incoming {
  readonly endpoint: Endpoint
  readonly headers: Headers
  /** The parsed body. */
  readonly value: unknown
  readonly bodyBytes: number
  /** Set if the body could not be read. */
  readonly bodyError?: Refusal
}

export interface Admitted {
  readonly prepared: Prepared
  readonly thread: ThreadRequest
  /** Id of the response that a message thread continues. */
  readonly continues: string | null
}

/** Validates the request and prepares its prompt. A thread that it would continue is released if it is rejected. */
export function admit(state: World, incoming: Incoming, account: Scope): ApiResult<Admitted> {
  const { settings, clock } = state
  const { endpoint, headers } = incoming
  const read = gateOf(headers, settings.cachedClearing)
  if (!read.ok) return read
  const { features } = read
  const shape = checkShape(incoming.value, features, endpoint, settings.models)
  if (!shape.ok) return shape
  const request = { body: shape.body, scope: account, betas: features.betas, now: clock.now() }
  const thread = state.threads.resolve(request)
  if (!thread.ok) return thread
  const { body, continues } = thread
  const { model } = shape
  const checked = checkRules({ body, features, model, endpoint, settings: settings.rules })
  const outcome = checked.ok
    ? prepare(state, { body, features, model, scope: account, markers: checked.markers })
    : checked
  if (!outcome.ok) {
    state.threads.release(continues)
    return outcome
  }
  return { ok: true, prepared: outcome.prepared, thread: { ...request, body }, continues }
}

/** Authenticates the request and counts it against the rate limits. */
export function enter(state: World, headers: Headers): ApiResult<{ account: Scope }> {
  const identity = identify(headers, state.settings.accounts)
  if (!identity.ok) return identity
  const limited = state.limiter.admit(identity.account.organization)
  return limited === null ? identity : reject(limited)
}

const MAX_BODY_BYTES = 32_000_000

type ReadBody = ApiResult<{ value: unknown; bytes: number }>

const TOO_LARGE: Refusal = refusal(413, 'Request exceeds the maximum size')

/** Reads a JSON body, decompressed if needed. Fails if it is larger than the provider accepts. */
export async function readBody(request: Request): Promise<ReadBody> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return reject(TOO_LARGE)
  const encoding = (request.headers.get('content-encoding') ?? 'identity').toLowerCase()
  if (encoding === 'identity') return parsed(await request.arrayBuffer(), TOO_LARGE)
  const format = FORMATS.find((known) => known === encoding)
  if (format === undefined || request.body === null)
    return reject(encodingRefusal('unsupported', `content-encoding \`${encoding}\` is not supported`))
  try {
    const unpacked = request.body.pipeThrough(new DecompressionStream(format))
    return parsed(await new Response(unpacked).arrayBuffer(), TOO_LARGE_UNPACKED)
  } catch {
    return reject(encodingRefusal('invalid', `the body is not valid \`${encoding}\``))
  }
}

const FORMATS = ['gzip', 'deflate'] as const

const TOO_LARGE_UNPACKED: Refusal = refusal(413, 'Request exceeds the maximum size after decoding', {
  error_code: 'request_body_too_large_after_decoding',
})

function encodingRefusal(kind: 'unsupported' | 'invalid', message: string): Refusal {
  return invalid(message, { error_code: `request_body_encoding_${kind}` })
}

function parsed(buffer: ArrayBuffer, tooLarge: Refusal): ReadBody {
  if (buffer.byteLength > MAX_BODY_BYTES) return reject(tooLarge)
  try {
    const value: unknown = JSON.parse(Buffer.from(buffer).toString('utf8'))
    return { ok: true, value, bytes: buffer.byteLength }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return reject(invalid(`The request body is not valid JSON: ${why}`))
  }
}
