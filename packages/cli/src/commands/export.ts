/** `tidemark export`: writes a session as Markdown, to standard output or to a new file. */

import { exportLogToFile } from 'tidemark/internal'
import { exportLog } from 'tidemark/logs'
import { formatCount } from '../render/format-numbers.ts'
import { formatPath } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { printError } from './print-errors.ts'

export interface ExportCommandOptions {
  readonly output?: string
  readonly title?: string
  /** True if secrets are removed from the exported text; false with `--no-redact`. */
  readonly redact?: boolean
  readonly json?: boolean
}

export async function exportSession(
  file: string,
  choices: ExportCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { output, title, redact = true, json = false } = choices
  const options = { redacts: redact, ...(title === undefined ? {} : { title }) }
  if (output !== undefined) {
    const outcome = await exportLogToFile(file, output, options)
    if (!outcome.ok) return printError(outcome.message, terminal)
    const { ok, ...result } = outcome
    terminal.write(
      json
        ? `${JSON.stringify(result)}\n`
        : `${formatPath(output)}: ${formatCount(outcome.records, 'record')}\n`,
    )
    return EXIT_CODES.done
  }
  const log = await exportLog(file, options)
  if (!log.ok) return printError(log.message, terminal)
  const pieces: string[] = []
  for await (const piece of log.pieces) {
    if (terminal.interrupted?.aborted === true) throw new Error('interrupted')
    if (json) pieces.push(piece)
    else terminal.write(piece)
  }
  if (json) terminal.write(`${JSON.stringify({ records: log.records, markdown: pieces.join('') })}\n`)
  return EXIT_CODES.done
}
