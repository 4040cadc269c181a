/** Faults: what can go wrong with an answer, as data, and how it changes the finished answer before it is sent. */
import {
  type ApiErrorType,
  type BodyChunk,
  createErrorAnswer,
  errorTypeForStatus,
  type HttpAnswer,
} from '../protocol/answer.ts'

/** A fault comes from the reply of a script, from a request header, or from the control endpoint. */
export type Fault =
  | StatusFault
  /** The answer begins after `ms`. Cache entries become visible only when it begins. */
  | { readonly type: 'slow-start'; readonly ms: number }
  /** The answer arrives `bytes` at a time, with `ms` before each part. */
  | { readonly type: 'slow-drip'; readonly bytes: number; readonly ms: number }
  /** The connection closes cleanly at the place (default: half of the answer), or inside a multi-byte character near it. */
  | ({ readonly type: 'cut'; readonly insideCharacter?: boolean } & FaultPlace)
  | ErrorEventFault
  /** The connection is reset at the place (default: before the first byte). */
  | ({ readonly type: 'reset' } & FaultPlace)
  /** Nothing is sent after the place (default: before the first byte), and the connection stays open. */
  | ({ readonly type: 'hang' } & FaultPlace)
  /** Several faults on one answer, such as a slow start and a cut. */
  | { readonly type: 'several'; readonly faults: readonly Fault[] }

/** An error response instead of the answer. `retryAfter` is in seconds. */
interface StatusFault {
  readonly type: 'status'
  readonly status: number
  readonly errorType?: string
  readonly message?: string
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly details?: Readonly<Record<string, unknown>>
}

/** An `error` event after this many events of the stream, and then the end. */
interface ErrorEventFault {
  readonly type: 'error-event'
  readonly afterEvents: number
  readonly errorType?: string
  readonly message?: string
}

/** A place in an answer, in bytes or in events of the stream. `afterBytes` wins if both are given. */
export interface FaultPlace {
  readonly afterBytes?: number
  readonly afterEvents?: number
}

/** Response header that describes what a fault did, if that is not exactly what was requested. */
export const FAULT_APPLIED_HEADER = 'x-simulator-fault-applied'

/** The answer with the fault applied. A fault that cannot be applied leaves a note in `x-simulator-fault-applied`. */
export function applyFault(answer: HttpAnswer, fault: Fault, requestId: string): HttpAnswer {
  switch (fault.type) {
    case 'status':
      return createStatusAnswer(fault, requestId, answer)
    case 'slow-start':
      return { ...answer, chunks: delayFirstChunk(answer.chunks, fault.ms) }
    case 'slow-drip':
      return { ...answer, chunks: splitIntoDrips(answer.chunks, fault.bytes, fault.ms) }
    case 'cut':
      return fault.insideCharacter === true
        ? cutInsideCharacter(answer, fault)
        : endAtPlace(answer, 'close', fault)
    case 'reset':
    case 'hang':
      return endAtPlace(answer, fault.type, fault)
    case 'error-event':
      return isEventStream(answer) ? withErrorEvent(answer, fault) : replaceByError(answer, fault, requestId)
    case 'several':
      return fault.faults
        .toSorted((one, other) => FAULT_ORDER.indexOf(one.type) - FAULT_ORDER.indexOf(other.type))
        .reduce((changed, each) => applyFault(changed, each, requestId), answer)
  }
}

/** Faults that replace the answer come first, then those that end it, then those that slow it down. */
const FAULT_ORDER: readonly Fault['type'][] = [
  'several',
  'status',
  'error-event',
  'cut',
  'reset',
  'hang',
  'slow-drip',
  'slow-start',
]

const halfBytes = (total: number): number => Math.floor(total / 2)
const noBytes = (): number => 0

/** A place counted in events cannot be applied to a body that is not a stream. */
function endAtPlace(answer: HttpAnswer, ending: HttpAnswer['ending'], place: FaultPlace): HttpAnswer {
  const countsEvents = place.afterBytes === undefined && (place.afterEvents ?? 0) > 0
  if (countsEvents && !isEventStream(answer)) return withFaultNote(answer, 'not applied: no stream')
  const bytes = countBytesBefore(answer.chunks, place, ending === 'close' ? halfBytes : noBytes)
  const ended = endAfterBytes(answer, ending, bytes)
  const note = describeLatePlace(answer, ending, place)
  return note === null ? ended : withFaultNote(ended, note)
}

