/** A request turned down, as a value: what the provider's error envelope is made of. */
export interface Refusal {
  readonly status: number
  readonly type: ErrorType
  readonly message: string
  /** `error_code` and what goes with it, where the provider gives one. */
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

/** An invalid request with one of the codes that clients branch on. */
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

/** The body of an error response, and of an `error` event in a stream (there without the id). */
export function errorBody(refused: Refusal, requestId: string): Readonly<Record<string, unknown>> {
  const { type, message, details } = refused
  const error = details === undefined ? { type, message } : { type, message, details }
  return { type: 'error', error, request_id: requestId }
}

// An answer before it is sent: what goes over the wire, piece by piece and with what pauses. Faults change it.

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly pieces: readonly AnswerPiece[]
  /** What happens after the last piece. */
  readonly ending: 'close' | 'reset' | 'hang'
}

export interface AnswerPiece {
  readonly bytes: string | Uint8Array<ArrayBuffer>
  /** Before the piece is sent. */
  readonly delayMs: number
}

export function jsonAnswer(status: number, body: string, headers: Answer['headers'] = {}): Answer {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    pieces: [{ bytes: body, delayMs: 0 }],
    ending: 'close',
  }
}

export function errorAnswer(refused: Refusal, requestId: string, headers: Answer['headers'] = {}): Answer {
  const body = JSON.stringify(errorBody(refused, requestId))
  return jsonAnswer(refused.status, body, { ...headers, ...refused.headers })
}
