/**
 * Renders the context of a session: its size over time with its limits, and what filled it (by class, by tool, largest
 * items, files read repeatedly).
 */
import type { SessionReport } from 'tidemark/logs'
import {
  formatCount,
  formatInteger,
  formatPercent,
  formatTokenLimit,
  formatTokens,
} from '../render/format-numbers.ts'
import { renderBar, renderHeading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import {
  alignLeft,
  alignRight,
  cutTextEnd,
  cutTextStart,
  formatProjectPath,
  measureTextWidth,
  toSafeLine,
} from '../render/text.ts'

type ContextCurve = SessionReport['context']
type LargeBlock = SessionReport['largest'][number]

export function renderContextCurve(report: SessionReport, screen: Screen): readonly string[] {
  const drawn = renderPlot(report.context, plotMarks(report), screen)
  return drawn.length === 0
    ? []
    : [renderHeading('Context over time', formatLegend(report, screen), screen), ...drawn]
}

function formatLegend({ context, compactions, clearings }: SessionReport, { symbols }: Screen): string {
  const scale = createScale(context)
  const line = (value: number, name: string, symbol: string): string =>
    `${plotRow(value, scale) === null ? '' : `${symbol} `}${name} ${formatTokenLimit(value)}`
  return [
    context.window === null ? 'window not known' : line(context.window, 'window', symbols.edge),
    ...(context.autoCompact === null ? [] : [line(context.autoCompact, 'auto-compact', symbols.rule)]),
    ...(compactions.length === 0 ? [] : [`${symbols.compacted} compacted`]),
    ...(clearings.length === 0 ? [] : [`${symbols.cleared} cleared`]),
  ].join('  ')
}

function plotMarks({ compactions, clearings }: SessionReport): readonly PlotMark[] {
  return [
    ...compactions.map(({ afterCall }) => ({ afterCall, kind: 'compacted' as const })),
    ...clearings.map(({ afterCall }) => ({ afterCall, kind: 'cleared' as const })),
  ]
}

interface PlotMark {
  /** Number of model calls before the compaction or clearing that is marked. */
  readonly afterCall: number
  readonly kind: 'compacted' | 'cleared'
}

const LABEL_WIDTH = 5
const PLOT_MARGIN = LABEL_WIDTH + 3

function renderPlot(curve: ContextCurve, marks: readonly PlotMark[], screen: Screen): readonly string[] {
  const { points } = curve
  if (points.length === 0) return []
  const width = screen.columns - PLOT_MARGIN
  const scale = createScale(curve)
  const values = points.map(({ tokens }) => tokens)
  const rows = renderRows(toColumnHeights(values, width), curve, scale, screen)
  const ground = marks.length === 0 ? [] : [renderMarks(marks, points.length, width, screen)]
  return [...rows, renderFloor(width, screen), ...ground, renderCalls(curve, width, screen)]
}

/** Returns the height of each column of the plot: the largest value of the model calls that the column covers. */
function toColumnHeights(values: readonly number[], width: number): readonly number[] {
  return Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width))
    return values.slice(from, to).reduce((most, value) => Math.max(most, value), 0)
  })
}

function renderRows(
  heights: readonly number[],
  curve: ContextCurve,
  scale: PlotScale,
  screen: Screen,
): readonly string[] {
  const [window, autoCompact] = [plotRow(curve.window, scale), plotRow(curve.autoCompact, scale)]
  return Array.from({ length: scale.rows }, (_, index) => {
    const row = scale.rows - 1 - index
    const rule = row === autoCompact ? screen.symbols.rule : row === window ? screen.symbols.edge : ' '
    const value = plotLabel(row, scale)
    const label = `${alignRight(value === null ? '' : formatTokenLimit(value), LABEL_WIDTH)} ${screen.symbols.axis}`
    return `${screen.colors.dim(label)} ${renderArea(heights, { row, scale, rule }, screen)}`.trimEnd()
  })
}

interface PlotRow {
  readonly row: number
  readonly scale: PlotScale
  /** Character that fills the cells of this row above the curve. */
  readonly rule: string
}

function renderArea(
  heights: readonly number[],
  { row, scale, rule }: PlotRow,
  { symbols, colors }: Screen,
): string {
  const cells = heights.map((height) => {
    const eighths = Math.round((height / scale.top) * scale.rows * 8) - row * 8
    return eighths > 0 ? (symbols.columns[Math.min(8, eighths) - 1] ?? '') : null
  })
  return groupCells(cells)
    .map(({ isArea, cells: run }) =>
      isArea
        ? colors.cyan(run.join(''))
        : rule === ' '
          ? rule.repeat(run.length)
          : colors.yellow(rule.repeat(run.length)),
    )
    .join('')
}

interface CellRun {
  readonly isArea: boolean
  readonly cells: (string | null)[]
}

