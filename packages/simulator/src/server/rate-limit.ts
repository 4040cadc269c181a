/** Limits by the minute and the headers that tell of them. Cache reads do not count towards input. */
import type { Clock } from '../clock.ts'
import { type Refusal, refusal } from '../refusal.ts'

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
