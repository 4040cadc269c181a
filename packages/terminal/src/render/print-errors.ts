/** Prints errors of commands, each on one line of standard error. Every function returns the exit code of the command. */
import type { TidemarkError } from 'tidemark'
import { EXIT_CODES, type Terminal } from '../terminal.ts'
import { toSafeLine } from './text.ts'

export function printError(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${toSafeLine(message)}\n`)
  return EXIT_CODES.failed
}

/** Prints an error about arguments with which a command cannot run. Returns the exit code `wrongUse`. */
export function printMisuse(message: string, terminal: Terminal): number {
  printError(message, terminal)
  return EXIT_CODES.wrongUse
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

/**
 * Prints an error that a command threw, and below it lines to copy, if it has any. With `TIDEMARK_DEBUG=1`, prints its stack
 * trace instead. An error that is not a `TidemarkError` is a bug, and the message says so.
 */
export function printThrownError(error: unknown, terminal: Terminal): number {
  if (terminal.env.TIDEMARK_DEBUG === '1' && error instanceof Error) {
    terminal.warn(`${error.stack}\n`)
    return EXIT_CODES.failed
  }
  const message = error instanceof Error ? error.message : String(error)
  const bug = ' (a bug in tidemark; TIDEMARK_DEBUG=1 shows the stack)'
  const code = printError(`${message}${isTidemarkError(error) ? '' : bug}`, terminal)
  if (isTidemarkError(error)) printAdvice(error.details.advice, terminal)
  return code
}

/** Compared by name, because the command and the agent may each have their own copy of the library. */
function isTidemarkError(error: unknown): error is TidemarkError {
  return error instanceof Error && error.name === 'TidemarkError'
}

/** Prints the lines that come with an error, for the user to copy. */
function printAdvice(lines: unknown, terminal: Terminal): void {
  if (Array.isArray(lines)) for (const line of lines) terminal.warn(`  ${line}\n`)
}