/** Groups adjacent cells of the same colour, so that a row of the plot needs few colour codes. */
function groupCells(cells: readonly (string | null)[]): readonly CellRun[] {
  const runs: CellRun[] = []
  for (const cell of cells) {
    const last = runs.at(-1)
    if (last?.isArea === (cell !== null)) last.cells.push(cell)
    else runs.push({ isArea: cell !== null, cells: [cell] })
  }
  return runs
}

function renderFloor(width: number, { symbols, colors }: Screen): string {
  return colors.dim(`${alignRight('0', LABEL_WIDTH)} ${symbols.corner}${symbols.floor.repeat(width + 1)}`)
}

function renderMarks(
  marks: readonly PlotMark[],
  calls: number,
  width: number,
  { symbols, colors }: Screen,
): string {
  const cells = Array.from({ length: width }, () => ' ')
  // Compaction marks are drawn after clearing marks. In a column with both, the compaction is then visible.
  const ordered = marks.toSorted(
    (one, other) => Number(one.kind === 'compacted') - Number(other.kind === 'compacted'),
  )
  for (const { afterCall, kind } of ordered) {
    const column = Math.floor((afterCall * width) / Math.max(1, calls))
    cells[Math.min(width - 1, column)] = symbols[kind]
  }
  return `${' '.repeat(PLOT_MARGIN)}${colors.yellow(cells.join('').trimEnd())}`
}

function renderCalls({ points }: ContextCurve, width: number, { colors, time, symbols }: Screen): string {
  const [first, last] = [points[0]?.at ?? '', points.at(-1)?.at ?? '']
  const isOneDay = time.day(first) === time.day(last)
  const name = (number: number, at: string): string =>
    `call ${formatInteger(number)} ${symbols.dot} ${isOneDay ? time.time(at) : time.full(at)}`
  const begin = name(1, first)
  const end = points.length === 1 ? '' : name(points.length, last)
  const gap = width - measureTextWidth(begin) - measureTextWidth(end)
  return colors.dim(
    `${' '.repeat(PLOT_MARGIN)}${gap < 2 ? begin : `${begin}${' '.repeat(gap)}${end}`}`.trimEnd(),
  )
}

// The vertical scale of the plot, in tokens. Its steps are round numbers, two rows each. It is high enough for the curve,
// and for limits that the curve comes near.

interface PlotScale {
  /** Tokens at the upper edge. */
  readonly top: number
  /** Tokens between two labels. */
  readonly step: number
  readonly rows: number
}

const ROWS_PER_STEP = 2
const MIN_STEPS = 4
/** A limit is drawn only if the peak of the curve reaches this share of it; otherwise the curve would be flat. */
const MIN_FILLED = 0.35
const ROUND_STEPS = [10, 5, 2.5, 2]

function createScale({ window, autoCompact, points }: ContextCurve): PlotScale {
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 1)
  const limits = [window, autoCompact].flatMap((line) =>
    line !== null && peak >= line * MIN_FILLED ? [line] : [],
  )
  const most = Math.max(peak, ...limits)
  const step = chooseStep(most)
  const steps = Math.ceil(most / step)
  return { top: step * steps, step, rows: steps * ROWS_PER_STEP }
}

/** Returns the largest round step that divides the range from 0 to `most` into at least four steps. */
function chooseStep(most: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(most))
  const steps = [magnitude, magnitude / 10].flatMap((power) =>
    ROUND_STEPS.map((round) => (round * power) / 10),
  )
  return steps.find((step) => Math.ceil(most / step) >= MIN_STEPS) ?? magnitude / MIN_STEPS
}

/** Returns the row in which a value is drawn, counted from the bottom; null if the value is above the plot. */
function plotRow(value: number | null, { top, rows }: PlotScale): number | null {
  if (value === null || value > top) return null
  return Math.min(rows - 1, Math.floor((value / top) * rows))
}

/** Returns the label of a row: the value at its upper edge. Returns null for rows that get no label. */
function plotLabel(row: number, { step }: PlotScale): number | null {
  return (row + 1) % ROWS_PER_STEP === 0 ? ((row + 1) / ROWS_PER_STEP) * step : null
}

// What filled the context: token classes, tools, largest items, files read repeatedly.

const TOKEN_CLASS_NAMES: Readonly<Record<Exclude<keyof SessionReport['tokensByClass'], 'total'>, string>> = {
  toolResults: 'tool results',
  toolRequests: 'tool requests',
  thinking: 'thinking',
  assistantText: 'assistant text',
  human: 'prompts',
  summaries: 'summaries',
  attachments: 'attachments',
  localCommandOutput: 'command output',
  media: 'media',
  other: 'other',
}

const NAME_WIDTH = 16
const FIGURES_WIDTH = 17

