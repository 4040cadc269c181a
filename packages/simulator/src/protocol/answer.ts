/**
 * API errors and HTTP answers as values. Checks return an error instead of throwing; an answer is complete
 * before it is sent, so that a fault can change it.
 */

/** The content of the provider's error envelope, with the status and headers it is sent with. */
export interface Refusal {
  readonly status: number
  readonly type: ErrorType
  readonly message: string
  /** `error_code` and related fields, where the provider sends them. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'billing_error'
  | 'permission_error'
  | 'not_found_error'
  | 'conflict_error'
  | 'request_too_large'
  | 'rate_limit_error'
  | 'api_error'
  | 'timeout_error'
  | 'overloaded_error'

const TYPE_BY_STATUS: Readonly<Record<number, ErrorType>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  500: 'api_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

export function errorTypeOf(status: number): ErrorType {
  return TYPE_BY_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

export function invalid(message: string, details?: Readonly<Record<string, unknown>>): Refusal {
  return refusal(400, message, details)
}

/** Status 400 with an `error_code` that clients branch on. */
export function coded(code: string, message: string): Refusal {
  return refusal(400, message, { error_code: code })
}

export function refusal(
  status: number,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): Refusal {
  return { status, type: errorTypeOf(status), message, ...(details === undefined ? {} : { details }) }
}

/** The outcome of a check or a step: its value, or the error that the request is answered with. */
export type ApiResult<T> = ({ readonly ok: true } & Readonly<T>) | Rejection

interface Rejection {
  readonly ok: false
  readonly error: Refusal
}

export function reject(error: Refusal): Rejection {
  return { ok: false, error }
}

/** A complete HTTP answer that has not been sent yet. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: readonly AnswerPiece[]
  /** What the connection does after the last chunk. */
  readonly ending: 'close' | 'reset' | 'hang'
}

export interface AnswerPiece {
  readonly bytes: string | Uint8Array<ArrayBuffer>
  /** Pause before the chunk is sent. */
  readonly delayMs: number
}

export function jsonAnswer(status: number, body: string, headers: Answer['headers'] = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    chunks: [{ bytes: body, delayMs: 0 }],
    ending: 'close',
  }
}

/** The error as a response. The headers of the error win over those given. */
export function errorAnswer(error: Refusal, requestId: string, headers: Answer['headers'] = {}): Answer {
  const { type, message, details } = error
  const body = { type: 'error', error: { type, message, ...(details && { details }) }, request_id: requestId }
  return jsonAnswer(error.status, JSON.stringify(body), { ...headers, ...error.headers })
}
