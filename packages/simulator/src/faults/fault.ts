/**
 * Faults as data: what can go wrong with an HTTP answer, and how a fault changes the finished answer before it is
 * sent.
 */
import { STATUS_CODES } from 'node:http'
import {
  type ApiErrorType,
  type BodyChunk,
  createErrorAnswer,
  findErrorTypeByStatus,
  findStatusByErrorType,
  type HttpAnswer,
} from '../protocol/answer.ts'

/** A way in which an HTTP answer can fail. A script, a request header or the control endpoint can request a fault. */
export type Fault =
  | StatusFault
  /**
   * Delays the start of the answer by `ms` milliseconds. Cache entries that the request writes become visible when
   * the answer starts.
   */
  | { readonly type: 'slow-start'; readonly ms: number }
  /** Sends the answer in parts of at most `bytes` bytes, with a pause of `ms` milliseconds before each part. */
  | { readonly type: 'slow-drip'; readonly bytes: number; readonly ms: number }
  /**
   * Closes the connection normally at the given offset of the answer (default: half of it). With `insideCharacter`
   * the cut is inside a multi-byte character near the offset.
   */
  | ({ readonly type: 'cut'; readonly insideCharacter?: boolean } & FaultOffset)
  | ErrorEventFault
  /** Resets the connection at the given offset of the answer. Default: before the first byte. */
  | ({ readonly type: 'reset' } & FaultOffset)
  /** Stops sending at the given offset of the answer and keeps the connection open. Default: before the first byte. */
  | ({ readonly type: 'hang' } & FaultOffset)
  /** Applies several faults to one answer, such as a slow start and a cut. */
  | { readonly type: 'several'; readonly faults: readonly Fault[] }

/** A fault that replaces the answer by an error response. `retryAfter` is in seconds. */
interface StatusFault {
  readonly type: 'status'
  readonly status: number
  readonly errorType?: string
  readonly message?: string
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly details?: Readonly<Record<string, unknown>>
}

/** A fault that sends an `error` event after `afterEvents` events of the stream and then ends the stream. */
interface ErrorEventFault {
  readonly type: 'error-event'
  readonly afterEvents: number
  readonly errorType?: string
  readonly message?: string
}

/** An offset in an answer, in bytes or in events of the stream. `afterBytes` wins if both are given. */
export interface FaultOffset {
  readonly afterBytes?: number
  readonly afterEvents?: number
}

/** Name of the response header that reports a fault that could not be applied exactly as requested. */
export const FAULT_NOTE_HEADER = 'x-simulator-fault-applied'

/**
 * Returns the answer with the fault applied. If the fault cannot be applied as requested, the header
 * `x-simulator-fault-applied` says what was done instead.
 */
export function applyFault(
  answer: HttpAnswer,
  fault: Fault,
  requestId: string,
  format: FaultErrorFormat = MESSAGES_ERROR_FORMAT,
): HttpAnswer {
  switch (fault.type) {
    case 'status':
      return createStatusAnswer(fault, { requestId, format }, answer)
    case 'slow-start':
      return { ...answer, chunks: delayFirstChunk(answer.chunks, fault.ms) }
    case 'slow-drip':
      return { ...answer, chunks: splitIntoDelayedParts(answer.chunks, fault.bytes, fault.ms) }
    case 'cut':
      return fault.insideCharacter === true
        ? cutInsideCharacter(answer, fault)
        : endAtPlace(answer, 'close', fault)
    case 'reset':
    case 'hang':
      return endAtPlace(answer, fault.type, fault)
    case 'error-event':
      return isEventStream(answer)
        ? withErrorEvent(answer, fault, format)
        : replaceByError(answer, fault, { requestId, format })
    case 'several':
      return fault.faults
        .toSorted((one, other) => FAULT_ORDER.indexOf(one.type) - FAULT_ORDER.indexOf(other.type))
        .reduce((changed, each) => applyFault(changed, each, requestId, format), answer)
  }
}

/**
 * The order in which several faults apply to one answer. Faults that replace the answer come first, then faults that
 * end it, then faults that slow it down.
 */
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

/**
 * Ends the answer at an offset. If the offset is in events and the body is not an event stream, the answer stays
 * complete and a header reports this.
 */
function endAtPlace(answer: HttpAnswer, ending: HttpAnswer['ending'], place: FaultOffset): HttpAnswer {
  const countsEvents = place.afterBytes === undefined && (place.afterEvents ?? 0) > 0
  if (countsEvents && !isEventStream(answer)) return withFaultNote(answer, 'not applied: no stream')
  const bytes = countBytesBefore(answer.chunks, place, ending === 'close' ? halfBytes : noBytes)
  const ended = endAfterBytes(answer, ending, bytes)
  const note = describeLatePlace(answer, ending, place)
  return note === null ? ended : withFaultNote(ended, note)
}

