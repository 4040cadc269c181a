/** Faults: what can go wrong with an answer, as data, and how it changes the finished answer before it is sent. */
import {
  type Answer,
  type AnswerPiece,
  type ErrorType,
  errorAnswer,
  errorTypeOf,
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
export const APPLIED_HEADER = 'x-simulator-fault-applied'

/** The answer with the fault applied. A fault that cannot be applied leaves a note in `x-simulator-fault-applied`. */
export function applyFault(answer: Answer, fault: Fault, requestId: string): Answer {
  switch (fault.type) {
    case 'status':
      return statusAnswer(fault, requestId, answer)
    case 'slow-start':
      return { ...answer, chunks: delayFirst(answer.chunks, fault.ms) }
    case 'slow-drip':
      return { ...answer, chunks: dripped(answer.chunks, fault.bytes, fault.ms) }
    case 'cut':
      return fault.insideCharacter === true ? cutCharacter(answer, fault) : endedAt(answer, 'close', fault)
    case 'reset':
    case 'hang':
      return endedAt(answer, fault.type, fault)
    case 'error-event':
      return isStream(answer) ? withError(answer, fault) : errorInstead(answer, fault, requestId)
    case 'several':
      return fault.faults
        .toSorted((one, other) => ORDER.indexOf(one.type) - ORDER.indexOf(other.type))
        .reduce((changed, each) => applyFault(changed, each, requestId), answer)
  }
}

/** Faults that replace the answer come first, then those that end it, then those that slow it down. */
const ORDER: readonly Fault['type'][] = [
  'several',
  'status',
  'error-event',
  'cut',
  'reset',
  'hang',
  'slow-drip',
  'slow-start',
]

const half = (total: number): number => Math.floor(total / 2)
const nothing = (): number => 0

/** A place counted in events cannot be applied to a body that is not a stream. */
function endedAt(answer: Answer, ending: Answer['ending'], place: FaultPlace): Answer {
  const countsEvents = place.afterBytes === undefined && (place.afterEvents ?? 0) > 0
  if (countsEvents && !isStream(answer)) return noted(answer, 'not applied: no stream')
  const bytes = bytesBefore(answer.chunks, place, ending === 'close' ? half : nothing)
  const ended = endAt(answer, ending, bytes)
  const note = noteBehind(answer, ending, place)
  return note === null ? ended : noted(ended, note)
}

/** The note for a place at or after the end, where a cut removes nothing and the other faults come at the end. */
function noteBehind({ chunks }: Answer, ending: Answer['ending'], place: FaultPlace): string | null {
  const { afterBytes, afterEvents = 0 } = place
  const isBytes = afterBytes !== undefined
  const [asked, count] = isBytes ? [afterBytes, byteCount(chunks)] : [afterEvents, eventCount(chunks)]
  const unit = isBytes ? 'bytes' : 'events'
  if (asked === 0 || asked < count) return null
  if (ending === 'close') return `not applied: the answer ends after ${count} ${unit}`
  return asked === count ? null : `${ending} at the end: the answer has only ${count} ${unit}`
}

function endAt(answer: Answer, ending: Answer['ending'], bytes: number): Answer {
  return { ...answer, chunks: firstPieces(answer.chunks, bytes), ending }
}

/** If the answer has no multi-byte character it is cut at the place, and the header says so. */
function cutCharacter(answer: Answer, place: FaultPlace): Answer {
  const from = bytesBefore(answer.chunks, place, half)
  const inside = insideCharacter(answer.chunks, from)
  if (inside !== null) return endAt(answer, 'close', inside)
  return noted(
    endAt(answer, 'close', from),
    `cut after ${from} bytes, between characters: the answer has none of several bytes`,
  )
}

function noted(answer: Answer, note: string): Answer {
  return { ...answer, headers: { ...answer.headers, [APPLIED_HEADER]: note } }
}

function statusAnswer(fault: StatusFault, requestId: string, { headers, chunks }: Answer): Answer {
  const { status, message = defaultMessage(status), details, retryAfter } = fault
  // A script may use an error type that the provider does not have; the envelope is the same.
  const type = (fault.errorType ?? errorTypeOf(status)) as ErrorType
  const refused = { status, type, message, ...(details === undefined ? {} : { details }) }
  const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  const { 'content-type': _type, 'cache-control': _control, ...rest } = headers
  const made = errorAnswer(refused, requestId, { ...rest, ...wait, ...fault.headers })
  return { ...made, chunks: delayFirst(made.chunks, chunks[0]?.delayMs ?? 0) }
}

const MESSAGES: Readonly<Record<number, string>> = {
  413: 'Request exceeds the maximum size',
  429: 'This request would exceed the rate limit for your organization. Try again later.',
  500: 'Internal server error',
  529: 'Overloaded',
}

function defaultMessage(status: number): string {
  return MESSAGES[status] ?? 'Error'
}

function delayFirst(chunks: readonly AnswerPiece[], ms: number): readonly AnswerPiece[] {
  return chunks.map((chunk, index) => (index === 0 ? { ...chunk, delayMs: chunk.delayMs + ms } : chunk))
}

function isStream({ headers }: Answer): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true
}