export function renderTokenClasses({ tokensByClass }: SessionReport, screen: Screen): readonly string[] {
  const { total, ...parts } = tokensByClass
  if (total === 0) return []
  const rows = Object.entries(parts)
    .filter(([, amount]) => amount > 0)
    .sort(([, one], [, other]) => other - one)
  const most = rows[0]?.[1] ?? 1
  const width = screen.columns - NAME_WIDTH - FIGURES_WIDTH - 2
  return [
    renderHeading('What filled the context', `${formatTokens(total)} tokens, estimated`, screen),
    ...rows.map(([name, amount]) => {
      const drawn = alignLeft(renderBar(amount / most, width, screen.symbols), width)
      const figures = alignRight(formatPercent(amount / total), 8) + alignRight(formatTokens(amount), 9)
      return `  ${alignLeft(TOKEN_CLASS_NAMES[name as keyof typeof TOKEN_CLASS_NAMES], NAME_WIDTH)}${screen.colors.cyan(drawn)}${figures}`
    }),
  ]
}

const MAX_TOOLS = 8

export function renderToolUsage({ byTool }: SessionReport, screen: Screen): readonly string[] {
  if (byTool.length === 0) return []
  const shownTools = byTool.slice(0, MAX_TOOLS)
  const most = Math.max(
    1,
    ...shownTools.map(({ requestTokens, resultTokens }) => requestTokens + resultTokens),
  )
  const width = screen.columns - NAME_WIDTH - 29
  const title = alignLeft('Tools', screen.columns - 27)
  const columns = alignRight('calls', 9) + alignRight('requests', 9) + alignRight('results', 9)
  const rows = shownTools.map(({ tool, calls, requestTokens, resultTokens }) => {
    const drawn = alignLeft(renderBar((requestTokens + resultTokens) / most, width, screen.symbols), width)
    const name = alignLeft(cutTextEnd(toSafeLine(tool), NAME_WIDTH - 1, screen.symbols.more), NAME_WIDTH)
    const figures =
      alignRight(formatInteger(calls), 9) +
      alignRight(formatTokens(requestTokens), 9) +
      alignRight(formatTokens(resultTokens), 9)
    return `  ${name}${screen.colors.cyan(drawn)}${figures}`
  })
  return [
    `${screen.colors.bold(title)}${screen.colors.dim(columns)}`,
    ...rows,
    ...renderMore(byTool.length - MAX_TOOLS, 'tool', screen),
  ]
}

const MAX_ITEMS = 8

export function renderLargestItems(report: SessionReport, screen: Screen): readonly string[] {
  const items = report.largest.slice(0, MAX_ITEMS)
  if (items.length === 0) return []
  const rows = items.map((item) => {
    const name = alignLeft(
      cutTextEnd(toSafeLine(itemName(item)), NAME_WIDTH - 1, screen.symbols.more),
      NAME_WIDTH,
    )
    const room = screen.columns - 10 - NAME_WIDTH
    return `${alignRight(formatTokens(item.tokens), 8)}  ${name}${screen.colors.dim(itemText(item, report.project, room, screen))}`.trimEnd()
  })
  return [renderHeading('Largest items', 'tokens, estimated', screen), ...rows]
}

function itemName({ kind, tool }: LargeBlock): string {
  if (tool === null) return kind
  return kind === 'request' ? `${tool} (request)` : tool
}

function itemText({ what }: LargeBlock, project: string | null, room: number, { symbols }: Screen): string {
  const isPath = /^[~./\\]|^[A-Za-z]:\\/.test(what) && !what.includes(' ')
  return isPath
    ? cutTextStart(formatProjectPath(what, project), room, symbols.more)
    : cutTextEnd(toSafeLine(what), room, symbols.more)
}

const MAX_READS = 6

export function renderRepeatedReads(
  { duplicateReads, project }: SessionReport,
  screen: Screen,
): readonly string[] {
  if (duplicateReads.length === 0) return []
  const wasted = duplicateReads.reduce((sum, read) => sum + read.tokens, 0)
  const rows = duplicateReads.slice(0, MAX_READS).map((read) => {
    const path = cutTextStart(formatProjectPath(read.path, project), screen.columns - 18, screen.symbols.more)
    return `${alignRight(formatTokens(read.tokens), 8)}  ${alignLeft(`${formatInteger(read.count)}${screen.symbols.times}`, 6)}${screen.colors.dim(path)}`
  })
  return [
    renderHeading(
      'Read again',
      `${formatCount(duplicateReads.length, 'file')}, ${formatTokens(wasted)} tokens repeated`,
      screen,
    ),
    ...rows,
    ...renderMore(duplicateReads.length - MAX_READS, 'file', screen),
  ]
}

function renderMore(rest: number, what: string, { colors, symbols }: Screen): readonly string[] {
  return rest > 0 ? [colors.dim(`  ${symbols.more} and ${formatCount(rest, what)} more`)] : []
}
