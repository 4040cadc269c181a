/**
 * API errors and HTTP answers as values. Checks return an error instead of throwing, and an answer is complete before
 * it is sent, so that a fault can change it.
 */

/** An API error: the content of the provider's error envelope, with the HTTP status and headers of the response. */
export interface ApiError {
  readonly status: number
  readonly type: ApiErrorType
  readonly message: string
  /** Additional error fields such as `error_code`, where the provider sends them. */
  readonly details?: Readonly<Record<string, unknown>>
  readonly headers?: Readonly<Record<string, string>>
}

export type ApiErrorType =
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

const ERROR_TYPE_BY_STATUS: Readonly<Record<number, ApiErrorType>> = {
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

export function findErrorTypeByStatus(status: number): ApiErrorType {
  return ERROR_TYPE_BY_STATUS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error')
}

/** Returns the HTTP status with which the provider sends an error of this type; 500 for a type it does not have. */
export function findStatusByErrorType(type: string): number {
  const found = Object.entries(ERROR_TYPE_BY_STATUS).find(([, known]) => known === type)
  return found === undefined ? 500 : Number(found[0])
}

export function createInvalidRequestError(
  message: string,
  details?: Readonly<Record<string, unknown>>,
): ApiError {
  return createApiError(400, message, details)
}

/** Creates an error with status 400 and an `error_code`, which clients use to tell errors apart. */
export function createRequestErrorWithCode(code: string, message: string): ApiError {
  return createApiError(400, message, { error_code: code })
}

export function createApiError(
  status: number,
  message: string,
  details?: Readonly<Record<string, unknown>>,
): ApiError {
  return {
    status,
    type: findErrorTypeByStatus(status),
    message,
    ...(details === undefined ? {} : { details }),
  }
}

/** The result of a check: the fields of `T`, or the API error with which the request is answered. */
export type ApiResult<T> = ({ readonly ok: true } & Readonly<T>) | Rejection

interface Rejection {
  readonly ok: false
  readonly error: ApiError
}

export function toRejection(error: ApiError): Rejection {
  return { ok: false, error }
}

/** A complete HTTP answer that has not been sent yet. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly chunks: readonly BodyChunk[]
  /** What happens to the connection after the last chunk of the body was sent. */
  readonly ending: 'close' | 'reset' | 'hang'
}

export interface BodyChunk {
  readonly bytes: string | Uint8Array<ArrayBuffer>
  /** Pause before this chunk is sent, in milliseconds. */
  readonly delayMs: number
}

export function createJsonAnswer(
  status: number,
  body: string,
  headers: HttpAnswer['headers'] = {},
): HttpAnswer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    chunks: [{ bytes: body, delayMs: 0 }],
    ending: 'close',
  }
}

/** Creates the HTTP answer for an API error. The error's own headers override `headers`. */
export function createErrorAnswer(
  error: ApiError,
  requestId: string,
  headers: HttpAnswer['headers'] = {},
): HttpAnswer {
  const { type, message, details } = error
  const body = { type: 'error', error: { type, message, ...(details && { details }) }, request_id: requestId }
  return createJsonAnswer(error.status, JSON.stringify(body), { ...headers, ...error.headers })
}