/** Never after the last event: a client that has received the end stops reading. */
function withError(answer: Answer, fault: ErrorEventFault): Answer {
  const { errorType = 'overloaded_error', message = 'Overloaded' } = fault
  const count = eventCount(answer.chunks)
  const afterEvents = Math.min(fault.afterEvents, Math.max(0, count - 1))
  const data = JSON.stringify({ type: 'error', error: { type: errorType, message } })
  const event = { bytes: bytesOf(`event: error\ndata: ${data}\n\n`), delayMs: 0 }
  const before = firstPieces(answer.chunks, bytesBefore(answer.chunks, { afterEvents }, nothing))
  const struck: Answer = { ...answer, chunks: [...before, event], ending: 'close' }
  if (afterEvents === fault.afterEvents) return struck
  return noted(
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
function errorInstead(answer: Answer, fault: ErrorEventFault, requestId: string): Answer {
  const { errorType = 'overloaded_error', message } = fault
  const status = STATUS_BY_TYPE[errorType] ?? 500
  const fields = message === undefined ? {} : { message }
  const error = statusAnswer({ type: 'status', status, errorType, ...fields }, requestId, answer)
  return noted(error, `status ${status} instead of an error event: the answer is no stream`)
}

// Cutting and slowing an answer at the level of bytes, regardless of characters.

type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function bytesOf(chunk: string | Bytes): Bytes {
  return typeof chunk === 'string' ? encoder.encode(chunk) : chunk
}

/** The chunks that make up the first `length` bytes. */
function firstPieces(chunks: readonly AnswerPiece[], length: number): readonly AnswerPiece[] {
  let left = length
  const kept: AnswerPiece[] = []
  for (const chunk of chunks) {
    if (left <= 0) break
    const bytes = bytesOf(chunk.bytes).subarray(0, left)
    kept.push({ ...chunk, bytes })
    left -= bytes.length
  }
  return kept
}

/** The number of bytes before the place; `otherwise` computes it if no place is given. */
function bytesBefore(
  chunks: readonly AnswerPiece[],
  { afterBytes, afterEvents }: FaultPlace,
  otherwise: (total: number) => number,
): number {
  const all = wholeOf(chunks)
  if (afterBytes !== undefined) return Math.min(afterBytes, all.length)
  if (afterEvents === undefined) return otherwise(all.length)
  return afterEvents === 0 ? 0 : (eventEnds(all)[afterEvents - 1] ?? all.length)
}

function byteCount(chunks: readonly AnswerPiece[]): number {
  return wholeOf(chunks).length
}

function eventCount(chunks: readonly AnswerPiece[]): number {
  return eventEnds(wholeOf(chunks)).length
}

const BLANK_LINE = Buffer.from('\n\n')

/** The offsets at which the events of a stream end, each with its empty line. */
function eventEnds(all: Buffer): readonly number[] {
  const ends: number[] = []
  for (let at = all.indexOf(BLANK_LINE); at >= 0; at = all.indexOf(BLANK_LINE, at + BLANK_LINE.length))
    ends.push(at + BLANK_LINE.length)
  return ends
}

/**
 * An offset inside a multi-byte character: the first that begins at `from` or later, otherwise the last one before.
 * Null if the answer has no such character.
 */
export function insideCharacter(chunks: readonly AnswerPiece[], from: number): number | null {
  const all = wholeOf(chunks)
  const after = all.findIndex((byte, at) => at >= from && isLead(byte))
  const lead = after >= 0 ? after : all.findLastIndex((byte) => isLead(byte))
  return lead < 0 ? null : lead + 1
}

/** The first byte of a multi-byte character. */
function isLead(byte: number): boolean {
  return byte >= 0xc0
}

function wholeOf(chunks: readonly AnswerPiece[]): Buffer {
  return Buffer.concat(chunks.map((chunk) => bytesOf(chunk.bytes)))
}

/** The same bytes in chunks of `size`, with a pause before each. */
export function dripped(chunks: readonly AnswerPiece[], size: number, ms: number): readonly AnswerPiece[] {
  return chunks.flatMap((chunk) => {
    const bytes = bytesOf(chunk.bytes)
    const count = Math.max(1, Math.ceil(bytes.length / size))
    return Array.from({ length: count }, (_, at) => ({
      bytes: bytes.subarray(at * size, (at + 1) * size),
      delayMs: at === 0 ? chunk.delayMs + ms : ms,
    }))
  })
}
