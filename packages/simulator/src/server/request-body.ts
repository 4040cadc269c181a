/**
 * Reads the body of a request: at most as many bytes as allowed, decompressed if needed, as JSON that is not nested
 * deeper than the simulator can handle. Nothing beyond the limit is kept in memory.
 */
import { StringDecoder } from 'node:string_decoder'
import type { WorkInSteps } from '@tidemark/core/log/work-steps'
import { type ApiError, createApiError, createInvalidRequestError } from '../protocol/answer.ts'
import { describeDeepNesting } from '../protocol/value-readers.ts'
import { runWithPauses } from './pauses.ts'

/** A request body as read. `bodyError` is the error if it is not valid; `text` is empty if it was not read at all. */
interface RequestBody {
  readonly value: unknown
  readonly text: string
  readonly bodyBytes: number
  readonly bodyError?: ApiError
}

const BODY_TOO_LARGE: ApiError = createApiError(413, 'Request exceeds the maximum size')

const DECODED_BODY_TOO_LARGE: ApiError = createApiError(
  413,
  'Request exceeds the maximum size after decoding',
  {
    error_code: 'request_body_too_large_after_decoding',
  },
)

/**
 * Reads a JSON request body and decompresses it if needed. `bodyError` says if the body is not valid, nested too deeply,
 * or larger than `maxBytes`. `bodyText` is a body that is not part of the `Request` object.
 */
export async function readRequestBody(
  { body, headers }: Request,
  maxBytes: number,
  bodyText: string | null = null,
): Promise<RequestBody> {
  const announced = Number(headers.get('content-length') ?? 0)
  const refuse = (bodyError: ApiError): RequestBody => ({
    value: null,
    text: '',
    bodyBytes: announced,
    bodyError,
  })
  if (announced > maxBytes) return refuse(BODY_TOO_LARGE)
  const encoding = (headers.get('content-encoding') ?? 'identity').toLowerCase()
  if (encoding === 'identity') {
    const read = await readLimitedText(bodyText ?? body, maxBytes)
    return read === null ? refuse(BODY_TOO_LARGE) : runWithPauses(parseBody(read))
  }
  const format = COMPRESSION_FORMATS.find((known) => known === encoding)
  if (format === undefined || body === null)
    return refuse(encodingError('unsupported', `content-encoding \`${encoding}\` is not supported`))
  try {
    const decoded = body.pipeThrough(new DecompressionStream(format))
    const read = await readLimitedText(decoded, maxBytes)
    return read === null ? refuse(DECODED_BODY_TOO_LARGE) : runWithPauses(parseBody(read))
  } catch {
    return refuse(encodingError('invalid', `the body is not valid \`${encoding}\``))
  }
}

const COMPRESSION_FORMATS = ['gzip', 'deflate'] as const

function encodingError(kind: 'unsupported' | 'invalid', message: string): ApiError {
  return createInvalidRequestError(message, { error_code: `request_body_encoding_${kind}` })
}

interface BodyText {
  /** The received text in pieces. Decoding a large body at once would take as long as parsing it. */
  readonly pieces: readonly string[]
  readonly bytes: number
}

/** Reads a body of at most `limit` bytes. Null if there are more; the rest is then not read. */
export async function readLimitedText(
  source: ReadableStream<Uint8Array> | string | null,
  limit: number,
): Promise<BodyText | null> {
  if (typeof source === 'string') {
    const size = Buffer.byteLength(source)
    return size > limit ? null : { pieces: [source], bytes: size }
  }
  const decoder = new StringDecoder('utf8')
  const pieces: string[] = []
  let bytes = 0
  for await (const chunk of source ?? []) {
    bytes += chunk.byteLength
    if (bytes > limit) return null
    pieces.push(decoder.write(chunk))
  }
  return { pieces: [...pieces, decoder.end()], bytes }
}

function* parseBody({ pieces, bytes }: BodyText): WorkInSteps<RequestBody> {
  yield bytes
  const text = pieces.join('')
  yield text.length
  const read = { text, bodyBytes: bytes }
  const refuse = (why: string): RequestBody => ({
    ...read,
    value: null,
    bodyError: createInvalidRequestError(`The request body is not valid JSON: ${why}`),
  })
  try {
    const value: unknown = JSON.parse(text)
    yield text.length
    const problem = findUnreadableValue(value, text)
    return problem === null ? { ...read, value } : refuse(problem)
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error))
  }
}

/** Returns why the provider would reject a body although JavaScript has parsed it; null if it would accept it. */
function findUnreadableValue(value: unknown, text: string): string | null {
  return describeDeepNesting(value) ?? (SURROGATE_ESCAPE.test(text) ? findLoneSurrogate(text) : null)
}

/**
 * Returns the provider's error for half a surrogate pair in a string; null if there is none. The provider's JSON parser
 * refuses such a string, although JavaScript writes and reads it.
 */
function findLoneSurrogate(text: string): string | null {
  // Each match is a whole escape sequence, so the second backslash of `\\` does not begin another one.
  for (const { 0: sequence, index } of text.matchAll(ESCAPES)) {
    const [, high, low] = SURROGATES.exec(sequence) ?? []
    if (high === undefined || low !== undefined) continue
    const why = /^d[89ab]/i.test(high) ? 'no low surrogate in string' : 'invalid high surrogate in string'
    const lines = text.slice(0, index).split('\n')
    return `${why}: line ${lines.length} column ${(lines.at(-1) ?? '').length + 1} (char ${index})`
  }
  return null
}

/** The text itself is well-formed, so only an escape sequence can create half a pair. */
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/
const ESCAPES = /\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)/gs
const SURROGATES = /^\\u(d[89a-f]..)(?:\\u(....))?$/i
