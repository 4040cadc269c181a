/** Reading a request body: no larger than the provider takes, unpacked if it came packed, and JSON. */
import { invalid, type Refusal, refusal } from '../refusal.ts'

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
