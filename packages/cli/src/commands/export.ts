/** `tidemark export`: a session as Markdown, on standard output or in a new file. */
import { exportLog, exportToFile } from 'tidemark'
import { count } from '../render/figures.ts'
import { shown, shownPath } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'

export interface ExportChoices {
  readonly output?: string
  readonly title?: string
  /** `--no-redact` */
  readonly redact?: boolean
  readonly json?: boolean
}

const DONE = 0
const FAILED = 1

export async function exportSession(
  file: string,
  choices: ExportChoices,
  terminal: Terminal,
): Promise<number> {
  const { output, title, redact = true } = choices
  const options = { redacts: redact, ...(title === undefined ? {} : { title }) }
  return output === undefined
    ? toOutput(file, { ...options, json: choices.json === true }, terminal)
    : toFile(file, { ...options, json: choices.json === true, output }, terminal)
}

interface Wanted {
  readonly redacts: boolean
  readonly title?: string
  readonly json: boolean
}

async function toOutput(file: string, { json, ...options }: Wanted, terminal: Terminal): Promise<number> {
  const log = await exportLog(file, options)
  if (!log.ok) return refused(log.message, terminal)
  const pieces: string[] = []
  for await (const piece of log.pieces) {
    if (terminal.interrupted?.aborted === true) throw new Error('interrupted')
    if (json) pieces.push(piece)
    else terminal.write(piece)
  }
  if (json) terminal.write(`${JSON.stringify({ records: log.records, markdown: pieces.join('') })}\n`)
  return DONE
}

async function toFile(
  file: string,
  { json, output, ...options }: Wanted & { readonly output: string },
  terminal: Terminal,
): Promise<number> {
  const outcome = await exportToFile(file, output, options)
  if (!outcome.ok) return refused(outcome.message, terminal)
  const { ok, ...told } = outcome
  terminal.write(
    json ? `${JSON.stringify(told)}\n` : `${shownPath(output)}: ${count(outcome.records, 'record')}\n`,
  )
  return DONE
}

function refused(message: string, terminal: Terminal): number {
  terminal.warn(`tidemark: ${shown(message)}\n`)
  return FAILED
}
