/**
 * Gives the terminal back as it was, however the process ends: a normal exit, an exception that nobody caught, or a
 * signal. What the library could not undo itself is undone with a few control sequences.
 */

/** Leaves the second screen. On the first one it would move the cursor, so it is sent only if the screen cannot stop. */
const LEAVE_SECOND_SCREEN = '\u001b[?1049l'

/** Ends bracketed paste, key reports and synchronized output; shows the cursor and resets colours. */
export const RESTORE_SEQUENCE = '\u001b[?2026l\u001b[?2004l\u001b[<u\u001b[>4;0m\u001b[?25h\u001b[0m'

type EndSignal = 'SIGTERM' | 'SIGHUP'
const SIGNALS: Readonly<Record<EndSignal, number>> = { SIGTERM: 143, SIGHUP: 129 }

export interface GuardedProcess {
  on(event: string, listener: (...values: unknown[]) => void): unknown
  off(event: string, listener: (...values: unknown[]) => void): unknown
  exit(code: number): unknown
  readonly stdin: { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  readonly stdout: { write(text: string): unknown }
  readonly stderr: { write(text: string): unknown }
}

export interface TerminalGuard {
  /** Restores the terminal now and stops watching. */
  release(): void
}

/**
 * Watches for the end of the process. `stop` ends the screen; `close` saves what is open, for which a signal waits at
 * most a second.
 */
export function guardTerminal(
  guarded: GuardedProcess,
  { stop, close }: { readonly stop: () => void; readonly close: () => Promise<void> },
): TerminalGuard {
  let isRestored = false
  const restore = (): void => {
    if (isRestored) return
    isRestored = true
    try {
      stop()
    } catch {
      // The screen itself may be what has failed. The sequences restore the terminal without it.
      guarded.stdout.write(LEAVE_SECOND_SCREEN)
    }
    guarded.stdout.write(RESTORE_SEQUENCE)
    if (guarded.stdin.isTTY === true) guarded.stdin.setRawMode?.(false)
  }
  const fail = (error: unknown): void => {
    restore()
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
    guarded.stderr.write(`tidemark: the screen failed: ${text}\n`)
    guarded.exit(1)
  }
  const endBySignal = (code: number) => (): void => {
    restore()
    const limit = new Promise<void>((resolve) => setTimeout(resolve, CLOSE_MS))
    void Promise.race([close().catch(() => undefined), limit]).then(() => guarded.exit(code))
  }
  const listeners: (readonly [string, (...values: unknown[]) => void])[] = [
    ['exit', restore],
    ['uncaughtException', fail],
    ['unhandledRejection', fail],
    ...Object.entries(SIGNALS).map(([signal, code]) => [signal, endBySignal(code)] as const),
  ]
  for (const [event, listener] of listeners) guarded.on(event, listener)
  return {
    release() {
      restore()
      for (const [event, listener] of listeners) guarded.off(event, listener)
    },
  }
}

const CLOSE_MS = 1_000
