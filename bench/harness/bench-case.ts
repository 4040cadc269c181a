/**
 * What a bench case is. A time alone means nothing on another machine, so every case is a ratio between two
 * things measured in the same run: the subject, and a baseline that the bound is stated against.
 *
 * A case is a file in `bench/cases` that exports `benchCase`, or several as `benchCases`:
 *
 *     export const benchCase: BenchCase = {
 *       name: 'append-is-flat',
 *       compares: 'one append at 10,000 records with one at 100',
 *       bound: { atMost: 1.5 },
 *       prepare: () => ({ subject: () => append(long), baseline: () => append(short) }),
 *     }
 */
export interface BenchCase {
  readonly name: string
  /** What the ratio means, in words. */
  readonly compares: string
  readonly bound: Bound
  /** How often each side is measured in one attempt; the median of the rounds counts. */
  readonly rounds?: number
  prepare(): Contest | Promise<Contest>
}

/** The least or the most that subject time over baseline time may be. */
export type Bound = { readonly atMost: number } | { readonly atLeast: number }

export interface Contest {
  /** One call. May be asynchronous; what it returns is kept from being optimised away. */
  subject(): unknown
  baseline(): unknown
  /** Calls in one sample of each side. Found by trial where absent; give it where a call uses something up. */
  readonly calls?: { readonly subject: number; readonly baseline: number }
  /** True if each call resolves to the milliseconds that count, such as the longest hold of the event loop. */
  readonly isSelfTimed?: boolean
  /** What precedes each sample of a side, and is not timed. */
  readonly before?: { subject(): unknown; baseline(): unknown }
  /** Lets go of what `prepare` took hold of. */
  close?(): void | Promise<void>
}

export function meets(ratio: number, bound: Bound): boolean {
  return 'atMost' in bound ? ratio <= bound.atMost : ratio >= bound.atLeast
}