/**
 * Returns a note if the offset of a fault is beyond the end of the answer; otherwise null. A cut then removes
 * nothing, and a reset or hang happens at the end.
 */
function describeLatePlace(
  { chunks }: HttpAnswer,
  ending: HttpAnswer['ending'],
  place: FaultOffset,
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

/**
 * Cuts the answer inside a multi-byte character. If the answer has no such character, it is cut at the offset, and a
 * header reports this.
 */
function cutInsideCharacter(answer: HttpAnswer, place: FaultOffset): HttpAnswer {
  const from = countBytesBefore(answer.chunks, place, halfBytes)
  const inside = findOffsetInsideCharacter(answer.chunks, from)
  if (inside !== null) return endAfterBytes(answer, 'close', inside)
  return withFaultNote(
    endAfterBytes(answer, 'close', from),
    `cut after ${from} bytes, between characters: the answer has none of several bytes`,
  )
}

function withFaultNote(answer: HttpAnswer, note: string): HttpAnswer {
  return { ...answer, headers: { ...answer.headers, [FAULT_NOTE_HEADER]: note } }
}

/** How an API formats the errors that faults ask for. Where a fault names no error type or message, the API's own are used. */
export interface FaultErrorFormat {
  createAnswer(
    fault: Pick<StatusFault, 'status' | 'errorType' | 'message' | 'details'>,
    requestId: string,
    headers: HttpAnswer['headers'],
  ): HttpAnswer
  /** Creates the event that ends a stream. `afterEvents` is the number of events before it. */
  createEvent(fault: ErrorEventFault): string
  /**
   * Returns the HTTP status of the error response that replaces an error event if the answer is not a stream. Without
   * `errorType`: that of the API's default error.
   */
  findStatus(errorType: string | undefined): number
}

/** Identifies the request that a fault strikes, and the API that it called. */
interface StruckRequest {
  readonly requestId: string
  readonly format: FaultErrorFormat
}

const MESSAGES_ERROR_FORMAT: FaultErrorFormat = {
  createAnswer({ status, message = defaultMessage(status), details, errorType }, requestId, headers) {
    // The cast allows error types that the provider does not have. The error body has the same format for all types.
    const type = (errorType ?? findErrorTypeByStatus(status)) as ApiErrorType
    const refused = { status, type, message, ...(details === undefined ? {} : { details }) }
    return createErrorAnswer(refused, requestId, headers)
  },
  createEvent({ errorType = 'overloaded_error', message }) {
    const text = message ?? defaultMessage(findStatusByErrorType(errorType))
    const data = JSON.stringify({ type: 'error', error: { type: errorType, message: text } })
    return `event: error\ndata: ${data}\n\n`
  },
  findStatus: (errorType = 'overloaded_error') => findStatusByErrorType(errorType),
}

function createStatusAnswer(
  fault: StatusFault,
  { requestId, format }: StruckRequest,
  { headers, chunks }: HttpAnswer,
): HttpAnswer {
  const wait = fault.retryAfter === undefined ? {} : { 'retry-after': String(fault.retryAfter) }
  const { 'content-type': _type, 'cache-control': _control, ...rest } = headers
  const made = format.createAnswer(fault, requestId, { ...rest, ...wait, ...fault.headers })
  return { ...made, chunks: delayFirstChunk(made.chunks, chunks[0]?.delayMs ?? 0) }
}

const DEFAULT_MESSAGES: Readonly<Record<number, string>> = {
  400: 'There was an issue with the format or content of your request.',
  401: 'invalid x-api-key',
  402: 'There is an issue with your billing or payment information.',
  403: 'Your API key does not have permission to use the specified resource.',
  404: 'The requested resource was not found.',
  409: 'The request conflicts with the current state of the resource.',
  413: 'Request exceeds the maximum size',
  429: 'This request would exceed the rate limit for your organization. Try again later.',
  500: 'Internal server error',
  504: 'The request timed out while processing.',
  529: 'Overloaded',
}

/** Returns the message of an error response. Statuses that the provider does not document have their HTTP name. */
function defaultMessage(status: number): string {
  return DEFAULT_MESSAGES[status] ?? STATUS_CODES[status] ?? `HTTP status ${status}`
}

function delayFirstChunk(chunks: readonly BodyChunk[], ms: number): readonly BodyChunk[] {
  return chunks.map((chunk, index) => (index === 0 ? { ...chunk, delayMs: chunk.delayMs + ms } : chunk))
}

function isEventStream({ headers }: HttpAnswer): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true
}

