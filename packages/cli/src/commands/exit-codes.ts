/** Exit codes of the commands, and error messages on standard error. */
import { sanitizeText } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'

export const EXIT_CODES = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  /** The code that a shell reports for a process ended by Ctrl-C. */
  interrupted: 130,
} as const

export function printError(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${sanitizeText(message)}\n`)
  return EXIT_CODES.failed
}

/**
 * Prints an error for each log that could not be read. Returns the exit code of the command: failed if there is such a
 * log, otherwise done.
 */
export function printUnreadableLogs(
  unreadable: readonly { readonly why: string }[],
  terminal: Terminal,
): number {
  for (const { why } of unreadable) printError(why, terminal)
  return unreadable.length > 0 ? EXIT_CODES.failed : EXIT_CODES.done
}
