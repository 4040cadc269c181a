/** Where a command writes and what it knows of its surroundings: all that a test has to stand in for. */
import { createInterface } from 'node:readline/promises'
import picocolors from 'picocolors'
import type { Colors } from 'picocolors/types.js'

export interface Terminal {
  /** Standard output: what was asked for. */
  write(text: string): void
  /** Standard error: what a person should know beside it. */
  warn(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  readonly isTty: boolean
  /** Width of the screen; 80 where there is none. */
  readonly columns: number
  /** Standard error is a terminal: progress may be shown there. */
  readonly isErrorTty?: boolean
  /** Standard input is a terminal: a person can be asked. */
  readonly isInputTty?: boolean
  /** The person wants it to end: nothing may be left half-written. */
  readonly interrupted?: AbortSignal
  /** Asks the person; null where nobody is there to answer. */
  ask?(question: string): Promise<string | null>
}

export function processTerminal(from: NodeJS.Process, interrupted?: AbortSignal): Terminal {
  return {
    write: (text) => void from.stdout.write(text),
    warn: (text) => void from.stderr.write(text),
    env: from.env,
    isTty: from.stdout.isTTY === true,
    columns: columnsOf(from.stdout.columns, from.env.COLUMNS),
    isErrorTty: from.stderr.isTTY === true,
    isInputTty: from.stdin.isTTY === true,
    ...(interrupted === undefined ? {} : { interrupted }),
    ask: (question) => (from.stdin.isTTY === true ? askAt(from, question) : Promise.resolve(null)),
  }
}

/** `variable`: what `COLUMNS` says, for a pipe or a file, which have no width of their own. */
export function columnsOf(screen: number | undefined, variable: string | undefined): number {
  if (screen !== undefined && screen > 0) return screen
  return variable !== undefined && /^[1-9]\d{0,4}$/.test(variable) ? Number(variable) : 80
}

async function askAt(from: NodeJS.Process, question: string): Promise<string | null> {
  const lines = createInterface({ input: from.stdin, output: from.stderr })
  try {
    return await new Promise((answer) => {
      lines.once('close', () => answer(null))
      // Ctrl-C is no answer either.
      void lines.question(question).then(answer, () => answer(null))
    })
  } finally {
    lines.close()
  }
}

/** `NO_COLOR` says no, `FORCE_COLOR` says yes (`0` and `false` say no), and otherwise a terminal that can gets colours. */
export function wantsColors({ env, isTty }: Pick<Terminal, 'env' | 'isTty'>): boolean {
  if (isSet(env.NO_COLOR)) return false
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return isTty && env.TERM !== 'dumb'
}

export function colorsFor(terminal: Terminal): Colors {
  return picocolors.createColors(wantsColors(terminal))
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}

// A line that says how far long work has come: on a terminal alone, after a second, and gone when the work is done.

export interface ProgressLine {
  show(text: string): void
  clear(): void
}

const PATIENCE_MS = 1_000
const REFRESH_MS = 100
const CLEAR_LINE = '\r\u001b[2K'

/** `now`: milliseconds of a clock that does not go back. */
export function createProgressLine(terminal: Terminal, now: () => number): ProgressLine {
  const startedAt = now()
  let shownAt: number | null = null
  return {
    show(text) {
      const moment = now()
      if (terminal.isErrorTty !== true || moment - startedAt < PATIENCE_MS) return
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
