/** When to try again, and how long to wait first. What a failure means is `wire`'s; this is only the waiting. */
import type { Failure, Policy } from '@tidemark/core'

type NetworkPolicy = Policy['turn']['network']

export type Retry =
  | { readonly again: true; readonly delayMs: number }
  | { readonly again: false; readonly why: string }

/** `attempt` counts from 0. `chance` is a number from 0 up to 1: waits are shortened by it, so that many clients do not come back at once. */
export function planRetry(failure: Failure, attempt: number, policy: NetworkPolicy, chance: number): Retry {
  if (!failure.retryable) return { again: false, why: 'the same request would be refused again' }
  if (attempt >= policy.retries) return { again: false, why: `tried ${attempt + 1} times` }
  const asked = failure.retryAfterMs
  if (asked !== undefined && asked > policy.longestRetryAfterSeconds * 1000) {
    return { again: false, why: `the provider asks to wait ${Math.ceil(asked / 1000)} s` }
  }
  return { again: true, delayMs: asked ?? backoff(attempt, policy, chance) }
}

function backoff(attempt: number, policy: NetworkPolicy, chance: number): number {
  const full = Math.min(policy.firstDelayMs * 2 ** attempt, policy.maximumDelayMs)
  return Math.round(full * (1 - (policy.jitterPercent / 100) * chance))
}
