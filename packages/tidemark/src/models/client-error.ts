/**
 * Reads the error of a caller's own client as a typed failure: errors of the official SDK and of the AI SDK, error
 * bodies of the API, and exceptions of `fetch`.
 */
import { isObject, type ModelFailure } from '@tidemark/core'
import { failureFromException, toAnthropicFailure } from '@tidemark/wire'

/** `now`: the current time in milliseconds since 1970, for a `retry-after` header that is a date. */
export function readClientError(error: unknown, now: number): ModelFailure {
  if (isModelFailure(error)) return error
  const quoted = readQuotedError(error)
  if (quoted !== null) return readClientError(quoted, now)
  if (!isObject(error)) return failureFromException(error)
  // Clients such as axios keep the response, with `data` for its body, under the error.
  if (isObject(error.response) && error.status === undefined && error.error === undefined)
    return readClientError({ ...error.response, body: error.response.data ?? error.response.body }, now)
  const status = [error.status, error.statusCode].map(toStatus).find((value) => value !== undefined)
  const body = readBody(error)
  if (status === undefined && body === null) return failureFromException(error, isAbort(error))
  const headers = readHeaders(error.headers ?? error.responseHeaders)
  const text = body ?? (typeof error.message === 'string' ? error.message : '')
  return toAnthropicFailure({ body: text, headers, now, ...(status === undefined ? {} : { status }) })
}

function isModelFailure(error: unknown): error is ModelFailure {
  if (!isObject(error)) return false
  const { kind, retryable, message } = error
  return typeof kind === 'string' && typeof retryable === 'boolean' && typeof message === 'string'
}

/** Returns the status and body that a text or a plain `Error` quotes, as in `400 {"type":"error",…}`; null if none. */
function readQuotedError(error: unknown): { readonly status?: number; readonly body: string } | null {
  const isPlain = error instanceof Error && error.constructor === Error && !('status' in error)
  const text = typeof error === 'string' ? error : isPlain ? error.message : ''
  const [, status, body] = /^\D{0,40}(\d{3})?\D{0,10}?(\{"type":\s*"error".*\})\s*$/s.exec(text) ?? []
  if (body === undefined) return null
  return status === undefined ? { body } : { status: Number(status), body }
}

function toStatus(value: unknown): number | undefined {
  const status = typeof value === 'string' && /^\d{3}$/.test(value) ? Number(value) : value
  return typeof status === 'number' ? status : undefined
}

/** The SDK reports an abort by the caller under a name of its own. */
function isAbort(error: object): boolean {
  return error.constructor?.name === 'APIUserAbortError'
}

/** Returns the error body as JSON text. The SDKs keep it under different names; the API's own has `type: "error"`. */
function readBody(error: { readonly [field: string]: unknown }): string | null {
  if (error.type === 'error' && isObject(error.error)) return JSON.stringify(error)
  for (const body of [error.error, error.responseBody, error.body]) {
    if (typeof body === 'string') return body
    if (isObject(body)) return JSON.stringify(body)
  }
  return null
}

function readHeaders(headers: unknown): Readonly<Record<string, string>> {
  if (headers instanceof Headers) return Object.fromEntries(headers)
  if (!isObject(headers)) return {}
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}
