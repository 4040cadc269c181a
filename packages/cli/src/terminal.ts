/** The parts of the process that commands use: output, environment, user input and interruption. Tests pass a fake. */
import picocolors from 'picocolors'
import type { Colors } from 'picocolors/types.js'

export interface Terminal {
  /** Writes the result of the command to standard output. */
  write(text: string): void
  /** Writes warnings, errors and progress to standard error. */
  warn(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly isTty: boolean
  /** Width of the terminal in columns; 80 if unknown. */
  readonly columns: number
  /** True if standard error is a terminal, so that progress can be shown. */
  readonly isErrorTty?: boolean
  /** True if standard input is a terminal, so that the user can answer questions. */
  readonly isInputTty?: boolean
  /** Aborted by Ctrl-C. The command must then end without leaving a half-written file. */
  readonly interrupted?: AbortSignal
  /** Asks the user a question. Returns null if standard input is not a terminal. */
  ask?(question: string): Promise<string | null>
}

export function createProcessTerminal(from: NodeJS.Process, interrupted?: AbortSignal): Terminal {
  return {
    write: (text) => void from.stdout.write(text),
    warn: (text) => void from.stderr.write(text),
    env: from.env,
    isTty: from.stdout.isTTY === true,
    columns: chooseTerminalWidth(from.stdout.columns, from.env.COLUMNS),
    isErrorTty: from.stderr.isTTY === true,
    isInputTty: from.stdin.isTTY === true,
    ...(interrupted === undefined ? {} : { interrupted }),
    ask: (question) => (from.stdin.isTTY === true ? askOnTerminal(from, question) : Promise.resolve(null)),
  }
}

/**
 * Returns the output width in columns. `screen` is the terminal's width. Without a terminal, `variable` (the value of
 * `COLUMNS`) is used; 80 if it is missing.
 */
export function chooseTerminalWidth(screen: number | undefined, variable: string | undefined): number {
  if (screen !== undefined && screen > 0) return screen
  return variable !== undefined && /^[1-9]\d{0,4}$/.test(variable) ? Number(variable) : 80
}

/** Asks a yes/no question. Returns true for y or yes; null if there is no terminal. */
export async function askYesNo(question: string, terminal: Terminal): Promise<boolean | null> {
  const answer = await terminal.ask?.(`${question} [y/N] `)
  return answer == null ? null : /^y(es)?$/i.test(answer.trim())
}

export function toSignalOption({ interrupted }: Terminal): { readonly signal?: AbortSignal } {
  return interrupted === undefined ? {} : { signal: interrupted }
}

async function askOnTerminal(from: NodeJS.Process, question: string): Promise<string | null> {
  const { createInterface } = await import('node:readline/promises')
  const lines = createInterface({ input: from.stdin, output: from.stderr })
  try {
    return await new Promise((answer) => {
      lines.once('close', () => answer(null))
      // If the user presses Ctrl-C, the question counts as not answered.
      void lines.question(question).then(answer, () => answer(null))
    })
  } finally {
    lines.close()
  }
}

/**
 * Returns true if output should be coloured. `NO_COLOR` turns colours off and `FORCE_COLOR` on (unless `0` or `false`);
 * otherwise colours are on for terminals that support them.
 */
export function wantsColors({ env, isTty }: Pick<Terminal, 'env' | 'isTty'>): boolean {
  if (isSet(env.NO_COLOR)) return false
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return isTty && env.TERM !== 'dumb'
}

export function createColors(terminal: Terminal): Colors {
  return picocolors.createColors(wantsColors(terminal))
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}
