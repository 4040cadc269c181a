/** Authenticates requests, reads their API version and betas, and applies rate limits per organization. */
import type { Account } from '../prompt-cache/cache-key.ts'
import {
  type ApiError,
  type ApiResult,
  createApiError,
  createInvalidRequestError,
  toRejection,
} from '../protocol/answer.ts'
import type { Clock } from '../protocol/clock-and-ids.ts'
import { parseBetas } from '../protocol/messages-request.ts'
import type { ApiFeatures, ApiVersion } from '../validation/shape.ts'

export type RequestHeaders = Readonly<Record<string, string>>

/** The accepted API keys, with the account of each. */
export type AccountsByKey = Readonly<Record<string, Account>>

const DEFAULT_ACCOUNT: Account = { organization: 'org_simulated', workspace: 'wrkspc_simulated' }

/**
 * Returns the account of the API key in `x-api-key` or `authorization`. If `accounts` is undefined, every key belongs
 * to the default organization, in the workspace that the request names. Errors: 401 for a missing or unknown key, 403
 * for another workspace.
 */
export function authenticateApiKey(
  headers: RequestHeaders,
  accounts: AccountsByKey | undefined,
): ApiResult<{ account: Account }> {
  const key = headers['x-api-key'] ?? headers.authorization?.match(/^Bearer\s+(.+)$/i)?.[1]?.trim()
  if (key === undefined || key === '') return toRejection(createApiError(401, 'x-api-key header is required'))
  const account =
    accounts === undefined ? DEFAULT_ACCOUNT : Object.hasOwn(accounts, key) ? accounts[key] : undefined
  if (account === undefined) return toRejection(createApiError(401, 'invalid x-api-key'))
  const workspace = headers['anthropic-workspace-id'] ?? account.workspace
  if (accounts !== undefined && workspace !== account.workspace)
    return toRejection(
      createApiError(403, `anthropic-workspace-id: this key does not belong to ${workspace}`),
    )
  return { ok: true, account: { ...account, workspace } }
}

const API_VERSIONS: readonly ApiVersion[] = ['2023-06-01', '2026-10-21']

/** Reads the API version and the betas of a request. Fails if the version is missing or unknown. */
export function readApiFeatures(
  headers: RequestHeaders,
  cachedClearing: boolean,
): ApiResult<{ features: ApiFeatures }> {
  const requested = headers['anthropic-version']
  if (requested === undefined)
    return toRejection(createInvalidRequestError('anthropic-version: header is required'))
  const version = API_VERSIONS.find((known) => known === requested)
  if (version === undefined)
    return toRejection(createInvalidRequestError(`anthropic-version: ${requested} is not a valid version`))
  return { ok: true, features: { version, betas: parseBetas(headers['anthropic-beta']), cachedClearing } }
}

/** Rate limits per minute and organization. Tokens read from the cache do not count as input. */
export interface RateLimits {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  /**
   * True to reject requests with status 429 when a limit is reached. If false, limits only show in the rate limit
   * headers.
   */
  readonly enforced: boolean
}

export const DEFAULT_RATE_LIMITS: RateLimits = {
  requests: 4_000,
  inputTokens: 2_000_000,
  outputTokens: 400_000,
  enforced: false,
}

interface RateWindow {
  readonly endsAt: number
  readonly requests: number
  readonly input: number
  readonly output: number
}

export interface RateLimiter {
  /**
   * Counts a request and returns null. If a limit is reached in the current minute, and limits are enforced, returns a
   * 429 error instead.
   */
  countRequest(organization: string): ApiError | null
  countTokens(organization: string, tokens: { readonly input: number; readonly output: number }): void
  headers(organization: string): Readonly<Record<string, string>>
}

const MINUTE_MS = 60_000

export function createRateLimiter(limits: RateLimits, clock: Clock): RateLimiter {
  const windows = new Map<string, RateWindow>()

  function openWindow(organization: string): RateWindow {
    const now = clock.now()
    const open = windows.get(organization)
    return open !== undefined && now < open.endsAt
      ? open
      : { endsAt: now + MINUTE_MS, requests: 0, input: 0, output: 0 }
  }

  return {
    countRequest(organization) {
      const open = openWindow(organization)
      if (limits.enforced && isLimitReached(open, limits)) return rateLimitError(open, clock.now())
      windows.set(organization, { ...open, requests: open.requests + 1 })
      return null
    },
    countTokens(organization, { input, output }) {
      const open = openWindow(organization)
      windows.set(organization, { ...open, input: open.input + input, output: open.output + output })
    },
    headers: (organization) => rateLimitHeaders(openWindow(organization), limits),
  }
}

function isLimitReached(open: RateWindow, limits: RateLimits): boolean {
  return (
    open.requests >= limits.requests || open.input >= limits.inputTokens || open.output >= limits.outputTokens
  )
}

function rateLimitError(open: RateWindow, now: number): ApiError {
  const seconds = Math.max(1, Math.ceil((open.endsAt - now) / 1_000))
  const message = 'This request would exceed the rate limit for your organization. Try again later.'
  return { ...createApiError(429, message), headers: { 'retry-after': String(seconds) } }
}

function rateLimitHeaders(open: RateWindow, limits: RateLimits): Readonly<Record<string, string>> {
  const reset = `${new Date(open.endsAt).toISOString().slice(0, 19)}Z`
  const rows: readonly (readonly [string, number, number])[] = [
    ['requests', limits.requests, limits.requests - open.requests],
    ['input-tokens', limits.inputTokens, roundToThousands(limits.inputTokens - open.input)],
    ['output-tokens', limits.outputTokens, roundToThousands(limits.outputTokens - open.output)],
    [
      'tokens',
      limits.inputTokens + limits.outputTokens,
      roundToThousands(limits.inputTokens + limits.outputTokens - open.input - open.output),
    ],
  ]
  const headers: Record<string, string> = {}
  for (const [name, limit, remaining] of rows) {
    headers[`anthropic-ratelimit-${name}-limit`] = String(limit)
    headers[`anthropic-ratelimit-${name}-remaining`] = String(Math.max(0, remaining))
    headers[`anthropic-ratelimit-${name}-reset`] = reset
  }
  return headers
}

/** Rounds to thousands, as the provider does for remaining tokens. */
function roundToThousands(tokens: number): number {
  return Math.round(tokens / 1_000) * 1_000
}
