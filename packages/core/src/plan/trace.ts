/** What was considered, in order, and why it was or was not done: each step in words that a person can act on. */

export type Tier = 'clear' | 'compact' | 'wait'

export interface TraceStep {
  readonly tier: Tier
  /** Tokens before and, where it were done, after. */
  readonly before: number
  readonly after: number
  /** Dollars; null where prices are not known. */
  readonly price: number | null
  /** Calls after which it has paid for itself; null where it never does, or nobody can tell. */
  readonly breakEven: number | null
  readonly why: string
  readonly chosen: boolean
}
