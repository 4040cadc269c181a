/** How `tidemark compact` ends where nothing was done: one line, and the code that says why. */
import type { CompactLogRefusal } from 'tidemark'
import { shown } from '../render/inspect/shown.ts'
import type { Terminal } from '../terminal.ts'

const FAILED = 1
const WRONG_USE = 2
/** As a shell reports a process that Ctrl-C ended. */
export const INTERRUPTED = 130

export function refusedBy(refusal: CompactLogRefusal, terminal: Terminal): number {
  if (refusal.reason === 'aborted' || terminal.interrupted?.aborted === true) {
    terminal.warn('tidemark: called off; nothing was changed.\n')
    return INTERRUPTED
  }
  if (refusal.reason === 'declined') {
    terminal.warn('Nothing was changed.\n')
    return FAILED
  }
  return refusal.reason === 'bad-record'
    ? wrongUse(refusal.message, terminal)
    : failed(refusal.message, terminal)
}

export function failed(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)}\n`)
  return FAILED
}

export function wrongUse(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)} See tidemark compact --help.\n`)
  return WRONG_USE
}
