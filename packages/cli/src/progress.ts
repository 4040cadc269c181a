/** A line that says how far long work has come: on a terminal alone, after a second, and gone when the work is done. */
import type { Terminal } from './terminal.ts'

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
