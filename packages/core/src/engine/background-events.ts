/** Events of work beside the turns: summaries that are prepared in advance, and the prompt cache of an idle session. */

export type BackgroundEvent =
  /**
   * A summary of the conversation is being prepared beside the turn. `tokens`: size of the context; `price`: dollars
   * that the summary is expected to cost, null if unknown.
   */
  | { readonly type: 'summary-preparing'; readonly tokens: number; readonly price: number | null }
  /**
   * The summary is ready and is swapped in when the context needs it. `tokensAfter`: size of the context with it;
   * `price`: dollars that it cost, null if unknown.
   */
  | {
      readonly type: 'summary-prepared'
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly durationMs: number
      readonly price: number | null
    }
  /** A prepared summary will not be used. `price`: dollars that were spent on it, null if unknown. */
  | {
      readonly type: 'summary-dropped'
      readonly why: SummaryDropReason
      readonly message: string
      readonly price: number | null
    }
  /** A request was sent on an idle session to keep its prompt cache from expiring. */
  | ({ readonly type: 'cache-kept-warm' } & KeptCache)
  /** The prompt cache has expired since the last response, so that the next request costs more. Not sent yet. */
  | ({ readonly type: 'resume-cost' } & ResumeCost)

/** Why a prepared summary is not used. */
export type SummaryDropReason =
  /** The context was compacted, cleared, undone or rewound since. */
  | 'rewritten'
  /** A record that the summary replaces was pinned. */
  | 'pinned'
  | 'model-switched'
  /** A PreCompact hook blocked it. */
  | 'blocked'
  /** The model wrote no summary. A local one is only made when the session cannot go on without. */
  | 'no-summary'
  /** It could not be prepared, or not be committed. */
  | 'failed'
  | 'closed'

export interface KeptCache {
  /** Tokens that the request read from the cache. */
  readonly tokensRead: number
  /** True if the cached conversation was read, which renews its lifetime. False if it was lost already. */
  readonly isRead: boolean
  /** Number of such requests since the last response, with this one. */
  readonly count: number
  /** When the cache expires now, in milliseconds since 1970; null if it was lost. */
  readonly expiresAt: number | null
  /** Dollars that the request cost; null if unknown. */
  readonly price: number | null
  /**
   * Dollars that the next request costs more if the cache expires, since it writes the cache again; null if unknown. All
   * renewals of a pause save it together, once.
   */
  readonly rewritePrice: number | null
}

export interface ResumeCost {
  /** Milliseconds since the last response. */
  readonly idleMs: number
  /** Tokens of the request, and those of them that are still expected in the cache. */
  readonly tokens: number
  readonly cachedTokens: number
  /** Dollars that the prompt of the request will cost, and that it would have cost before the cache expired. */
  readonly price: number | null
  readonly warmPrice: number | null
  /** The same as a line for the user. */
  readonly sentence: string
}
