/**
 * Errors between a client and its provider. Reads the error of a caller's own client as a typed failure: errors of the official
 * SDK and of the AI SDK, error bodies of the API, and exceptions of `fetch`. Refuses a client's request as its provider would.
 */
import type { ModelFailure } from '@tidemark/core/engine/reply'
import { isObject } from '@tidemark/core/log/json'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { sliceWholeCharacters } from '@tidemark/core/text/truncate-text'
import { classifyException, type FailedResponse } from '@tidemark/wire/failure/classify-failure'
import type { ProviderCodec } from '@tidemark/wire/providers/provider-codec'

/**
 * Converts an error of the caller's client to a typed failure. One that says nothing about the request gives the kind
 * `unknown`, which is not retried. `now`: milliseconds since 1970, for a `retry-after` header that is a date.
 */
export function classifyClientError(
  error: unknown,
  { toFailure }: Pick<ProviderCodec, 'toFailure'>,
  now: number,
): ModelFailure {
  const classify: Classifier = (response) => toFailure({ ...response, now })
  return readKnownError(error, classify, MAX_CAUSES) ?? createUnreadableFailure(error)
}

/**
 * The HTTP status for a request that is refused because a limit of money or use is reached. No SDK sends such a request again.
 */
export const LIMIT_STATUS = 402

/** Returns an error response in the shape of the client's provider. The official SDKs do not send the request again. */
export function createRefusalResponse(
  { client }: Pick<ProviderCodec, 'client'>,
  status: number,
  message: string,
): Response {
  return Response.json(client.createErrorBody(status, message), {
    status,
    headers: { 'x-should-retry': 'false' },
  })
}

type Classifier = (response: FailedResponse) => ModelFailure

/** Maximum depth of wrapped errors. Clients wrap an error a few times at most; the limit ends a chain that contains a cycle. */
const MAX_CAUSES = 5

/** Reads an error, or the error that it wraps; null if nothing in it says what happened to the request. */
function readKnownError(error: unknown, classify: Classifier, causes: number): ModelFailure | null {
  if (isModelFailure(error)) return error
  const quoted = readQuotedError(error)
  if (quoted !== null) return readResponse(quoted, classify)
  if (!isObject(error)) return null
  // Clients such as axios keep the response, with `data` for its body, under the error.
  const response =
    isObject(error.response) && error.status === undefined && error.error === undefined
      ? { ...error.response, body: error.response.data ?? error.response.body }
      : error
  const failure = readResponse(response, classify)
  if (failure !== null) return failure
  const wrapped = error.cause ?? error.lastError
  const inner = causes === 0 ? null : readKnownError(wrapped, classify, causes - 1)
  return inner ?? (isConnectionError(error) ? classifyException(error, isAbort(error)) : null)
}

/** Reads an error that has the status or the body of a response; null if it has neither. */
function readResponse(
  error: { readonly [field: string]: unknown },
  classify: Classifier,
): ModelFailure | null {
  const status = [error.status, error.statusCode].map(toStatus).find((value) => value !== undefined)
  const body = readBody(error)
  if (status === undefined && body === null) return null
  const headers = readHeaders(error.headers ?? error.responseHeaders)
  const text = body ?? (typeof error.message === 'string' ? error.message : '')
  return classify({ body: text, headers, ...(status === undefined ? {} : { status }) })
}

const CONNECTION_NAMES =
  /^(?:AbortError|TimeoutError|APIUserAbortError|APIConnectionError|APIConnectionTimeoutError)$/
const CONNECTION_CODES =
  /^(?:E(?:CONN\w+|PIPE|PROTO|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH|NETDOWN|TIMEDOUT|SOCKETTIMEDOUT)|UND_ERR_\w+|ERR_(?:STREAM|HTTP2|TLS|SSL|SOCKET|NETWORK)\w*)$/
const CONNECTION_TEXT =
  /fetch failed|failed to fetch|load failed|network|connection|socket|terminated|timed? ?out|hang up/i

/** Checks whether an exception tells of a connection that failed, was too slow or was aborted. */
function isConnectionError(error: { readonly [field: string]: unknown }): boolean {
  if (!(error instanceof Error)) return false
  const { name, code } = error as Error & { readonly code?: unknown }
  if (CONNECTION_NAMES.test(name) || CONNECTION_NAMES.test(error.constructor.name)) return true
  if (typeof code === 'string' && CONNECTION_CODES.test(code)) return true
  return CONNECTION_TEXT.test(error.message)
}

/** The failure for an error that says nothing about the request. Not retried, because the request may have been refused. */
function createUnreadableFailure(error: unknown): ModelFailure {
  const found = error instanceof Error ? `${error.name}: ${error.message}` : formatErrorValue(error)
  return {
    kind: 'unknown',
    retryable: false,
    message: `refused: ${sliceWholeCharacters(found, 0, 200)} does not say what the provider answered. Call refused again with the error that your client threw, or with the answer as { status, body }; for a connection that failed, { status: 503 }. Until then next does not return this request again.`,
  }
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

/** Returns the error body as JSON text. The SDKs keep it in different fields; a body of the API itself has `type: "error"`. */
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
