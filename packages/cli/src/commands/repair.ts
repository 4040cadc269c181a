/** `tidemark repair`: writes a clean copy of a damaged session. */

import { redactStrings } from 'tidemark/internal'
import { type RepairReport, repairLog } from 'tidemark/logs'
import { formatCount } from '../render/format-numbers.ts'
import { createScreen } from '../render/screen.ts'
import { formatPath, sanitizeText } from '../render/text.ts'
import { type Terminal, toSignalOption } from '../terminal.ts'
import { EXIT_CODES } from './exit-codes.ts'
import { printError } from './print-errors.ts'

export interface RepairCommandOptions {
  readonly output: string
  readonly json?: boolean
}

export async function runRepairCommand(
  file: string,
  choices: RepairCommandOptions,
  terminal: Terminal,
): Promise<number> {
  const outcome = await repairLog(file, choices.output, toSignalOption(terminal))
  if (!outcome.ok) return printError(outcome.message, terminal)
  const { ok, ...result } = outcome
  terminal.write(
    choices.json === true
      ? `${JSON.stringify(redactStrings(result))}\n`
      : `${formatRepair(outcome, terminal)}\n`,
  )
  return EXIT_CODES.done
}

const MAX_LINES = 20

function formatRepair(repaired: RepairReport, terminal: Terminal): string {
  const { colors, symbols } = createScreen(terminal)
  const { leftOut, repaired: changed, completed } = repaired
  const lines = [
    ...leftOut.map(({ line, why }) => `line ${line} left out: ${sanitizeText(why)}`),
    ...changed.map(({ line, what }) => `line ${line} repaired: ${sanitizeText(what)}`),
  ]
  const rest = lines.length - MAX_LINES
  return [
    `${colors.bold(formatPath(repaired.out))}: ${formatCount(repaired.records, 'record')} of ${formatCount(repaired.lines, 'line')}`,
    ...lines.slice(0, MAX_LINES).map((line) => `  ${line}`),
    ...(rest > 0 ? [colors.dim(`  ${symbols.more} and ${rest} more (--json lists them all)`)] : []),
    ...(completed.length > 0
      ? [`  ${formatCount(completed.length, 'tool call')} without a result got a placeholder result`]
      : []),
    ...(lines.length + completed.length === 0 ? ['  no damage found'] : []),
  ].join('\n')
}
