/** `tidemark repair`: a clean copy of a damaged session. */
import { type Repaired, redactAll, repairLog } from 'tidemark'
import { count } from '../render/figures.ts'
import { screenFor } from '../render/screen.ts'
import { shown, shownPath } from '../render/text.ts'
import type { Terminal } from '../terminal.ts'

export interface RepairChoices {
  readonly output: string
  readonly json?: boolean
}

const DONE = 0
const FAILED = 1

export async function repair(file: string, choices: RepairChoices, terminal: Terminal): Promise<number> {
  const { interrupted } = terminal
  const outcome = await repairLog(
    file,
    choices.output,
    interrupted === undefined ? {} : { signal: interrupted },
  )
  if (!outcome.ok) {
    terminal.warn(`tidemark: ${shown(outcome.message)}\n`)
    return FAILED
  }
  const { ok, ...told } = outcome
  terminal.write(
    choices.json === true ? `${JSON.stringify(redactAll(told))}\n` : `${repairedText(outcome, terminal)}\n`,
  )
  return DONE
}

const MOST = 20

function repairedText(repaired: Repaired, terminal: Terminal): string {
  const { colors, symbols } = screenFor(terminal)
  const { leftOut, mended, completed } = repaired
  const lines = [
    ...leftOut.map(({ line, why }) => `line ${line} left out: ${shown(why)}`),
    ...mended.map(({ line, what }) => `line ${line} mended: ${shown(what)}`),
  ]
  const rest = lines.length - MOST
  return [
    `${colors.bold(shownPath(repaired.out))}: ${count(repaired.records, 'record')} of ${count(repaired.lines, 'line')}`,
    ...lines.slice(0, MOST).map((line) => `  ${line}`),
    ...(rest > 0 ? [colors.dim(`  ${symbols.more} and ${rest} more (--json lists them all)`)] : []),
    ...(completed.length > 0
      ? [`  ${count(completed.length, 'tool call')} without an answer got one that says so`]
      : []),
    ...(lines.length + completed.length === 0 ? ['  nothing was wrong with it'] : []),
  ].join('\n')
}
