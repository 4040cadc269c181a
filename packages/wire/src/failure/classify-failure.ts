/**
 * Classifies error responses and exceptions as typed failures. Contains the rules that all providers share; each
 * provider adds rules for its own error types, codes and messages.
 */
import type { ModelFailure, ModelFailureKind } from '@tidemark/core/engine/reply'
import { isObject, omitUndefined } from '@tidemark/core/log/json'
import { type ErrorBody, readErrorBody } from './error-body.ts'
import { findPromptOverflow, isRateLimitText } from './prompt-overflow.ts'

/** HTTP headers as a plain object. */
type HttpHeaders = Readonly<Record<string, string | undefined>>

export interface FailedResponse {
  /** HTTP status; absent for an error event inside a stream. */
  readonly status?: number
  readonly body: string
  readonly headers?: HttpHeaders
  /** Current time in milliseconds since 1970. Used if `retry-after` is a date. */
  readonly now?: number
}

export interface ErrorClassifier {
  readonly provider: string
  /**
   * Returns the failure kind by the provider's own error types, codes and messages. Returns undefined if these do not
   * decide; the HTTP status is then used.
   */
  classifyError(body: ErrorBody, status: number | undefined): ModelFailureKind | undefined
}

const RETRYABLE_KINDS: ReadonlySet<ModelFailureKind> = new Set<ModelFailureKind>([
  'rate-limit',
  'overloaded',
  'server',
  'timeout',
  'network',
  'conflict',
  'bad-reply',
])

const KIND_BY_STATUS: Readonly<Record<number, ModelFailureKind>> = {
  401: 'auth',
  402: 'billing',
  403: 'permission',
  404: 'not-found',
  408: 'timeout',
  409: 'conflict',
  413: 'too-large',
  429: 'rate-limit',
  503: 'overloaded',
  504: 'timeout',
  524: 'timeout',
  529: 'overloaded',
}

/** Classifies an error response: a prompt that is too long first, then by the provider's own rules, then by status. */
export function classifyFailure(call: FailedResponse, dialect: ErrorClassifier): ModelFailure {
  const body = readErrorBody(call.body)
  const gap = findPromptOverflow({ ...call, body, provider: dialect.provider })
  const kind =
    gap === null
      ? (dialect.classifyError(body, call.status) ?? kindFromStatus(call.status, body))
      : 'overflow'
  const path = /^((?:messages|system|tools)(?:\.[\w-]+)*)(?::| )/.exec(body.message)?.[1]
  return {
    ...createFailure(
      kind,
      body.message || `The provider answered ${call.status ?? 'with an error'} and nothing else`,
    ),
    ...omitUndefined({
      status: call.status,
      gap: gap !== null && Object.keys(gap).length > 0 ? gap : undefined,
      errorType: body.type,
      errorCode: body.code,
      details: body.details,
      path,
    }),
    ...readFailureHeaders(call, body),
  }
}

/** Creates a failure that has no error response, such as a network failure. */
export function createFailure(kind: ModelFailureKind, message: string): ModelFailure {
  return { kind, retryable: RETRYABLE_KINDS.has(kind), message }
}

function kindFromStatus(status: number | undefined, body: ErrorBody): ModelFailureKind {
  const known = status === undefined ? undefined : KIND_BY_STATUS[status]
  const vague = known === undefined || known === 'too-large'
  if (vague && isRateLimitText(`${body.type ?? ''} ${body.message}`)) return 'rate-limit'
  if (known !== undefined) return known
  if (status === undefined) return 'unknown'
  return status >= 500 ? 'server' : status >= 400 ? 'invalid-request' : 'unknown'
}

function readFailureHeaders({ headers = {}, now }: FailedResponse, body: ErrorBody): Partial<ModelFailure> {
  const requestId = body.requestId ?? readHeader(headers, 'request-id') ?? readHeader(headers, 'x-request-id')
  return omitUndefined({
    retryAfterMs: readRetryAfterMs(headers, now),
    retryable: readShouldRetry(headers),
    requestId,
  })
}

