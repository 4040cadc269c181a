/** The progress line on standard error. It is shown only on a terminal, after one second, and never over a question. */
import type { Terminal } from '../terminal.ts'
import { cutTextEnd } from './text.ts'

export interface ProgressLine {
  /** Shows a text in place of the one before. Ignored in the first second, and within 100 ms of the last text. */
  show(text: string): void
  clear(): void
  /** Clears the line and shows nothing until `wait` ends, such as while the user is asked a question. */
  hideDuring<T>(wait: () => Promise<T>): Promise<T>
}

const PROGRESS_DELAY_MS = 1_000
const REFRESH_MS = 100
const CLEAR_LINE = '\r\u001b[2K'

/** Creates a progress line. `now` returns milliseconds of a monotonic clock. */
export function createProgressLine(terminal: Terminal, now: () => number): ProgressLine {
  const startedAt = now()
  let shownAt: number | null = null
  let isHidden = false
  function clear(): void {
    if (shownAt !== null) terminal.warn(CLEAR_LINE)
    shownAt = null
  }
  return {
    show(text) {
      const moment = now()
      if (isHidden || terminal.isErrorTty !== true || moment - startedAt < PROGRESS_DELAY_MS) return
      if (shownAt !== null && moment - shownAt < REFRESH_MS) return
      shownAt = moment
      terminal.warn(`${CLEAR_LINE}${cutTextEnd(text, terminal.columns - 1, '')}`)
    },
    clear,
    async hideDuring(wait) {
      clear()
      isHidden = true
      try {
        return await wait()
      } finally {
        isHidden = false
      }
    },
  }
}
