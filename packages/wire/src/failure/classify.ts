/** From what came back instead of a reply to a typed failure. What all providers share is here; a dialect adds its own. */
import type { Failure, FailureKind, TokenGap } from '@tidemark/core'
import { given } from '../given.ts'
import { type Headers, header } from '../header.ts'
import { type ErrorBody, readErrorBody } from './error-body.ts'
import { findOverflow, isAboutRate } from './overflow.ts'
import { retryAfterMs, shouldRetry } from './retry-after.ts'

export interface FailedCall {
  /** Absent for an error told inside a stream that had begun well. */
  readonly status?: number
  readonly body: string
  readonly headers?: Headers
  /** Milliseconds since 1970, to read a `retry-after` date by. */
  readonly now?: number
}

export interface Dialect {
  readonly provider: string
  /** The kind, where the provider's own types, codes and words tell more than the status. */
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
    ...given({ status: call.status, gap: hasFigures(gap) ? gap : undefined }),
    ...given({ errorType: body.type, errorCode: body.code, details: body.details, path }),
    ...fromHeaders(call, body),
  }
}

/** A failure with no response behind it. */
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

function hasFigures(gap: TokenGap | null): gap is TokenGap {
  return gap !== null && Object.keys(gap).length > 0
}

function fromHeaders({ headers = {}, now }: FailedCall, body: ErrorBody): Partial<Failure> {
  const requestId = body.requestId ?? header(headers, 'request-id') ?? header(headers, 'x-request-id')
  return given({ retryAfterMs: retryAfterMs(headers, now), retryable: shouldRetry(headers), requestId })
}
