import {
  type Answer,
  type AnswerPiece,
  type ErrorType,
  errorAnswer,
  errorTypeOf,
} from '../protocol/answer.ts'

/**
 * What can go wrong with an answer, as data. A fault comes with the reply of a script, with a request header
 * or from the control endpoint; whichever way, it is applied to the finished answer, just before it is sent.
 */
export type Fault =
  | StatusFault
  /** Nothing for `ms`, then the answer. Cache entries become visible only when it begins. */
  | { readonly type: 'slow-start'; readonly ms: number }
  /** `bytes` at a time, `ms` apart. */
  | { readonly type: 'slow-drip'; readonly bytes: number; readonly ms: number }
  /** The connection closes cleanly at the place, half-way where none is given, or inside a character near it. */
  | ({ readonly type: 'cut'; readonly insideCharacter?: boolean } & FaultPlace)
  | ErrorEventFault
  /** The connection is torn down at the place, before the first byte where none is given. */
  | ({ readonly type: 'reset' } & FaultPlace)
  /** Nothing more from the place on, and no end either, until the client gives up. */
  | ({ readonly type: 'hang' } & FaultPlace)
  /** All of them on one answer: slow and then cut, say. */
  | { readonly type: 'several'; readonly faults: readonly Fault[] }

/** An error instead of the answer: 429, 500, 529, 413 … `retryAfter` in seconds. */
export interface StatusFault {
  readonly type: 'status'
  readonly status: number
  readonly errorType?: string
  readonly message?: string
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly details?: Readonly<Record<string, unknown>>
}

/** An `error` event after so many events of the stream, and then the end. */
export interface ErrorEventFault {
  readonly type: 'error-event'
  readonly afterEvents: number
  readonly errorType?: string
  readonly message?: string
}

/** Where in an answer: after so many bytes, or after so many events of the stream. Bytes win where both are given. */
export interface FaultPlace {
  readonly afterBytes?: number
  readonly afterEvents?: number
}

// A fault laid over a finished answer. The answer of a fault is an answer like any other.

/** Says what was done where it is not what was asked for to the letter. */
export const APPLIED_HEADER = 'x-simulator-fault-applied'

export function applyFault(answer: Answer, fault: Fault, requestId: string): Answer {
  switch (fault.type) {
    case 'status':
      return statusAnswer(fault, requestId, answer)
    case 'slow-start':
      return { ...answer, pieces: delayFirst(answer.pieces, fault.ms) }
    case 'slow-drip':
      return { ...answer, pieces: dripped(answer.pieces, fault.bytes, fault.ms) }
    case 'cut':
      return fault.insideCharacter === true ? cutCharacter(answer, fault) : endedAt(answer, 'close', fault)
    case 'reset':
    case 'hang':
      return endedAt(answer, fault.type, fault)
    case 'error-event':
      return isStream(answer) ? withError(answer, fault) : errorInstead(answer, fault, requestId)
    case 'several':
      return inOrder(fault.faults).reduce((made, each) => applyFault(made, each, requestId), answer)
  }
}

/** What replaces the answer first, what ends it next, what only slows it last. */
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

function inOrder(faults: readonly Fault[]): readonly Fault[] {
  return faults.toSorted((one, other) => ORDER.indexOf(one.type) - ORDER.indexOf(other.type))
}

const half = (total: number): number => Math.floor(total / 2)
const nothing = (): number => 0

function placeIn(answer: Answer, place: FaultPlace, otherwise: (total: number) => number): number {
  return bytesBefore(answer.pieces, place, otherwise)
}

/** Only a stream has events to count. */
function endedAt(answer: Answer, ending: Answer['ending'], place: FaultPlace): Answer {
  const countsEvents = place.afterBytes === undefined && (place.afterEvents ?? 0) > 0
  if (countsEvents && !isStream(answer)) return noted(answer, 'not applied: no stream')
  const ended = endAt(answer, ending, placeIn(answer, place, ending === 'close' ? half : nothing))
  const note = noteBehind(answer, ending, place)
  return note === null ? ended : noted(ended, note)
}

/** What to say of a place at or behind the end: a cut has nothing to take away there, the others strike late. */
function noteBehind({ pieces }: Answer, ending: Answer['ending'], place: FaultPlace): string | null {
  const { afterBytes, afterEvents = 0 } = place
  const isBytes = afterBytes !== undefined
  const [asked, count] = isBytes ? [afterBytes, byteCount(pieces)] : [afterEvents, eventCount(pieces)]
  const unit = isBytes ? 'bytes' : 'events'
  if (asked === 0 || asked < count) return null
  if (ending === 'close') return `not applied: the answer ends after ${count} ${unit}`
  return asked === count ? null : `${ending} at the end: the answer has only ${count} ${unit}`
}

function endAt(answer: Answer, ending: Answer['ending'], bytes: number): Answer {
  return { ...answer, pieces: firstPieces(answer.pieces, bytes), ending }
}

/** None is put in where there is none: the answer is then cut at the place, and the header says so. */
function cutCharacter(answer: Answer, place: FaultPlace): Answer {
  const from = placeIn(answer, place, half)
  const inside = insideCharacter(answer.pieces, from)
  if (inside !== null) return endAt(answer, 'close', inside)
  return noted(
    endAt(answer, 'close', from),
    `cut after ${from} bytes, between characters: the answer has none of several bytes`,
  )
}

