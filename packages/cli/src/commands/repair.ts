/** `tidemark repair`: a clean copy of a damaged session. */
import { type Repaired, redactAll, repairLog } from 'tidemark'
import { count } from '../render/figures.ts'
import { screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import { signalOf, type Terminal } from '../terminal.ts'
import { EXIT, printError } from './exit-codes.ts'

export interface RepairChoices {
  readonly output: string
  readonly json?: boolean
}

export async function repair(file: string, choices: RepairChoices, terminal: Terminal): Promise<number> {
  const outcome = await repairLog(file, choices.output, signalOf(terminal))
  if (!outcome.ok) return printError(outcome.message, terminal)
  const { ok, ...result } = outcome
  terminal.write(
    choices.json === true ? `${JSON.stringify(redactAll(result))}\n` : `${repairedText(outcome, terminal)}\n`,
  )
  return EXIT.done
}

const MOST = 20

function repairedText(repaired: Repaired, terminal: Terminal): string {
  const { colors, symbols } = screenFor(terminal)
  const { leftOut, mended, completed } = repaired
  const lines = [
    ...leftOut.map(({ line, why }) => `line ${line} left out: ${shown(why)}`),
    ...mended.map(({ line, what }) => `line ${line} repaired: ${shown(what)}`),
  ]
  const rest = lines.length - MOST
  return [
    `${colors.bold(shownPath(repaired.out))}: ${count(repaired.records, 'record')} of ${count(repaired.lines, 'line')}`,
    ...lines.slice(0, MOST).map((line) => `  ${line}`),
    ...(rest > 0 ? [colors.dim(`  ${symbols.more} and ${rest} more (--json lists them all)`)] : []),
    ...(completed.length > 0
      ? [`  ${count(completed.length, 'tool call')} without a result got a placeholder result`]
      : []),
    ...(lines.length + completed.length === 0 ? ['  no damage found'] : []),
  ].join('\n')
}
