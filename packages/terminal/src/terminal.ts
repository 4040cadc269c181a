/** `Terminal`: the parts of the process that commands use, so that tests can pass a fake. Also exit codes, width and colours. */
import picocolors from 'picocolors'
import type { Colors } from 'picocolors/types.js'

/** The exit codes of the commands. */
export const EXIT_CODES = {
  done: 0,
  failed: 1,
  wrongUse: 2,
  /** The code that a shell reports for a process ended by Ctrl-C. */
  interrupted: 130,
} as const

export interface Terminal {
  /** Writes the result of the command to standard output. */
  write(text: string): void
  /** Writes warnings, errors and progress to standard error. */
  warn(text: string): void
  readonly env: Readonly<Record<string, string | undefined>>
  /** True if standard output is a terminal. */
  readonly isTty: boolean
  /** Width of the output in columns: that of the terminal, else `COLUMNS`, else 80. */
  readonly columns: number
  /** Height of the terminal in rows; undefined if there is no terminal. */
  readonly rows?: number
  /** True if standard error is a terminal, so that progress can be shown. */
  readonly isErrorTty?: boolean
  /** True if standard input is a terminal, so that the user can answer questions. */
  readonly isInputTty?: boolean
  /** Aborted by Ctrl-C. The command must then end without leaving a half-written file. */
  readonly interrupted?: AbortSignal
  /** True for the real process, which gets signals and which the watchdog may end; absent in tests. */
  readonly isProcess?: boolean
  /** Asks the user a question. Returns null if standard input is no terminal or ends, after Ctrl-C, and when `signal` is aborted. */
  ask?(question: string, signal?: AbortSignal): Promise<string | null>
  /** Shows a question until one of these keys is pressed. Returns null after Ctrl-C or Ctrl-D, or at the end of the input. */
  askKey?(question: string, keys: readonly string[]): Promise<string | null>
}

export function createProcessTerminal(from: NodeJS.Process, interrupted?: AbortSignal): Terminal {
  return {
    write: (text) => void from.stdout.write(text),
    warn: (text) => void from.stderr.write(text),
    env: from.env,
    isTty: from.stdout.isTTY === true,
    columns: chooseTerminalWidth(from.stdout.columns, from.env.COLUMNS),
    ...(from.stdout.isTTY === true ? { rows: from.stdout.rows } : {}),
    isErrorTty: from.stderr.isTTY === true,
    isInputTty: from.stdin.isTTY === true,
    isProcess: true,
    ...(interrupted === undefined ? {} : { interrupted }),
    ask: (question, signal) =>
      from.stdin.isTTY === true ? askOnTerminal(from, question, signal) : Promise.resolve(null),
    askKey: (question, keys) =>
      from.stdin.isTTY === true ? askForKey(from, question, keys) : Promise.resolve(null),
  }
}

/** Waits for Ctrl-C, or for SIGTERM, with which service managers end a process. For commands that serve until then. */
export function waitForInterruption({ interrupted, isProcess }: Terminal): Promise<void> {
  return new Promise((resolve) => {
    // From then on a second signal ends the process at once.
    const end = (): void => {
      interrupted?.removeEventListener('abort', end)
      if (isProcess === true) process.off('SIGTERM', end)
      resolve()
    }
    if (interrupted?.aborted === true) return end()
    interrupted?.addEventListener('abort', end)
    if (isProcess === true) process.once('SIGTERM', end)
  })
}

/**
 * Returns the output width in columns. `screen` is the terminal's width. Without a terminal, `variable` (the value of
 * `COLUMNS`) is used; 80 if it is missing or not a number of up to five digits.
 */
export function chooseTerminalWidth(screen: number | undefined, variable: string | undefined): number {
  if (screen !== undefined && screen > 0) return screen
  return variable !== undefined && /^[1-9]\d{0,4}$/.test(variable) ? Number(variable) : 80
}

/** Asks a yes/no question. Returns true for y or yes, false for any other text; null without a terminal or after Ctrl-C. */
export async function askYesNo(question: string, terminal: Terminal): Promise<boolean | null> {
  const answer = await terminal.ask?.(`${question} [y/N] `)
  return answer == null ? null : /^y(es)?$/i.test(answer.trim())
}

