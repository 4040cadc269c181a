import { TidemarkError } from '@tidemark/core'

/** Broken I/O, in one line: what was being done, to what, and what the system said. */
export function ioFailed(
  what: string,
  cause: unknown,
  details: Readonly<Record<string, unknown>>,
): TidemarkError {
  if (cause instanceof TidemarkError) return cause
  const said = cause instanceof Error ? cause.message : String(cause)
  return new TidemarkError('io-failed', `Could not ${what}: ${said}`, { cause, details })
}
