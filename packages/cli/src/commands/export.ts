/** `tidemark export`: writes a session as Markdown, to standard output or to a new file. */

import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError } from '@tidemark/terminal/render/print-errors'
import { formatPath } from '@tidemark/terminal/render/text'
import type { Terminal } from '@tidemark/terminal/terminal'
import { EXIT_CODES } from '@tidemark/terminal/terminal'
import { exportLogToFile, resolveLogPath, tidemarkHome } from 'tidemark/internal'
import { exportLog } from 'tidemark/logs'

export interface ExportCommandOptions {
  readonly output?: string
  readonly title?: string
  /** True if secrets are removed from the exported text; false with `--no-redact`. */
  readonly redact?: boolean
  readonly json?: boolean
}

export async function runExportCommand(
  given: string,
  choices: ExportCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const { output, title, redact = true, json = false } = choices
  const home = tidemarkHome(terminal.env)
  const file = await resolveLogPath(given, terminal.env)
  const options = { redacts: redact, home, ...(title === undefined ? {} : { title }) }
  if (output !== undefined) {
    const outcome = await exportLogToFile(file, output, options)
    if (!outcome.ok) return printError(outcome.message, terminal)
    const { ok, ...result } = outcome
    terminal.write(
      json ? `${formatJson(result)}\n` : `${formatPath(output)}: ${formatCount(outcome.records, 'record')}\n`,
    )
    return printMissingBlobs(outcome.missingBlobs, terminal)
  }
  const log = await exportLog(file, options)
  if (!log.ok) return printError(log.message, terminal)
  const pieces: string[] = []
  for await (const piece of log.pieces) {
    if (terminal.interrupted?.aborted === true) throw new Error('interrupted')
    if (json) pieces.push(piece)
    else terminal.write(piece)
  }
  const { records, missingBlobs } = log
  if (json) terminal.write(`${formatJson({ records, missingBlobs, markdown: pieces.join('') })}\n`)
  return printMissingBlobs(missingBlobs, terminal)
}

/** Prints an error if large results are missing from the export. Returns the exit code of the command. */
function printMissingBlobs(missing: readonly string[], terminal: Terminal): number {
  if (missing.length === 0) return EXIT_CODES.done
  const results = formatCount(missing.length, 'large result')
  return printError(
    `${results} could not be read from the blobs: the export has only the beginning and end of each, and says where.`,
    terminal,
  )
}
