/** Returns a message for anything that was thrown, also for a value that is no Error. */
export function describeThrown(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** Every code of a `TidemarkError`. Codes are stable. */
type TidemarkErrorCode =
  | 'bad-blob'
  | 'bad-home'
  | 'bad-option'
  | 'bad-policy'
  | 'bad-profile'
  | 'bad-record'
  | 'bad-session-id'
  | 'busy'
  | 'closed'
  | 'io-failed'
  | 'locked'
  | 'newer-format'
  | 'not-a-session'
  | 'old-node'

/**
 * Thrown for misuse and failed I/O. Expected outcomes (a refused append, a damaged line, a compaction that frees
 * nothing) are return values instead. `message` says what was expected and what to do.
 */
export class TidemarkError extends Error {
  override readonly name = 'TidemarkError'
  readonly code: TidemarkErrorCode
  /** Data a program can act on: the path of a bad field, the owner of a lock, the minimum allowed. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    code: TidemarkErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.details = options.details ?? {}
  }
}
