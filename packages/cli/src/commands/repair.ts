/** `tidemark repair`: writes a clean copy of a damaged session. */

import { formatCount } from '@tidemark/terminal/render/format-numbers'
import { formatJson } from '@tidemark/terminal/render/json-output'
import { printError } from '@tidemark/terminal/render/print-errors'
import { createScreen } from '@tidemark/terminal/render/screen'
import { formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { EXIT_CODES, type Terminal, toSignalOption } from '@tidemark/terminal/terminal'
import { type BlobCopyReport, redactStrings, resolveLogPath, tidemarkHome } from 'tidemark/internal'
import { type RepairReport, repairLog } from 'tidemark/logs'

export interface RepairCommandOptions {
  readonly output: string
  readonly json?: boolean
}

export async function runRepairCommand(
  file: string,
  choices: RepairCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const home = tidemarkHome(terminal.env)
  const path = await resolveLogPath(file, terminal.env)
  const outcome = await repairLog(path, choices.output, { home, ...toSignalOption(terminal) })
  if (!outcome.ok) return printError(outcome.message, terminal)
  const { ok, ...result } = outcome
  terminal.write(
    choices.json === true ? `${formatJson(redactStrings(result))}\n` : `${formatRepair(outcome, terminal)}\n`,
  )
  return EXIT_CODES.done
}

const MAX_LINES = 20

function formatRepair(repaired: RepairReport, terminal: Terminal): string {
  const { colors, symbols } = createScreen(terminal)
  const { leftOut, repaired: changed, completed } = repaired
  const lines = [
    ...leftOut.map(
      ({ line, why }) => `line ${line} left out: ${toSafeLine(why.replaceAll('; it is left out', ''))}`,
    ),
    ...changed.map(({ line, what }) => `line ${line} repaired: ${toSafeLine(what)}`),
  ]
  const rest = lines.length - MAX_LINES
  const isWhole = lines.length + completed.length === 0
  const source = isWhole ? '' : ` from ${formatCount(repaired.lines, 'line')}`
  return [
    `${colors.bold(formatPath(repaired.out))}: ${formatCount(repaired.records, 'record')}${source}`,
    ...lines.slice(0, MAX_LINES).map((line) => `  ${line}`),
    ...(rest > 0 ? [colors.dim(`  ${symbols.more} and ${rest} more (--json lists them all)`)] : []),
    ...(completed.length > 0
      ? [`  ${formatCount(completed.length, 'tool call')} without a result got a placeholder result`]
      : []),
    ...(isWhole ? ['  no damage found; every record was copied'] : []),
    ...describeBlobCopy(repaired.blobs).map((line) => `  ${line}`),
  ].join('\n')
}

/** Describes, in one line each, how many large results were copied with a log, were left in their folder, or are missing. */
export function describeBlobCopy({ copied, to, left, from, missing }: BlobCopyReport): readonly string[] {
  const results = (count: number): string => formatCount(count, 'large result')
  const where = from.map((folder) => formatPath(folder)).join(' and ')
  return [
    ...(copied > 0 && to !== null ? [`${results(copied)} copied to ${formatPath(to)}`] : []),
    ...(left > 0
      ? [
          `${results(left)} not copied: only a copy in a folder HOME/sessions has blobs beside it; the originals are in ${where}`,
        ]
      : []),
    ...(missing.length > 0
      ? [`${results(missing.length)} missing in ${where}: the log has only the beginning and end of each`]
      : []),
  ]
}
