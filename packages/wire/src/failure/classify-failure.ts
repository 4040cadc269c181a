/**
 * An error response or an exception as a typed failure. What all providers share is here; a provider adds its own error
 * types, codes and messages.
 */
import { type Failure, type FailureKind, isObject } from '@tidemark/core'
import { type Headers, header } from '../http/http-headers.ts'
import { given } from '../optional-fields.ts'
import { type ErrorBody, readErrorBody } from './error-body.ts'
import { findOverflow, isAboutRate } from './overflow.ts'

export interface FailedCall {
  /** Absent for an error event inside a stream. */
  readonly status?: number
  readonly body: string
  readonly headers?: Headers
  /** Milliseconds since 1970, to measure a `retry-after` date from. */
  readonly now?: number
}

export interface Dialect {
  readonly provider: string
  /** The kind by the provider's own types, codes and messages; undefined if the status has to decide. */
  kindOf(body: ErrorBody, status: number | undefined): FailureKind | undefined
}

const RETRYABLE: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'rate-limit',
  'overloaded',
  'server',
  'timeout',
  'network',
  'conflict',
  'bad-reply',
])

const BY_STATUS: Readonly<Record<number, FailureKind>> = {
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

export function classify(call: FailedCall, dialect: Dialect): Failure {
  const body = readErrorBody(call.body)
  const gap = findOverflow({ ...call, body, provider: dialect.provider })
  const kind =
    gap === null ? (dialect.kindOf(body, call.status) ?? kindOfStatus(call.status, body)) : 'overflow'
  const path = /^((?:messages|system|tools)(?:\.[\w-]+)*)(?::| )/.exec(body.message)?.[1]
  return {
    ...failure(
      kind,
      body.message || `The provider answered ${call.status ?? 'with an error'} and nothing else`,
    ),
    ...given({
      status: call.status,
      gap: gap !== null && Object.keys(gap).length > 0 ? gap : undefined,
      errorType: body.type,
      errorCode: body.code,
      details: body.details,
      path,
    }),
    ...fromHeaders(call, body),
  }
}

/** A failure that is not based on a response. */
export function failure(kind: FailureKind, message: string): Failure {
  return { kind, retryable: RETRYABLE.has(kind), message }
}

function kindOfStatus(status: number | undefined, body: ErrorBody): FailureKind {
  const known = status === undefined ? undefined : BY_STATUS[status]
  const vague = known === undefined || known === 'too-large'
  if (vague && isAboutRate(`${body.type ?? ''} ${body.message}`)) return 'rate-limit'
  if (known !== undefined) return known
  if (status === undefined) return 'unknown'
  return status >= 500 ? 'server' : status >= 400 ? 'invalid-request' : 'unknown'
}

function fromHeaders({ headers = {}, now }: FailedCall, body: ErrorBody): Partial<Failure> {
  const requestId = body.requestId ?? header(headers, 'request-id') ?? header(headers, 'x-request-id')
  return given({ retryAfterMs: retryAfterMs(headers, now), retryable: shouldRetry(headers), requestId })
}

/**
 * Milliseconds to wait: `retry-after-ms`, else `retry-after` in seconds or as a date. A date is measured from `now`, else
 * from the response's `date` header; without either it is ignored.
 */
export function retryAfterMs(headers: Headers, now?: number): number | undefined {
  const exact = amount(header(headers, 'retry-after-ms'))
  if (exact !== undefined) return exact
  const value = header(headers, 'retry-after')
  const seconds = amount(value)
  return seconds === undefined ? untilDate(value, now ?? dateOf(header(headers, 'date'))) : seconds * 1000
}

/** The provider's own statement whether to retry: it overrides our rules. */
export function shouldRetry(headers: Headers): boolean | undefined {
  const value = header(headers, 'x-should-retry')?.trim().toLowerCase()
  return value === 'true' ? true : value === 'false' ? false : undefined
}

function amount(value: string | undefined): number | undefined {
  if (value === undefined || !/^\s*\d+(?:\.\d+)?\s*$/.test(value)) return undefined
  return Number(value)
}

function untilDate(value: string | undefined, from: number | undefined): number | undefined {
  const at = dateOf(value)
  return at === undefined || from === undefined ? undefined : Math.max(0, at - from)
}

function dateOf(value: string | undefined): number | undefined {
  const at = value === undefined ? Number.NaN : Date.parse(value)
  return Number.isNaN(at) ? undefined : at
}

const TIMED_OUT = /^(?:ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(?:CONNECT|HEADERS|BODY)_TIMEOUT)$/

/**
 * What the platform throws when there is no response: the connection failed, timed out or was aborted. `aborted`: our own
 * signal was the cause, whatever the platform calls it.
 */
export function failureOfThrown(thrown: unknown, aborted = false): Failure {
  const chain = causes(thrown)
  const message = chain.map(messageOf).find((text) => text !== '') ?? 'The connection failed'
  if (aborted || chain.some((each) => nameOf(each) === 'AbortError')) return failure('aborted', message)
  const codes = chain.flatMap(codeOf)
  const late =
    codes.some((code) => TIMED_OUT.test(code)) || chain.some((each) => nameOf(each) === 'TimeoutError')
  return { ...failure(late ? 'timeout' : 'network', message), ...given({ errorCode: codes[0] }) }
}

/** Innermost first: platforms wrap the real cause in "fetch failed". */
function causes(thrown: unknown): readonly unknown[] {
  const chain: unknown[] = []
  for (
    let each = thrown;
    each !== undefined && chain.length < 5;
    each = isObject(each) ? each.cause : undefined
  )
    chain.unshift(each)
  return chain
}

function messageOf(each: unknown): string {
  if (typeof each === 'string') return each
  return isObject(each) && typeof each.message === 'string' ? each.message : ''
}

function nameOf(each: unknown): string {
  return isObject(each) && typeof each.name === 'string' ? each.name : ''
}

function codeOf(each: unknown): readonly string[] {
  return isObject(each) && typeof each.code === 'string' ? [each.code] : []
}
