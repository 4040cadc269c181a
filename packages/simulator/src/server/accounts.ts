/** Who is asking: either header carries the key, and the key says whose cache, limits and threads are meant. */
import type { Scope } from '../prompt-cache/cache-key.ts'
import { invalid, type Refusal, refusal } from '../protocol/answer.ts'
import { betasOf } from '../protocol/api.ts'
import type { Clock } from '../protocol/clock-and-ids.ts'
import type { ApiVersion, Gate } from '../validation/shape.ts'

export type Headers = Readonly<Record<string, string>>

export interface Account extends Scope {}

export type Accounts = Readonly<Record<string, Account>>

export const DEFAULT_ACCOUNT: Account = {
  organization: 'org_simulated',
  workspace: 'wrkspc_simulated',
}

export type Identity =
  | { readonly ok: true; readonly account: Account }
  | { readonly ok: false; readonly refusal: Refusal }

/** With no accounts given, any key will do and all belong to one organisation. */
export function identify(headers: Headers, accounts: Accounts | undefined): Identity {
  const key = headers['x-api-key'] ?? bearer(headers.authorization)
  if (key === undefined || key === '')
    return { ok: false, refusal: refusal(401, 'x-api-key header is required') }
  const account =
    accounts === undefined ? DEFAULT_ACCOUNT : Object.hasOwn(accounts, key) ? accounts[key] : undefined
  if (account === undefined) return { ok: false, refusal: refusal(401, 'invalid x-api-key') }
  return withWorkspace(account, headers['anthropic-workspace-id'], accounts !== undefined)
}

function bearer(header: string | undefined): string | undefined {
  return header?.match(/^Bearer\s+(.+)$/i)?.[1]?.trim()
}

/** A key that belongs to one workspace may name that one and no other. */
function withWorkspace(account: Account, asked: string | undefined, belongs: boolean): Identity {
  if (asked === undefined || asked === account.workspace) return { ok: true, account }
  if (belongs)
    return {
      ok: false,
      refusal: refusal(403, `anthropic-workspace-id: this key does not belong to ${asked}`),
    }
  return { ok: true, account: { ...account, workspace: asked } }
}

// What a request may use: the version of the API it speaks and the betas it asks for.

const VERSIONS: readonly ApiVersion[] = ['2023-06-01', '2026-10-21']

export type GateOutcome =
  | { readonly ok: true; readonly gate: Gate }
  | { readonly ok: false; readonly refusal: Refusal }

export function gateOf(headers: Headers, cachedClearing: boolean): GateOutcome {
  const asked = headers['anthropic-version']
  if (asked === undefined) return { ok: false, refusal: invalid('anthropic-version: header is required') }
  const version = VERSIONS.find((known) => known === asked)
  if (version === undefined)
    return { ok: false, refusal: invalid(`anthropic-version: ${asked} is not a valid version`) }
  return { ok: true, gate: { version, betas: betasOf(headers['anthropic-beta']), cachedClearing } }
}

// Limits by the minute and the headers that tell of them. Cache reads do not count towards input.

export interface RateLimits {
  readonly requests: number
  readonly inputTokens: number
  readonly outputTokens: number
  /** Otherwise the headers count down and nothing is refused. */
  readonly enforced: boolean
}

export const DEFAULT_LIMITS: RateLimits = {
  requests: 4_000,
  inputTokens: 2_000_000,
  outputTokens: 400_000,
  enforced: false,
}

interface Window {
  readonly endsAt: number
  readonly requests: number
  readonly input: number
  readonly output: number
}

export interface RateLimiter {
  /** Counts a request in, or turns it down until the minute is over. */
  admit(organization: string): Refusal | null
  spend(organization: string, tokens: { readonly input: number; readonly output: number }): void
  headers(organization: string): Readonly<Record<string, string>>
}

const MINUTE_MS = 60_000

export function createRateLimiter(limits: RateLimits, clock: Clock): RateLimiter {
  const windows = new Map<string, Window>()

  function current(organization: string): Window {
    const now = clock.now()
    const open = windows.get(organization)
    return open !== undefined && now < open.endsAt
      ? open
      : { endsAt: now + MINUTE_MS, requests: 0, input: 0, output: 0 }
  }

  return {
    admit(organization) {
      const open = current(organization)
      if (limits.enforced && isSpent(open, limits)) return tooMany(open, clock.now())
      windows.set(organization, { ...open, requests: open.requests + 1 })
      return null
    },
    spend(organization, { input, output }) {
      const open = current(organization)
      windows.set(organization, { ...open, input: open.input + input, output: open.output + output })
    },
    headers: (organization) => headersOf(current(organization), limits),
  }
}

function isSpent(open: Window, limits: RateLimits): boolean {
  return (
    open.requests >= limits.requests || open.input >= limits.inputTokens || open.output >= limits.outputTokens
  )
}

function tooMany(open: Window, now: number): Refusal {
  const seconds = Math.max(1, Math.ceil((open.endsAt - now) / 1_000))
  const refused = refusal(
    429,
    'This request would exceed the rate limit for your organization. Try again later.',
  )
  return { ...refused, headers: { 'retry-after': String(seconds) } }
}

function headersOf(open: Window, limits: RateLimits): Readonly<Record<string, string>> {
  const reset = `${new Date(open.endsAt).toISOString().slice(0, 19)}Z`
  const rows: readonly (readonly [string, number, number])[] = [
    ['requests', limits.requests, limits.requests - open.requests],
    ['input-tokens', limits.inputTokens, thousands(limits.inputTokens - open.input)],
    ['output-tokens', limits.outputTokens, thousands(limits.outputTokens - open.output)],
    [
      'tokens',
      limits.inputTokens + limits.outputTokens,
      thousands(limits.inputTokens + limits.outputTokens - open.input - open.output),
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

/** What is left of tokens is told in whole thousands. */
function thousands(tokens: number): number {
  return Math.round(tokens / 1_000) * 1_000
}
