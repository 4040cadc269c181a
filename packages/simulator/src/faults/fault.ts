/**
 * What can go wrong with an answer, as data. A fault comes with the reply of a script, with a request header
 * or from the control endpoint; whichever way, it is applied to the finished answer, just before it is sent.
 */
export type Fault =
  | StatusFault
  /** Nothing for `ms`, then the answer. Cache entries become visible only when it begins. */
  | { readonly type: 'slow-start'; readonly ms: number }
  /** `bytes` at a time, `ms` apart. */
  | { readonly type: 'slow-drip'; readonly bytes: number; readonly ms: number }
  /** The connection closes cleanly at the place, half-way where none is given, or inside a character near it. */
  | ({ readonly type: 'cut'; readonly insideCharacter?: boolean } & FaultPlace)
  | ErrorEventFault
  /** The connection is torn down at the place, before the first byte where none is given. */
  | ({ readonly type: 'reset' } & FaultPlace)
  /** Nothing more from the place on, and no end either, until the client gives up. */
  | ({ readonly type: 'hang' } & FaultPlace)
  /** All of them on one answer: slow and then cut, say. */
  | { readonly type: 'several'; readonly faults: readonly Fault[] }

/** An error instead of the answer: 429, 500, 529, 413 … `retryAfter` in seconds. */
export interface StatusFault {
  readonly type: 'status'
  readonly status: number
  readonly errorType?: string
  readonly message?: string
  readonly retryAfter?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly details?: Readonly<Record<string, unknown>>
}

/** An `error` event after so many events of the stream, and then the end. */
export interface ErrorEventFault {
  readonly type: 'error-event'
  readonly afterEvents: number
  readonly errorType?: string
  readonly message?: string
}

/** Where in an answer: after so many bytes, or after so many events of the stream. Bytes win where both are given. */
export interface FaultPlace {
  readonly afterBytes?: number
  readonly afterEvents?: number
}