/** The note for a place at or after the end, where a cut removes nothing and the other faults come at the end. */
function describeLatePlace(
  { chunks }: HttpAnswer,
  ending: HttpAnswer['ending'],
  place: FaultPlace,
): string | null {
  const { afterBytes, afterEvents = 0 } = place
  const isBytes = afterBytes !== undefined
  const [asked, count] = isBytes ? [afterBytes, countBytes(chunks)] : [afterEvents, countEvents(chunks)]
  const unit = isBytes ? 'bytes' : 'events'
  if (asked === 0 || asked < count) return null
  if (ending === 'close') return `not applied: the answer ends after ${count} ${unit}`
  return asked === count ? null : `${ending} at the end: the answer has only ${count} ${unit}`
}

function endAfterBytes(answer: HttpAnswer, ending: HttpAnswer['ending'], bytes: number): HttpAnswer {
  return { ...answer, chunks: takeFirstBytes(answer.chunks, bytes), ending }
}

/** If the answer has no multi-byte character it is cut at the place, and the header says so. */
function cutInsideCharacter(answer: HttpAnswer, place: FaultPlace): HttpAnswer {
  const from = countBytesBefore(answer.chunks, place, halfBytes)
  const inside = findCharacterInterior(answer.chunks, from)
  if (inside !== null) return endAfterBytes(answer, 'close', inside)
  return withFaultNote(
    endAfterBytes(answer, 'close', from),
    `cut after ${from} bytes, between characters: the answer has none of several bytes`,
  )
}

function withFaultNote(answer: HttpAnswer, note: string): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, [FAULT_APPLIED_HEADER]: note } }
}

function createStatusAnswer(
  fault: StatusFault,
  requestId: string,
  { headers, chunks }: HttpAnswer,
): HttpAnswer {
  const { status, message = defaultMessage(status), details, retryAfter } = fault
  // A script may use an error type that the provider does not have; the envelope is the same.
  const type = (fault.errorType ?? errorTypeForStatus(status)) as ApiErrorType
  const refused = { status, type, message, ...(details === undefined ? {} : { details }) }
  const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  const { 'content-type': _type, 'cache-control': _control, ...rest } = headers
  const made = createErrorAnswer(refused, requestId, { ...rest, ...wait, ...fault.headers })
  return { ...made, chunks: delayFirstChunk(made.chunks, chunks[0]?.delayMs ?? 0) }
}

const DEFAULT_MESSAGES: Readonly<Record<number, string>> = {
  413: 'Request exceeds the maximum size',
  429: 'This request would exceed the rate limit for your organization. Try again later.',
  500: 'Internal server error',
  529: 'Overloaded',
}

function defaultMessage(status: number): string {
  return DEFAULT_MESSAGES[status] ?? 'Error'
}

function delayFirstChunk(chunks: readonly BodyChunk[], ms: number): readonly BodyChunk[] {
  return chunks.map((chunk, index) => (index === 0 ? { ...chunk, delayMs: chunk.delayMs + ms } : chunk))
}

function isEventStream({ headers }: HttpAnswer): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true
}

/** Never after the last event: a client that has received the end stops reading. */
function withErrorEvent(answer: HttpAnswer, fault: ErrorEventFault): HttpAnswer {
  const { errorType = 'overloaded_error', message = 'Overloaded' } = fault
  const count = countEvents(answer.chunks)
  const afterEvents = Math.min(fault.afterEvents, Math.max(0, count - 1))
  const data = JSON.stringify({ type: 'error', error: { type: errorType, message } })
  const event = { bytes: encodeBytes(`event: error\ndata: ${data}\n\n`), delayMs: 0 }
  const before = takeFirstBytes(answer.chunks, countBytesBefore(answer.chunks, { afterEvents }, noBytes))
  const struck: HttpAnswer = { ...answer, chunks: [...before, event], ending: 'close' }
  if (afterEvents === fault.afterEvents) return struck
  return withFaultNote(
    struck,
    `error after ${afterEvents} events: the answer has ${count}, and nobody reads past the last`,
  )
}