/**
 * Returns the milliseconds to wait before a retry, from `retry-after-ms`, else from `retry-after` in seconds or as a
 * date. A date is compared to `now`, else to the response's `date` header, and is ignored if both are missing.
 */
export function readRetryAfterMs(headers: HttpHeaders, now?: number): number | undefined {
  const exact = parseAmount(readHeader(headers, 'retry-after-ms'))
  if (exact !== undefined) return exact
  const value = readHeader(headers, 'retry-after')
  const seconds = parseAmount(value)
  return seconds === undefined
    ? msUntilDate(value, now ?? parseDate(readHeader(headers, 'date')))
    : seconds * 1000
}

/**
 * Returns the value of the `x-should-retry` header, which overrides the default rules; undefined if it is absent or
 * neither `true` nor `false`.
 */
export function readShouldRetry(headers: HttpHeaders): boolean | undefined {
  const value = readHeader(headers, 'x-should-retry')?.trim().toLowerCase()
  return value === 'true' ? true : value === 'false' ? false : undefined
}

function parseAmount(value: string | undefined): number | undefined {
  if (value === undefined || !/^\s*\d+(?:\.\d+)?\s*$/.test(value)) return undefined
  return Number(value)
}

function msUntilDate(value: string | undefined, from: number | undefined): number | undefined {
  const at = parseDate(value)
  return at === undefined || from === undefined ? undefined : Math.max(0, at - from)
}

function parseDate(value: string | undefined): number | undefined {
  const at = value === undefined ? Number.NaN : Date.parse(value)
  return Number.isNaN(at) ? undefined : at
}

const TIMEOUT_CODES = /^(?:ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)$/

/** Messages of `fetch` for an address to which it never sends a request, such as one with the port of another service. */
const REFUSED_BY_FETCH = /^(?:bad port|unknown scheme|invalid url|failed to parse url.*)$/i

/**
 * Converts an exception of `fetch` to a failure: network, timeout or aborted. Pass `aborted` as true if the caller's
 * own signal was aborted, because the exception for this differs between platforms.
 */
export function classifyException(thrown: unknown, aborted = false): ModelFailure {
  const chain = listCauses(thrown)
  const message = chain.map(readMessage).find((text) => text !== '') ?? 'The connection failed'
  if (aborted || chain.some((each) => readName(each) === 'AbortError'))
    return createFailure('aborted', message)
  const codes = chain.flatMap(readCodes)
  const late =
    codes.some((code) => TIMEOUT_CODES.test(code)) || chain.some((each) => readName(each) === 'TimeoutError')
  return {
    ...createFailure(late ? 'timeout' : 'network', message),
    ...(REFUSED_BY_FETCH.test(message) ? { retryable: false } : {}),
    ...omitUndefined({ errorCode: codes[0] }),
  }
}

/**
 * Returns an error and all its causes, innermost first. Platforms wrap the real cause in an error such as "fetch
 * failed".
 */
function listCauses(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (
    let each = thrown;
    each !== undefined && chain.length < 5;
    each = isObject(each) ? each.cause : undefined
  )
    chain.unshift(each)
  return chain
}

function readMessage(each: unknown): string {
  if (typeof each === 'string') return each
  return isObject(each) && typeof each.message === 'string' ? each.message : ''
}

function readName(each: unknown): string {
  return isObject(each) && typeof each.name === 'string' ? each.name : ''
}

function readCodes(each: unknown): readonly string[] {
  return isObject(each) && typeof each.code === 'string' ? [each.code] : []
}

/** Returns the value of a header. `name` must be lower case; the keys of `headers` may have any case. */
function readHeader(headers: HttpHeaders, name: string): string | undefined {
  const exact = headers[name]
  if (exact !== undefined) return exact
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
}
