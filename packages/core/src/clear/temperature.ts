/** What clearing has to know of the prompt cache, as plain data: those who keep the books of it come later. */

/** The first thing of a request that would no longer say what it said. */
export interface FirstChange {
  readonly toolUseId: string
  readonly part: 'call' | 'result'
}

export interface CacheTemperature {
  /** The prefix of the last request is still kept. */
  readonly isWarm: boolean
  /** When it lapses unless it is read again, in milliseconds since 1970; null where nothing is known to be kept. */
  readonly expiresAt: number | null
  /** The lifetime in force. */
  readonly ttlMs: number
  /** Calls to come before it goes cold anyway. */
  readonly expectedCalls: number
  /**
   * Tokens that are kept now, from the newest prefix on that a marker of the request can still reach when it is
   * changed there: what would be written again, the cleared text included. What was never sent is not among them.
   */
  readonly tokensBehind: (change: FirstChange) => number
}

/** Nothing is kept, so that nothing can be lost. */
export const COLD: CacheTemperature = {
  isWarm: false,
  expiresAt: null,
  ttlMs: 0,
  expectedCalls: 0,
  tokensBehind: () => 0,
}
