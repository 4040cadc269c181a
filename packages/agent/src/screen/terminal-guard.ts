/**
 * Restores the terminal however the process ends: by a normal exit, an uncaught exception, or a signal. A few control sequences undo what
 * the screen library could not.
 */

/** Leaves the second screen. On the first screen it would move the cursor, so it is sent only if the screen fails to stop. */
const LEAVE_SECOND_SCREEN = '\u001b[?1049l'

/** Ends bracketed paste, key reports and synchronized output; shows the cursor and resets colours. */
export const RESTORE_SEQUENCE = '\u001b[?2026l\u001b[?2004l\u001b[<u\u001b[>4;0m\u001b[?25h\u001b[0m'

type EndSignal = 'SIGTERM' | 'SIGHUP'
const SIGNALS: Readonly<Record<EndSignal, number>> = { SIGTERM: 143, SIGHUP: 129 }

/** What the guard needs of a process, so that tests can pass a fake. */
export interface GuardedProcess {
  on(event: string, listener: (...values: unknown[]) => void): unknown
  off(event: string, listener: (...values: unknown[]) => void): unknown
  exit(code: number): unknown
  readonly stdin: { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  readonly stdout: GuardedOutput
  readonly stderr: GuardedOutput
}

interface GuardedOutput {
  write(text: string): unknown
  on(event: 'error', listener: () => void): unknown
  off(event: 'error', listener: () => void): unknown
}

interface TerminalGuard {
  /** Restores the terminal now and stops watching. */
  release(): void
}

/**
 * Watches for the end of the process. `stop` ends the screen. `close` saves open work and ends running work: it is called after a signal or
 * a failure, and gets at most one second. At a normal end the caller closes.
 */
export function guardTerminal(
  guarded: GuardedProcess,
  { stop, close }: { readonly stop: () => void; readonly close: () => Promise<void> },
): TerminalGuard {
  const { stdin, stdout, stderr } = guarded
  let isRestored = false
  let isEnding = false
  const restore = (): void => {
    if (isRestored) return
    isRestored = true
    try {
      stop()
    } catch {
      // The screen itself may have failed. These sequences restore the terminal without it.
      stdout.write(LEAVE_SECOND_SCREEN)
    }
    stdout.write(RESTORE_SEQUENCE)
    try {
      if (stdin.isTTY === true) stdin.setRawMode?.(false)
    } catch {
      // A closed terminal has no modes to restore.
    }
  }
  const end = (code: number): void => {
    isEnding = true
    restore()
    const limit = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS))
    void Promise.race([close().catch(() => undefined), limit]).then(() => guarded.exit(code))
  }
  const fail = (error: unknown): void => {
    // Errors while the process ends, such as a read from a closed terminal, must not cut the end short.
    if (isEnding) return
    restore()
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    stderr.write(`tidemark: the screen failed: ${text}\n`)
    end(1)
  }
  const endBySignal = (code: number) => (): void => {
    if (!isEnding) end(code)
  }
  const hangUp = endBySignal(SIGNALS.SIGHUP)
  const listeners: (readonly [string, (...values: unknown[]) => void])[] = [
    ['exit', restore],
    ['uncaughtException', fail],
    ['unhandledRejection', fail],
    ...Object.entries(SIGNALS).map(([signal, code]) => [signal, endBySignal(code)] as const),
  ]
  for (const [event, listener] of listeners) guarded.on(event, listener)
  // Writing to a closed terminal fails, perhaps before its signal arrives.
  for (const output of [stdout, stderr]) output.on('error', hangUp)
  return {
    release() {
      restore()
      for (const [event, listener] of listeners) guarded.off(event, listener)
      for (const output of [stdout, stderr]) output.off('error', hangUp)
    },
  }
}

/** Maximum time for `close` after a signal or a failure. */
const CLOSE_MS = 1_000