const STATUS_BY_TYPE: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  rate_limit_error: 429,
  api_error: 500,
  timeout_error: 504,
  overloaded_error: 529,
}

/** A body that is not a stream has no events, so an error response replaces it. */
function replaceByError(answer: HttpAnswer, fault: ErrorEventFault, requestId: string): HttpAnswer {
  const { errorType = 'overloaded_error', message } = fault
  const status = STATUS_BY_TYPE[errorType] ?? 500
  const fields = message === undefined ? {} : { message }
  const error = createStatusAnswer({ type: 'status', status, errorType, ...fields }, requestId, answer)
  return withFaultNote(error, `status ${status} instead of an error event: the answer is no stream`)
}

// Cutting and slowing an answer at the level of bytes, regardless of characters.

type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function encodeBytes(chunk: string | Bytes): Bytes {
  return typeof chunk === 'string' ? encoder.encode(chunk) : chunk
}

/** The chunks that make up the first `length` bytes. */
function takeFirstBytes(chunks: readonly BodyChunk[], length: number): readonly BodyChunk[] {
  let left = length
  const kept: BodyChunk[] = []
  for (const chunk of chunks) {
    if (left <= 0) break
    const bytes = encodeBytes(chunk.bytes).subarray(0, left)
    kept.push({ ...chunk, bytes })
    left -= bytes.length
  }
  return kept
}

/** The number of bytes before the place; `otherwise` computes it if no place is given. */
function countBytesBefore(
  chunks: readonly BodyChunk[],
  { afterBytes, afterEvents }: FaultPlace,
  otherwise: (total: number) => number,
): number {
  const all = joinChunks(chunks)
  if (afterBytes !== undefined) return Math.min(afterBytes, all.length)
  if (afterEvents === undefined) return otherwise(all.length)
  return afterEvents === 0 ? 0 : (findEventEnds(all)[afterEvents - 1] ?? all.length)
}

function countBytes(chunks: readonly BodyChunk[]): number {
  return joinChunks(chunks).length
}

function countEvents(chunks: readonly BodyChunk[]): number {
  return findEventEnds(joinChunks(chunks)).length
}

const BLANK_LINE = Buffer.from('\n\n')

/** The offsets at which the events of a stream end, each with its empty line. */
function findEventEnds(all: Buffer): readonly number[] {
  const ends: number[] = []
  for (let at = all.indexOf(BLANK_LINE); at >= 0; at = all.indexOf(BLANK_LINE, at + BLANK_LINE.length))
    ends.push(at + BLANK_LINE.length)
  return ends
}

/**
 * An offset inside a multi-byte character: the first that begins at `from` or later, otherwise the last one before.
 * Null if the answer has no such character.
 */
export function findCharacterInterior(chunks: readonly BodyChunk[], from: number): number | null {
  const all = joinChunks(chunks)
  const after = all.findIndex((byte, at) => at >= from && isLeadByte(byte))
  const lead = after >= 0 ? after : all.findLastIndex((byte) => isLeadByte(byte))
  return lead < 0 ? null : lead + 1
}

/** The first byte of a multi-byte character. */
function isLeadByte(byte: number): boolean {
  return byte >= 0xc0
}

function joinChunks(chunks: readonly BodyChunk[]): Buffer {
  return Buffer.concat(chunks.map((chunk) => encodeBytes(chunk.bytes)))
}

/** The same bytes in chunks of `size`, with a pause before each. */
export function splitIntoDrips(chunks: readonly BodyChunk[], size: number, ms: number): readonly BodyChunk[] {
  return chunks.flatMap((chunk) => {
    const bytes = encodeBytes(chunk.bytes)
    const count = Math.max(1, Math.ceil(bytes.length / size))
    return Array.from({ length: count }, (_, at) => ({
      bytes: bytes.subarray(at * size, (at + 1) * size),
      delayMs: at === 0 ? chunk.delayMs + ms : ms,
    }))
  })
}
