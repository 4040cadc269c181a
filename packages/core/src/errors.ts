/**
 * Misuse and broken I/O. Expected outcomes (a refused append, a damaged line, a compaction that cannot
 * help) are values, never this. `code` is stable; `message` says what was expected and what to do.
 */
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

export class TidemarkError extends Error {
  override readonly name = 'TidemarkError'
  readonly code: TidemarkErrorCode
  /** Extra facts a program can act on: the path of a bad field, the owner of a lock, the minimum allowed. */
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
