/** How a command ends: its exit code, and one line on standard error if it failed. */
import { sanitizeText } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'

export const EXIT_CODES = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  /** As a shell reports a process that Ctrl-C ended. */
  interrupted: 130,
} as const

export function printError(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${sanitizeText(message)}\n`)
  return EXIT_CODES.failed
}

/** One line for each log that could not be read; the command then fails, but only after it showed the rest. */
export function printUnreadable(unreadable: readonly { readonly why: string }[], terminal: Terminal): number {
  for (const { why } of unreadable) printError(why, terminal)
  return unreadable.length > 0 ? EXIT_CODES.failed : EXIT_CODES.done
}
