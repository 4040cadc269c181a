/** The output of the tour as data: steps that are printed as text, or collected for `--json`. */
import { formatTokenLimit, formatTokens } from '@tidemark/terminal/render/format-numbers'
import { renderTable } from '@tidemark/terminal/render/layout'
import type { Screen } from '@tidemark/terminal/render/screen'
import { wrapText } from '@tidemark/terminal/render/text'
import type { RunBill } from './tour-bill.ts'

/** A figure or a finding for programs that read `--json`. */
type StepData = Readonly<Record<string, unknown>>

export type TourStep =
  /** The heading of a screen. In a terminal, the tour waits for the user before it. */
  | { readonly kind: 'scene'; readonly text: string }
  /** `label`: what the text is about, such as a command. It is shown in a column before the text. */
  | { readonly kind: 'line'; readonly text: string; readonly label?: string; readonly data?: StepData }
  /** Something that happened to the conversation or its cache, such as a compaction. */
  | { readonly kind: 'act'; readonly text: string; readonly data?: StepData }
  /** A statement that was checked. */
  | { readonly kind: 'check'; readonly text: string; readonly isTrue: boolean }
  /** The size of each prompt of a run, in tokens. `isStopped`: the provider refused the next one. */
  | {
      readonly kind: 'chart'
      readonly text: string
      readonly sizes: readonly number[]
      readonly window: number
      readonly isStopped: boolean
    }
  | { readonly kind: 'bills'; readonly text: string; readonly rows: readonly BillRow[] }

/** A row of the table with the money. */
export interface BillRow extends Pick<RunBill, 'requests' | 'promptTokens' | 'hitRate' | 'dollars'> {
  readonly name: string
  readonly window: number
  readonly isFinished: boolean
}

/** Creates the heading of a screen. */
export function createTourHeading(text: string): TourStep {
  return { kind: 'scene', text }
}

/** Creates a paragraph of plain text. */
export function createTourLine(text: string, data?: StepData): TourStep {
  return data === undefined ? { kind: 'line', text } : { kind: 'line', text, data }
}

/** Creates a step about something that happened to the conversation or its cache. */
export function createTourEventStep(text: string, data?: StepData): TourStep {
  return data === undefined ? { kind: 'act', text } : { kind: 'act', text, data }
}

/** Formats an amount of money in cents: 0.4 cents, 31 cents; from a dollar on as $2.01. */
export function formatCentsOrDollars(dollars: number): string {
  if (dollars >= 0.995) return `$${dollars.toFixed(2)}`
  const cents = dollars * 100
  return `${cents < 9.95 ? cents.toFixed(1) : Math.round(cents)} cents`
}

/** Renders a step as lines, ready to be printed. */
export function renderTourStep(step: TourStep, screen: Screen): string {
  return `${renderLines(step, screen)
    .map((line) => line.replaceAll('→', screen.symbols.arrow).replaceAll('…', screen.symbols.more))
    .join('\n')}\n`
}

const LABEL_WIDTH = 27

function renderLines(step: TourStep, screen: Screen): readonly string[] {
  const { columns, colors, symbols } = screen
  switch (step.kind) {
    case 'scene':
      return ['', ...wrapText(step.text, columns).map(colors.bold)]
    case 'line':
      return wrapText(step.text, columns, `  ${step.label?.padEnd(LABEL_WIDTH) ?? ''}`)
    case 'act':
      return wrapText(step.text, columns, '  * ').map(colors.cyan)
    case 'check': {
      const mark = step.isTrue ? symbols.yes : symbols.no
      return wrapText(step.text, columns, `  ${mark} `).map(step.isTrue ? colors.green : colors.red)
    }
    case 'chart':
      return renderChart(step, screen)
    case 'bills':
      return renderBills(step.rows, screen)
  }
}

function renderChart(
  { text, sizes, window, isStopped }: Extract<TourStep, { readonly kind: 'chart' }>,
  { colors, symbols, columns }: Screen,
): readonly string[] {
  const levels = symbols.columns
  const cells = sizes.map((size) => {
    const level = Math.ceil((size / window) * levels.length)
    return levels[Math.min(levels.length, Math.max(1, level)) - 1] ?? ''
  })
  const end = isStopped ? ` ${symbols.no} refused` : ''
  const shown = cells.slice(-(columns - 2 - end.length)).join('')
  return [...wrapText(text, columns, '  '), `  ${colors.yellow(shown)}${isStopped ? colors.red(end) : ''}`]
}

function renderBills(rows: readonly BillRow[], screen: Screen): readonly string[] {
  const table = renderTable(
    rows,
    [
      { title: 'the same job', text: ({ name }) => name, cutAt: 'end' },
      { title: 'window', text: ({ window }) => formatTokenLimit(window), align: 'right' },
      { title: 'finished', text: ({ isFinished }) => (isFinished ? 'yes' : 'no') },
      { title: 'requests', text: ({ requests }) => String(requests), align: 'right' },
      { title: 'tokens', text: ({ promptTokens }) => formatTokens(promptTokens), align: 'right' },
      { title: 'cached', text: ({ hitRate }) => `${Math.round(hitRate * 100)}%`, align: 'right' },
      { title: 'cost', text: ({ dollars }) => formatCentsOrDollars(dollars), align: 'right' },
    ],
    { ...screen, columns: screen.columns - 2 },
  )
  return table.map((line) => `  ${line}`)
}