/**
 * Inserts an `error` event and ends the stream after it. The stream's own last event is never sent before the error,
 * because clients stop reading there.
 */
function withErrorEvent(answer: HttpAnswer, fault: ErrorEventFault, format: FaultErrorFormat): HttpAnswer {
  const count = countEvents(answer.chunks)
  const afterEvents = Math.min(fault.afterEvents, Math.max(0, count - 1))
  const event = { bytes: toBytes(format.createEvent({ ...fault, afterEvents })), delayMs: 0 }
  const before = takeFirstBytes(answer.chunks, countBytesBefore(answer.chunks, { afterEvents }, noBytes))
  const struck: HttpAnswer = { ...answer, chunks: [...before, event], ending: 'close' }
  if (afterEvents === fault.afterEvents) return struck
  return withFaultNote(
    struck,
    `error after ${afterEvents} events: the answer has ${count}, and there is nothing after the last`,
  )
}

/**
 * Replaces an answer that is not an event stream by an error response, because only a stream can contain an `error`
 * event.
 */
function replaceByError(answer: HttpAnswer, fault: ErrorEventFault, struck: StruckRequest): HttpAnswer {
  const { type: _event, afterEvents: _place, ...named } = fault
  const status = struck.format.findStatus(fault.errorType)
  const error = createStatusAnswer({ type: 'status', status, ...named }, struck, answer)
  return withFaultNote(error, `status ${status} instead of an error event: the answer is no stream`)
}

// Helpers that cut an answer at a byte or slow it down, regardless of character boundaries.

type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function toBytes(chunk: string | Bytes): Bytes {
  return typeof chunk === 'string' ? encoder.encode(chunk) : chunk
}

/** Returns the chunks that make up the first `length` bytes. */
function takeFirstBytes(chunks: readonly BodyChunk[], length: number): readonly BodyChunk[] {
  let left = length
  const kept: BodyChunk[] = []
  for (const chunk of chunks) {
    if (left <= 0) break
    const bytes = toBytes(chunk.bytes).subarray(0, left)
    kept.push({ ...chunk, bytes })
    left -= bytes.length
  }
  return kept
}

/**
 * Converts an offset in an answer to a number of bytes. If no offset is given, `otherwise` computes the number from
 * the size of the answer.
 */
function countBytesBefore(
  chunks: readonly BodyChunk[],
  { afterBytes, afterEvents }: FaultOffset,
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

/** Returns the byte offset at which each event of a stream ends. The blank line after an event belongs to it. */
function findEventEnds(all: Buffer): readonly number[] {
  const ends: number[] = []
  for (let at = all.indexOf(BLANK_LINE); at >= 0; at = all.indexOf(BLANK_LINE, at + BLANK_LINE.length))
    ends.push(at + BLANK_LINE.length)
  return ends
}

/**
 * Returns a byte offset inside a multi-byte character. Uses the first such character at or after `from`, otherwise
 * the last one before `from`. Null if the answer has no such character.
 */
function findOffsetInsideCharacter(chunks: readonly BodyChunk[], from: number): number | null {
  const all = joinChunks(chunks)
  const after = all.findIndex((byte, at) => at >= from && isLeadByte(byte))
  const lead = after >= 0 ? after : all.findLastIndex((byte) => isLeadByte(byte))
  return lead < 0 ? null : lead + 1
}

/** Checks whether a byte is the first of a multi-byte UTF-8 character. */
function isLeadByte(byte: number): boolean {
  return byte >= 0xc0
}

function joinChunks(chunks: readonly BodyChunk[]): Buffer {
  return Buffer.concat(chunks.map((chunk) => toBytes(chunk.bytes)))
}

/** Splits body chunks into parts of at most `size` bytes, with a pause of `ms` milliseconds before each part. */
function splitIntoDelayedParts(chunks: readonly BodyChunk[], size: number, ms: number): readonly BodyChunk[] {
  return chunks.flatMap((chunk) => {
    const bytes = toBytes(chunk.bytes)
    const count = Math.max(1, Math.ceil(bytes.length / size))
    return Array.from({ length: count }, (_, at) => ({
      bytes: bytes.subarray(at * size, (at + 1) * size),
      delayMs: at === 0 ? chunk.delayMs + ms : ms,
    }))
  })
}
