/** Everything that can turn a request down before it is asked what it wants of the model. */
import type { ThreadRequest } from '../context/message-threads.ts'
import { invalid, type Refusal, refusal } from '../protocol/answer.ts'
import { checkRules, checkShape, type Endpoint } from '../validation/validate.ts'
import { type Account, gateOf, type Headers, identify } from './accounts.ts'
import { type Prepared, prepare } from './prepare-prompt.ts'
import type { World } from './simulator-state.ts'

export interface Incoming {
  readonly endpoint: Endpoint
  readonly headers: Headers
  /** The body as parsed, and how long it was. */
  readonly value: unknown
  readonly bodyBytes: number
  /** Why the body could not be read, where it could not. */
  readonly unreadable?: Refusal
}

export type Admission =
  | {
      readonly ok: true
      readonly prepared: Prepared
      readonly thread: ThreadRequest
      readonly continues: string | null
    }
  | { readonly ok: false; readonly refusal: Refusal }

export function admit(world: World, incoming: Incoming, account: Account): Admission {
  const { settings, clock } = world
  const { endpoint, headers } = incoming
  const gate = gateOf(headers, settings.cachedClearing)
  if (!gate.ok) return gate
  const shape = checkShape(incoming.value, gate.gate, { endpoint, models: settings.models })
  if (!shape.ok) return shape
  const request = { body: shape.body, scope: account, betas: gate.gate.betas, now: clock.now() }
  const thread = world.threads.resolve(request)
  if (!thread.ok) return thread
  const { body, continues } = thread
  const { model } = shape
  const checked = checkRules({ body, gate: gate.gate, model, endpoint, settings: settings.rules })
  const outcome = checked.ok
    ? prepare(world, { body, gate: gate.gate, model, scope: account, markers: checked.markers })
    : checked
  if (!outcome.ok) {
    world.threads.release(continues)
    return outcome
  }
  return { ok: true, prepared: outcome.prepared, thread: { ...request, body }, continues }
}

export type Entry =
  | { readonly ok: true; readonly account: Account }
  | { readonly ok: false; readonly refusal: Refusal }

/** Known, and within limits? */
export function enter(world: World, headers: Headers): Entry {
  const identity = identify(headers, world.settings.accounts)
  if (!identity.ok) return identity
  const limited = world.limiter.admit(identity.account.organization)
  return limited === null ? identity : { ok: false, refusal: limited }
}

// Reading a request body: no larger than the provider takes, unpacked if it came packed, and JSON.

export const MAX_BODY_BYTES = 32_000_000

export type ReadBody =
  | { readonly ok: true; readonly value: unknown; readonly bytes: number }
  | { readonly ok: false; readonly refusal: Refusal }

const TOO_LARGE: Refusal = refusal(413, 'Request exceeds the maximum size')

export async function readBody(request: Request): Promise<ReadBody> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) return refused(TOO_LARGE)
  const encoding = (request.headers.get('content-encoding') ?? 'identity').toLowerCase()
  if (encoding === 'identity') return parsed(await request.arrayBuffer(), TOO_LARGE)
  const format = FORMATS.find((known) => known === encoding)
  if (format === undefined || request.body === null)
    return refused(encodingRefusal('unsupported', `content-encoding \`${encoding}\` is not supported`))
  try {
    const unpacked = request.body.pipeThrough(new DecompressionStream(format))
    return parsed(await new Response(unpacked).arrayBuffer(), TOO_LARGE_UNPACKED)
  } catch {
    return refused(encodingRefusal('invalid', `the body is not valid \`${encoding}\``))
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
  if (buffer.byteLength > MAX_BODY_BYTES) return refused(tooLarge)
  try {
    const value: unknown = JSON.parse(Buffer.from(buffer).toString('utf8'))
    return { ok: true, value, bytes: buffer.byteLength }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    return refused(invalid(`The request body is not valid JSON: ${why}`))
  }
}

function refused(why: Refusal): ReadBody {
  return { ok: false, refusal: why }
}
