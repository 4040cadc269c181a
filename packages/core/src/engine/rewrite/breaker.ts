/**
 * Stops compacting by itself when it does not help. Failures in a row open it; a success, a manual compaction, a
 * clear or a new prompt of the person's after the last attempt closes it, since then there is something new to try on.
 */
import type { AutoPolicy } from '../../policy/groups/turn-policy.ts'

export interface Breaker {
  readonly failures: number
  /** Why the last one failed; null where none has. */
  readonly lastReason: string | null
}

export const CLOSED: Breaker = { failures: 0, lastReason: null }

export function isOpen({ failures }: Breaker, { breakerFailures }: AutoPolicy): boolean {
  return failures >= breakerFailures
}

/** What became of an attempt. Aborts, vetoes and "nothing to compact" say nothing about whether it helps. */
export type AttemptEnd =
  | { readonly kind: 'committed' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'aborted' | 'blocked' | 'nothing-to-do' }

export function afterAttempt(breaker: Breaker, end: AttemptEnd): Breaker {
  if (end.kind === 'committed') return CLOSED
  if (end.kind !== 'failed') return breaker
  return { failures: breaker.failures + 1, lastReason: end.reason }
}
