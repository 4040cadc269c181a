/** The exit codes of the commands. */
export const EXIT_CODES = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  /** The code that a shell reports for a process ended by Ctrl-C. */
  interrupted: 130,
} as const
