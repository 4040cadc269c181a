/** What a command uses of its process: output, environment, user input, interruption. Tests replace it. */
import { createInterface } from 'node:readline/promises'
import picocolors from 'picocolors'
import type { Colors } from 'picocolors/types.js'

export interface Terminal {
  /** Standard output: the result. */
  write(text: string): void
  /** Standard error: warnings, errors and progress. */
  warn(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly isTty: boolean
  /** Width of the terminal; 80 if there is none. */
  readonly columns: number
  /** Standard error is a terminal: progress may be shown there. */
  readonly isErrorTty?: boolean
  /** Standard input is a terminal: the user can be asked. */
  readonly isInputTty?: boolean
  /** Aborted by Ctrl-C: the command must end and leave nothing half-written. */
  readonly interrupted?: AbortSignal
  /** Asks the user; null if standard input is not a terminal. */
  ask?(question: string): Promise<string | null>
}

export function createProcessTerminal(from: NodeJS.Process, interrupted?: AbortSignal): Terminal {
  return {
    write: (text) => void from.stdout.write(text),
    warn: (text) => void from.stderr.write(text),
    env: from.env,
    isTty: from.stdout.isTTY === true,
    columns: chooseColumns(from.stdout.columns, from.env.COLUMNS),
    isErrorTty: from.stderr.isTTY === true,
    isInputTty: from.stdin.isTTY === true,
    ...(interrupted === undefined ? {} : { interrupted }),
    ask: (question) => (from.stdin.isTTY === true ? askOnTerminal(from, question) : Promise.resolve(null)),
  }
}

/** `variable`: the value of `COLUMNS`, for a pipe or a file, which have no width. */
export function chooseColumns(screen: number | undefined, variable: string | undefined): number {
  if (screen !== undefined && screen > 0) return screen
  return variable !== undefined && /^[1-9]\d{0,4}$/.test(variable) ? Number(variable) : 80
}

/** Whether the user answered y or yes; null if there is no terminal to ask on. */
export async function askYesNo(question: string, terminal: Terminal): Promise<boolean | null> {
  const answer = await terminal.ask?.(`${question} [y/N] `)
  return answer == null ? null : /^y(es)?$/i.test(answer.trim())
}

export function toSignalOption({ interrupted }: Terminal): { readonly signal?: AbortSignal } {
  return interrupted === undefined ? {} : { signal: interrupted }
}

async function askOnTerminal(from: NodeJS.Process, question: string): Promise<string | null> {
  const lines = createInterface({ input: from.stdin, output: from.stderr })
  try {
    return await new Promise((answer) => {
      lines.once('close', () => answer(null))
      // Ctrl-C counts as no answer.
      void lines.question(question).then(answer, () => answer(null))
    })
  } finally {
    lines.close()
  }
}

/** `NO_COLOR` turns colours off, `FORCE_COLOR` on (unless `0` or `false`); otherwise a terminal that can show them gets them. */
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

/** A progress line: shown only on a terminal, after one second, and removed when the work is done. */
interface ProgressLine {
  show(text: string): void
  clear(): void
}

const PROGRESS_DELAY_MS = 1_000
const REFRESH_MS = 100
const CLEAR_LINE = '\r\u001b[2K'

/** `now`: milliseconds of a monotonic clock. */
export function createProgressLine(terminal: Terminal, now: () => number): ProgressLine {
  const startedAt = now()
  let shownAt: number | null = null
  return {
    show(text) {
      const moment = now()
      if (terminal.isErrorTty !== true || moment - startedAt < PROGRESS_DELAY_MS) return
      if (shownAt !== null && moment - shownAt < REFRESH_MS) return
      shownAt = moment
      terminal.warn(`${CLEAR_LINE}${text.slice(0, terminal.columns - 1)}`)
    },
    clear() {
      if (shownAt !== null) terminal.warn(CLEAR_LINE)
      shownAt = null
    },
  }
}
