/**
 * Stops compacting by itself when it does not help. Failures in a row open it; a compaction that succeeds, by itself
 * or by hand, closes it. New words of the person's after the last attempt are something new to try on: they are worth
 * one more attempt.
 */
import type { AutoPolicy } from '../../policy/groups/turn-policy.ts'

export interface Breaker {
  readonly failures: number
  /** Why the last one failed; null where none has. */
  readonly lastReason: string | null
  /** Index of the newest record when it did. */
  readonly at: number
}

export const CLOSED: Breaker = { failures: 0, lastReason: null, at: -1 }

export function isOpen({ failures }: Breaker, { breakerFailures }: AutoPolicy): boolean {
  return failures >= breakerFailures
}

/** What became of an attempt. Aborts, vetoes and "nothing to compact" say nothing about whether it helps. */
export type AttemptEnd =
  | { readonly kind: 'committed' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'aborted' | 'blocked' | 'nothing-to-do' }

/** `at`: index of the newest record of the session. */
export function afterAttempt(breaker: Breaker, end: AttemptEnd, at: number): Breaker {
  if (end.kind === 'committed') return CLOSED
  if (end.kind !== 'failed') return breaker
  return { failures: breaker.failures + 1, lastReason: end.reason, at }
}