/** Returns the option `signal` for functions that can be aborted; empty if the terminal has no signal. */
export function toSignalOption({ interrupted }: Terminal): { readonly signal?: AbortSignal } {
  return interrupted === undefined ? {} : { signal: interrupted }
}

async function askOnTerminal(
  from: NodeJS.Process,
  question: string,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const { createInterface } = await import('node:readline/promises')
  if ((await discardTypedAhead(from)).includes('\u0003')) {
    interrupt(from)
    return null
  }
  const lines = createInterface({ input: from.stdin, output: from.stderr })
  try {
    return await new Promise((answer) => {
      lines.once('close', () => answer(null))
      // While a line is read, the line editor receives Ctrl-C instead of the process. It interrupts the command as usual.
      lines.once('SIGINT', () => {
        interrupt(from)
        lines.close()
      })
      void lines.question(question, signal === undefined ? {} : { signal }).then(answer, () => answer(null))
    })
  } finally {
    lines.close()
  }
}

function interrupt(from: NodeJS.Process): void {
  if (!from.emit('SIGINT', 'SIGINT')) from.kill(from.pid, 'SIGINT')
}

/** How long a typed key may take to arrive: when nothing arrived for so long, all keys typed before have been read. */
const KEY_DELAY_MS = 60

/**
 * Discards what was typed before a question is shown, so that it does not answer the question. Returns the discarded text. The terminal is
 * in raw mode meanwhile, because it would otherwise hold back a line without Enter.
 */
async function discardTypedAhead({ stdin }: NodeJS.Process): Promise<string> {
  let typed = ''
  const onData = (data: Buffer | string): void => {
    typed += String(data)
  }
  stdin.setRawMode?.(true)
  stdin.on('data', onData)
  stdin.resume()
  let known = -1
  while (known < typed.length) {
    known = typed.length
    await new Promise((resolve) => setTimeout(resolve, KEY_DELAY_MS))
  }
  stdin.off('data', onData)
  stdin.pause()
  stdin.setRawMode?.(false)
  return typed
}

/** Names of keys whose character is not their name. */
const KEY_NAMES: Readonly<Record<string, string>> = { '\r': 'enter', '\n': 'enter' }
/** Ctrl-C and Ctrl-D. */
const END_KEYS = ['\u0003', '\u0004']

/** Waits for a key, without Enter. The question is erased afterwards, so none of its lines may be wider than the terminal. */
function askForKey(
  { stdin, stderr }: NodeJS.Process,
  question: string,
  keys: readonly string[],
): Promise<string | null> {
  stderr.write(question)
  stdin.setRawMode(true)
  return new Promise((resolve) => {
    const end = (answer: string | null): void => {
      stdin.off('data', onData)
      stdin.off('end', onEnd)
      stdin.setRawMode(false)
      stdin.pause()
      stderr.write(`\r\u001b[2K${'\u001b[A'.repeat(question.split('\n').length - 1)}`)
      resolve(answer)
    }
    const onEnd = (): void => end(null)
    const onData = (data: Buffer): void => {
      // Several typed characters may arrive at once; the first valid one is the answer.
      const typed = [...data.toString('utf8')]
      const names = typed.map((key) =>
        END_KEYS.includes(key) ? null : (KEY_NAMES[key] ?? key.toLowerCase()),
      )
      const answer = names.find((name) => name === null || keys.includes(name))
      if (answer !== undefined) end(answer)
    }
    stdin.on('data', onData)
    stdin.once('end', onEnd)
    stdin.resume()
  })
}

/**
 * Returns true if output should be coloured. `NO_COLOR` turns colours off and `FORCE_COLOR` on (unless `0` or `false`);
 * otherwise colours are on for terminals that support them.
 */
export function isColorEnabled({ env, isTty }: Pick<Terminal, 'env' | 'isTty'>): boolean {
  if (isSet(env.NO_COLOR)) return false
  if (isSet(env.FORCE_COLOR)) return env.FORCE_COLOR !== '0' && env.FORCE_COLOR !== 'false'
  return isTty && env.TERM !== 'dumb'
}

export function createColors(terminal: Terminal): Colors {
  return picocolors.createColors(isColorEnabled(terminal))
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value !== ''
}
