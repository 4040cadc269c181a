/** What a session would have been under one policy, as plain JSON. Types only: the page in the browser reads it, too. */

/** A request of the main conversation under a policy. */
export interface ReplayPoint {
  readonly tokens: number
  /** Dollars of everything so far. */
  readonly usd: number
}

export interface PolicyReplay {
  readonly name: string
  /** Dollars of all calls under the policy, summaries included. */
  readonly usd: number
  /** Edits whose old text had been shown before (`used`), and those of them that saw it in their request (`seen`). */
  readonly anchors: { readonly used: number; readonly seen: number }
  readonly compactions: number
  readonly clearings: number
  /** Calls that were not made, and not billed, since their request does not fit the window. */
  readonly refused: number
  /** The requests of the main conversation; only with `withPoints`. */
  readonly points?: readonly ReplayPoint[]
}
