/** The result of replaying a session under one policy, as plain JSON. Types only, because the browser's code reads it, too. */

/** The size and cost of one request of the main conversation under a policy. */
export interface ReplayPoint {
  readonly tokens: number
  /** Dollars spent so far, including this request and its response. */
  readonly usd: number
}

/** What a session would have cost under one policy, and how many edits would still have seen their lines. */
export interface PolicyReplay {
  readonly name: string
  /** Dollars of all calls under the policy, summaries included. */
  readonly usd: number
  /** `used`: edits whose old text was shown before. `seen`: those of them whose request still showed that text. */
  readonly anchors: { readonly used: number; readonly seen: number }
  readonly compactions: number
  readonly clearings: number
  /** Calls that were not made or billed, because the policy had no request or its request did not fit the window. */
  readonly refused: number
  /** The requests of the main conversation; only with `withPoints`. */
  readonly points?: readonly ReplayPoint[]
}