function noted(answer: Answer, note: string): Answer {
  return { ...answer, headers: { ...answer.headers, [APPLIED_HEADER]: note } }
}

function statusAnswer(fault: StatusFault, requestId: string, { headers, pieces }: Answer): Answer {
  const { status, message = defaultMessage(status), details, retryAfter } = fault
  // Scripts may play an error that no provider has; the envelope is the same.
  const type = (fault.errorType ?? errorTypeOf(status)) as ErrorType
  const refused = { status, type, message, ...(details === undefined ? {} : { details }) }
  const wait = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) }
  const { 'content-type': _type, 'cache-control': _control, ...rest } = headers
  const made = errorAnswer(refused, requestId, { ...rest, ...wait, ...fault.headers })
  return { ...made, pieces: delayFirst(made.pieces, pieces[0]?.delayMs ?? 0) }
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

function delayFirst(pieces: readonly AnswerPiece[], ms: number): readonly AnswerPiece[] {
  return pieces.map((piece, index) => (index === 0 ? { ...piece, delayMs: piece.delayMs + ms } : piece))
}

function isStream({ headers }: Answer): boolean {
  return headers['content-type']?.startsWith('text/event-stream') === true
}

/** Never behind the last event: a client that has seen the end reads no further. */
function withError(answer: Answer, fault: ErrorEventFault): Answer {
  const { errorType = 'overloaded_error', message = 'Overloaded' } = fault
  const count = eventCount(answer.pieces)
  const afterEvents = Math.min(fault.afterEvents, Math.max(0, count - 1))
  const data = JSON.stringify({ type: 'error', error: { type: errorType, message } })
  const event = { bytes: bytesOf(`event: error\ndata: ${data}\n\n`), delayMs: 0 }
  const before = firstPieces(answer.pieces, placeIn(answer, { afterEvents }, nothing))
  const struck: Answer = { ...answer, pieces: [...before, event], ending: 'close' }
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

/** A body has no events: the error takes its place. */
function errorInstead(answer: Answer, fault: ErrorEventFault, requestId: string): Answer {
  const { errorType = 'overloaded_error', message } = fault
  const status = STATUS_BY_TYPE[errorType] ?? 500
  const said = message === undefined ? {} : { message }
  const made = statusAnswer({ type: 'status', status, errorType, ...said }, requestId, answer)
  return noted(made, `status ${status} instead of an error event: the answer is no stream`)
}

// Answers cut and slowed byte by byte, without a care for characters.

type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function bytesOf(piece: string | Bytes): Bytes {
  return typeof piece === 'string' ? encoder.encode(piece) : piece
}

/** The pieces up to the first `length` bytes; whole where there are no more. */
export function firstPieces(pieces: readonly AnswerPiece[], length: number): readonly AnswerPiece[] {
  let left = length
  const kept: AnswerPiece[] = []
  for (const piece of pieces) {
    if (left <= 0) break
    const bytes = bytesOf(piece.bytes).subarray(0, left)
    kept.push({ ...piece, bytes })
    left -= bytes.length
  }
  return kept
}

/** How many bytes lie before the place; `otherwise` of them where it is not said. */
export function bytesBefore(
  pieces: readonly AnswerPiece[],
  { afterBytes, afterEvents }: FaultPlace,
  otherwise: (total: number) => number,
): number {
  const all = wholeOf(pieces)
  if (afterBytes !== undefined) return Math.min(afterBytes, all.length)
  if (afterEvents === undefined) return otherwise(all.length)
  return afterEvents === 0 ? 0 : (eventEnds(all)[afterEvents - 1] ?? all.length)
}

export function byteCount(pieces: readonly AnswerPiece[]): number {
  return wholeOf(pieces).length
}

export function eventCount(pieces: readonly AnswerPiece[]): number {
  return eventEnds(wholeOf(pieces)).length
}

const BLANK_LINE = Buffer.from('\n\n')

/** Where the events of a stream end, each with its empty line. */
function eventEnds(all: Buffer): readonly number[] {
  const ends: number[] = []
  for (let at = all.indexOf(BLANK_LINE); at >= 0; at = all.indexOf(BLANK_LINE, at + BLANK_LINE.length))
    ends.push(at + BLANK_LINE.length)
  return ends
}

/**
 * A place inside a character of several bytes: the first that begins at `from` or after it, else the last one
 * before. Null where the answer has no such character.
 */
export function insideCharacter(pieces: readonly AnswerPiece[], from: number): number | null {
  const all = wholeOf(pieces)
  const after = all.findIndex((byte, at) => at >= from && isLead(byte))
  const lead = after >= 0 ? after : all.findLastIndex((byte) => isLead(byte))
  return lead < 0 ? null : lead + 1
}

/** The first byte of a character that has more. */
function isLead(byte: number): boolean {
  return byte >= 0xc0
}

function wholeOf(pieces: readonly AnswerPiece[]): Buffer {
  return Buffer.concat(pieces.map((piece) => bytesOf(piece.bytes)))
}

/** Small pieces with a pause before each. */
export function dripped(pieces: readonly AnswerPiece[], size: number, ms: number): readonly AnswerPiece[] {
  return pieces.flatMap((piece) => {
    const bytes = bytesOf(piece.bytes)
    const count = Math.max(1, Math.ceil(bytes.length / size))
    return Array.from({ length: count }, (_, at) => ({
      bytes: bytes.subarray(at * size, (at + 1) * size),
      delayMs: at === 0 ? piece.delayMs + ms : ms,
    }))
  })
}
