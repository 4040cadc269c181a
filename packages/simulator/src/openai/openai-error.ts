/**
 * Errors of OpenAI's APIs as values: `{ error: { message, type, param, code } }` with a status, or an event that ends a
 * stream. Checks return them instead of throwing.
 */
import { STATUS_CODES } from 'node:http'
import type { FaultErrorFormat } from '../faults/fault.ts'
import { createJsonAnswer, type HttpAnswer } from '../protocol/answer.ts'

export interface OpenaiError {
  readonly status: number
  readonly type: string
  readonly message: string
  /** The parameter at fault, such as `input[2].id`; null if none is named. */
  readonly param: string | null
  readonly code: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** Further fields of the error, which some servers send. */
  readonly extra?: Readonly<Record<string, unknown>>
}

export type OpenaiResult<T> = ({ readonly ok: true } & Readonly<T>) | OpenaiRefusal

interface OpenaiRefusal {
  readonly ok: false
  readonly error: OpenaiError
}

export function toOpenaiRefusal(error: OpenaiError): OpenaiRefusal {
  return { ok: false, error }
}

export function createOpenaiError(
  status: number,
  message: string,
  fields: Partial<Pick<OpenaiError, 'type' | 'param' | 'code' | 'headers' | 'extra'>> = {},
): OpenaiError {
  return { status, message, type: findErrorType(status), param: null, code: null, ...fields }
}

/** Creates an error with status 400. `param`: the parameter at fault; null if none is named. */
export function createParameterError(
  message: string,
  param: string | null,
  code: string | null = null,
): OpenaiError {
  return createOpenaiError(400, message, { param, code })
}

function findErrorType(status: number): string {
  if (status === 429) return 'rate_limit_error'
  return status < 500 ? 'invalid_request_error' : 'server_error'
}

/** Returns what the field `error` of a body or of an event contains. */
export function toErrorFields({ message, type, param, code, extra }: OpenaiError): object {
  return { message, type, param, code, ...extra }
}

export function createOpenaiErrorAnswer(error: OpenaiError, headers: HttpAnswer['headers']): HttpAnswer {
  const body = JSON.stringify({ error: toErrorFields(error) })
  return createJsonAnswer(error.status, body, { ...headers, ...error.headers })
}

/** Creates the `error` event of a Responses stream. The error is in a field of the event, as the provider sends it. */
function createResponsesErrorEvent(error: OpenaiError, sequenceNumber: number): string {
  const data = { type: 'error', error: toErrorFields(error), sequence_number: sequenceNumber }
  return `event: error\ndata: ${JSON.stringify(data)}\n\n`
}

const DEFAULT_MESSAGES: Readonly<Record<number, string>> = {
  400: 'We could not parse the JSON body of your request.',
  401: 'Incorrect API key provided.',
  403: 'You are not allowed to use this resource.',
  404: 'The requested resource was not found.',
  429: 'Rate limit reached. Please try again later.',
  500: 'The server had an error while processing your request. Sorry about that!',
  503: 'The server is overloaded or not ready yet.',
}

const DEFAULT_CODES: Readonly<Record<number, string>> = {
  401: 'invalid_api_key',
  429: 'rate_limit_exceeded',
  500: 'server_error',
  503: 'server_is_overloaded',
}

/** Creates the error that a fault asks for. The fault's `errorType` becomes the `code`, by which clients distinguish errors. */
function createFaultError(fault: {
  readonly status: number
  readonly errorType?: string
  readonly message?: string
  readonly details?: Readonly<Record<string, unknown>>
}): OpenaiError {
  const { status, details } = fault
  const message = fault.message ?? DEFAULT_MESSAGES[status] ?? STATUS_CODES[status] ?? `HTTP status ${status}`
  const code = fault.errorType ?? DEFAULT_CODES[status] ?? null
  return createOpenaiError(status, message, { code, ...(details === undefined ? {} : { extra: details }) })
}

const STATUS_BY_CODE: Readonly<Record<string, number>> = {
  context_length_exceeded: 400,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  server_is_overloaded: 503,
}

function findCodeStatus(code = 'server_error'): number {
  return STATUS_BY_CODE[code] ?? 500
}

/** How faults are formatted on `/v1/responses`. */
export const RESPONSES_ERROR_FORMAT: FaultErrorFormat = {
  createAnswer: (fault, _requestId, headers) => createOpenaiErrorAnswer(createFaultError(fault), headers),
  createEvent: (fault) =>
    createResponsesErrorEvent(
      createFaultError({ ...fault, status: findCodeStatus(fault.errorType) }),
      fault.afterEvents,
    ),
  findStatus: findCodeStatus,
}

/** How faults are formatted on `/v1/chat/completions`. */
export const CHAT_ERROR_FORMAT: FaultErrorFormat = {
  ...RESPONSES_ERROR_FORMAT,
  createEvent: (fault) => {
    const error = createFaultError({ ...fault, status: findCodeStatus(fault.errorType) })
    return `data: ${JSON.stringify({ error: toErrorFields(error) })}\n\n`
  },
}
