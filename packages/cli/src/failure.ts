/** What a person is told when a command fails: one line, and the stack only for those who ask for it. */
import { TidemarkError } from '@tidemark/core'
import type { Terminal } from './terminal.ts'

export function tellFailure(error: unknown, terminal: Terminal): void {
  if (terminal.env.TIDEMARK_DEBUG === '1' && error instanceof Error) terminal.warn(`${error.stack}\n`)
  else terminal.warn(`tidemark: ${lineOf(error)}\n`)
}

function lineOf(error: unknown): string {
  if (error instanceof TidemarkError) return inOneLine(error.message)
  const message = inOneLine(error instanceof Error ? error.message : String(error))
  return `${message} (a fault of tidemark; TIDEMARK_DEBUG=1 shows where)`
}

export function inOneLine(text: string): string {
  return text.trim().replace(/\s*\n\s*/g, ' ')
}
