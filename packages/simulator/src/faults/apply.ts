/** A fault laid over a finished answer. The answer of a fault is an answer like any other. */
import { type ErrorType, errorTypeOf } from '../refusal.ts'
import { type Answer, type AnswerPiece, errorAnswer } from '../server/answer.ts'
import {
  byteCount,
  bytesBefore,
  bytesOf,
  dripped,
  eventCount,
  firstPieces,
  insideCharacter,
} from './bytes.ts'
import type { ErrorEventFault, Fault, FaultPlace, StatusFault } from './fault.ts'

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
