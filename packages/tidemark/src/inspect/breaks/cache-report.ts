/** What a log tells about its prompt cache, as plain JSON. The names are a contract: programs read them. */

export interface CacheReport {
  readonly cacheBreaks: readonly CacheBreak[]
  /** Clearings that the log announces: what they made necessary to process again is no break. */
  readonly clearingCosts: readonly ClearingCost[]
  /**
   * Dollars that a lifetime of an hour would have saved where five minutes were asked for, by the gaps between the
   * requests; less than 0 where it would have cost more. Null where nothing says so, or a price is not known.
   */
  readonly hourWouldSave: number | null
}

export interface CacheBreak {
  /** When the request was answered. */
  readonly at: string
  /** Tokens that should have been read and were processed again. */
  readonly tokensRewritten: number
  /** Dollars above the price of reading them; null where a price is not known. */
  readonly costUsd: number | null
  /** The most likely one. */
  readonly cause: BreakCause
  /** What in the log speaks for it, without secrets. */
  readonly evidence: string
  /** Of the response. */
  readonly line: number
  readonly model: string
  /** The side agent whose request it was; absent for the main conversation. */
  readonly agent?: string
  /** Who asked beside the conversation (`compact`, a fork's name …); absent for the conversation itself. */
  readonly source?: string
}

/** `tokensRewritten` and `costUsd` as of a break. */
export interface ClearingCost {
  readonly at: string
  readonly tokensRewritten: number
  readonly costUsd: number | null
  /** Calls until what it freed has paid for it; null where not known. */
  readonly breakEvenCalls: number | null
  readonly model: string
}

/**
 * `server-side`: nothing in the log changed and the entry should still have lived. `not-known`: nothing in the log
 * changed, and it does not tell how much time went by.
 */
export type BreakCause =
  | 'model-changed'
  | 'speed-changed'
  | 'effort-changed'
  | 'thinking-changed'
  | 'skill-loaded'
  | 'tools-changed'
  | 'system-changed'
  | 'memory-changed'
  | 'messages-changed'
  | 'settings-changed'
  | 'account-changed'
  | 'lifetime-changed'
  | 'image-added'
  | 'image-removed'
  | 'expired'
  | 'restarted'
  | 'not-streamed'
  | 'look-back-outrun'
  | 'server-side'
  | 'not-known'

/** A cause, and what speaks for it. */
export interface Cause {
  readonly cause: BreakCause
  readonly evidence: string
}
