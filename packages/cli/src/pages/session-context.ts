/**
 * The context of a session: its size over the calls as a curve with its limits, the rewrites, and what filled it (by class,
 * by tool, the largest items, files read more than once).
 */
import type {
  ClearingFound,
  CompactionFound,
  ContextCurve,
  LargeItem,
  SessionReport,
  TokensByKind,
} from 'tidemark'
import { count, limit, percent, tokens, whole } from '../render/figures.ts'
import { bar, heading } from '../render/layout.ts'
import type { Screen } from '../render/screen.ts'
import { cutEnd, cutStart, left, projectPath, right, shown, widthOf } from '../render/text.ts'

export function context(report: SessionReport, screen: Screen): readonly string[] {
  const drawn = plot(report.context, marksOf(report), screen)
  return drawn.length === 0 ? [] : [heading('Context over time', legend(report, screen), screen), ...drawn]
}

function legend({ context: curve, compactions, clearings }: SessionReport, { symbols }: Screen): string {
  const scale = scaleFor(curve)
  const line = (value: number, name: string, symbol: string): string =>
    `${rowOf(value, scale) === null ? '' : `${symbol} `}${name} ${limit(value)}`
  return [
    curve.window === null ? 'window not known' : line(curve.window, 'window', symbols.edge),
    ...(curve.autoCompact === null ? [] : [line(curve.autoCompact, 'auto-compact', symbols.rule)]),
    ...(compactions.length === 0 ? [] : [`${symbols.compacted} compacted`]),
    ...(clearings.length === 0 ? [] : [`${symbols.cleared} cleared`]),
  ].join('  ')
}

function marksOf({ compactions, clearings }: SessionReport): readonly PlotMark[] {
  return [
    ...compactions.map(({ afterCall }) => ({ afterCall, kind: 'compacted' as const })),
    ...clearings.map(({ afterCall }) => ({ afterCall, kind: 'cleared' as const })),
  ]
}

interface PlotMark {
  /** Points of the curve before the mark. */
  readonly afterCall: number
  readonly kind: 'compacted' | 'cleared'
}

const LABEL = 5
const MARGIN = LABEL + 3

function plot(curve: ContextCurve, marks: readonly PlotMark[], screen: Screen): readonly string[] {
  const { points } = curve
  if (points.length === 0) return []
  const width = screen.columns - MARGIN
  const scale = scaleFor(curve)
  const values = points.map(({ tokens }) => tokens)
  const rows = rowsOf(spread(values, width), curve, scale, screen)
  const ground = marks.length === 0 ? [] : [markLine(marks, points.length, width, screen)]
  return [...rows, floorLine(width, screen), ...ground, callLine(curve, width, screen)]
}

/** One height for each column: the largest of the calls that share it; with few calls, one call has several columns. */
function spread(values: readonly number[], width: number): readonly number[] {
  return Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width))
    return values.slice(from, to).reduce((most, value) => Math.max(most, value), 0)
  })
}

function rowsOf(
  heights: readonly number[],
  curve: ContextCurve,
  scale: Scale,
  screen: Screen,
): readonly string[] {
  const [window, autoCompact] = [rowOf(curve.window, scale), rowOf(curve.autoCompact, scale)]
  return Array.from({ length: scale.rows }, (_, index) => {
    const row = scale.rows - 1 - index
    const rule = row === autoCompact ? screen.symbols.rule : row === window ? screen.symbols.edge : ' '
    const value = labelOf(row, scale)
    const label = `${right(value === null ? '' : limit(value), LABEL)} ${screen.symbols.axis}`
    return `${screen.colors.dim(label)} ${area(heights, { row, scale, rule }, screen)}`.trimEnd()
  })
}

interface Row {
  readonly row: number
  readonly scale: Scale
  /** What fills the empty cells of the row. */
  readonly rule: string
}

function area(heights: readonly number[], { row, scale, rule }: Row, { symbols, colors }: Screen): string {
  const cells = heights.map((height) => {
    const eighths = Math.round((height / scale.top) * scale.rows * 8) - row * 8
    return eighths > 0 ? (symbols.columns[Math.min(8, eighths) - 1] ?? '') : null
  })
  return runsOf(cells)
    .map(({ isArea, cells: run }) =>
      isArea
        ? colors.cyan(run.join(''))
        : rule === ' '
          ? rule.repeat(run.length)
          : colors.yellow(rule.repeat(run.length)),
    )
    .join('')
}

interface Run {
  readonly isArea: boolean
  readonly cells: (string | null)[]
}

/** Cells of one colour together, so that a row needs few colour codes. */
function runsOf(cells: readonly (string | null)[]): readonly Run[] {
  const runs: Run[] = []
  for (const cell of cells) {
    const last = runs.at(-1)
    if (last?.isArea === (cell !== null)) last.cells.push(cell)
    else runs.push({ isArea: cell !== null, cells: [cell] })
  }
  return runs
}

function floorLine(width: number, { symbols, colors }: Screen): string {
  return colors.dim(`${right('0', LABEL)} ${symbols.corner}${symbols.floor.repeat(width + 1)}`)
}

function markLine(
  marks: readonly PlotMark[],
  calls: number,
  width: number,
  { symbols, colors }: Screen,
): string {
  const cells = Array.from({ length: width }, () => ' ')
  // Compactions last: in a column that has both, the compaction is shown.
  const ordered = marks.toSorted(
    (one, other) => Number(one.kind === 'compacted') - Number(other.kind === 'compacted'),
  )
  for (const { afterCall, kind } of ordered) {
    const column = Math.floor((afterCall * width) / Math.max(1, calls))
    cells[Math.min(width - 1, column)] = symbols[kind]
  }
  return `${' '.repeat(MARGIN)}${colors.yellow(cells.join('').trimEnd())}`
}

function callLine({ points }: ContextCurve, width: number, { colors, moments, symbols }: Screen): string {
  const [first, last] = [points[0]?.at ?? '', points.at(-1)?.at ?? '']
  const isOneDay = moments.day(first) === moments.day(last)
  const name = (number: number, at: string): string =>
    `call ${whole(number)} ${symbols.dot} ${isOneDay ? moments.time(at) : moments.full(at)}`
  const begin = name(1, first)
  const end = points.length === 1 ? '' : name(points.length, last)
  const gap = width - widthOf(begin) - widthOf(end)
  return colors.dim(`${' '.repeat(MARGIN)}${gap < 2 ? begin : `${begin}${' '.repeat(gap)}${end}`}`.trimEnd())
}

// The vertical scale: round steps of two rows each, high enough for the curve and the limits worth showing.

interface Scale {
  readonly top: number
  readonly step: number
  readonly rows: number
}

const ROWS_A_STEP = 2
const LEAST_STEPS = 4
/** A limit is left out of the plot if the curve would fill less than this share of it. */
const LEAST_FILLED = 0.35
const ROUND = [10, 5, 2.5, 2]

function scaleFor({ window, autoCompact, points }: ContextCurve): Scale {
  const peak = points.reduce((most, { tokens }) => Math.max(most, tokens), 1)
  const limits = [window, autoCompact].flatMap((line) =>
    line !== null && peak >= line * LEAST_FILLED ? [line] : [],
  )
  const most = Math.max(peak, ...limits)
  const step = stepFor(most)
  const steps = Math.ceil(most / step)
  return { top: step * steps, step, rows: steps * ROWS_A_STEP }
}

/** The largest round step that gives at least four steps. */
function stepFor(most: number): number {
  const magnitude = 10 ** Math.floor(Math.log10(most))
  const steps = [magnitude, magnitude / 10].flatMap((power) => ROUND.map((round) => (round * power) / 10))
  return steps.find((step) => Math.ceil(most / step) >= LEAST_STEPS) ?? magnitude / LEAST_STEPS
}

/** The row of a value, counted from below; null if it is above the plot. */
function rowOf(value: number | null, { top, rows }: Scale): number | null {
  if (value === null || value > top) return null
  return Math.min(rows - 1, Math.floor((value / top) * rows))
}

/** The value at the upper edge of a row, if that is a whole step. */
function labelOf(row: number, { step }: Scale): number | null {
  return (row + 1) % ROWS_A_STEP === 0 ? ((row + 1) / ROWS_A_STEP) * step : null
}

// The compactions and clearings of a session, in order.

export function acts(report: SessionReport, screen: Screen): readonly string[] {
  const { compactions, clearings } = report
  const rows = [
    ...compactions.map((act) => ({ act, text: compactionLine(act, screen) })),
    ...clearings.map((act) => ({ act, text: clearingLine(act, screen) })),
  ].sort((one, other) => one.act.afterCall - other.act.afterCall || earlier(one.act.at, other.act.at))
  if (rows.length === 0) return []
  const counts = [
    ...(compactions.length > 0 ? [count(compactions.length, 'compaction')] : []),
    ...(clearings.length > 0 ? [count(clearings.length, 'clearing')] : []),
  ]
  return [heading('Rewrites', counts.join(', '), screen), ...rows.map(({ text }) => text)]
}

function earlier(one: string | null, other: string | null): number {
  return (one ?? '') < (other ?? '') ? -1 : 1
}

function compactionLine(act: CompactionFound, screen: Screen): string {
  const how = act.trigger === null ? 'compacted' : `compacted (${shown(act.trigger)})`
  const sizes = `${size(act.preTokens)} ${screen.symbols.arrow} ${size(act.postTokens)}`
  return actLine(act, { mark: screen.symbols.compacted, how, sizes }, screen)
}

/** Only what was saved: a host's size before a clearing is not always that of the whole context. */
function clearingLine(act: ClearingFound, screen: Screen): string {
  const how = act.results > 0 ? `cleared ${count(act.results, 'result')}` : 'cleared'
  const sizes = `${size(act.savedTokens)} saved`
  return actLine(act, { mark: screen.symbols.cleared, how, sizes }, screen)
}

const HOW = 20
const SIZES = 16

function actLine(
  { afterCall, at }: CompactionFound | ClearingFound,
  { mark, how, sizes }: { readonly mark: string; readonly how: string; readonly sizes: string },
  screen: Screen,
): string {
  const { symbols, colors, columns, moments } = screen
  const place = `after call ${whole(afterCall)}${at === null ? '' : `, ${moments.full(at)}`}`
  const where = cutEnd(place, columns - HOW - SIZES - 6, symbols.more)
  const what = left(cutEnd(how, HOW, symbols.more), HOW)
  return `  ${colors.yellow(mark)} ${what}${right(sizes, SIZES)}  ${colors.dim(where)}`
}

function size(amount: number | null): string {
  return amount === null ? '?' : tokens(amount)
}

// What filled the context.

const CLASS_NAMES: Readonly<Record<Exclude<keyof TokensByKind, 'total'>, string>> = {
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

const NAME = 16
const FIGURES = 17

export function classes({ tokensByClass }: SessionReport, screen: Screen): readonly string[] {
  const { total, ...parts } = tokensByClass
  if (total === 0) return []
  const rows = Object.entries(parts)
    .filter(([, amount]) => amount > 0)
    .sort(([, one], [, other]) => other - one)
  const most = rows[0]?.[1] ?? 1
  const width = screen.columns - NAME - FIGURES - 2
  return [
    heading('What filled the context', `${tokens(total)} tokens, estimated`, screen),
    ...rows.map(([name, amount]) => {
      const drawn = left(bar(amount / most, width, screen.symbols), width)
      const figures = right(percent(amount / total), 8) + right(tokens(amount), 9)
      return `  ${left(CLASS_NAMES[name as keyof typeof CLASS_NAMES], NAME)}${screen.colors.cyan(drawn)}${figures}`
    }),
  ]
}

const MOST_TOOLS = 8

export function tools({ byTool }: SessionReport, screen: Screen): readonly string[] {
  if (byTool.length === 0) return []
  const shownTools = byTool.slice(0, MOST_TOOLS)
  const most = Math.max(
    1,
    ...shownTools.map(({ requestTokens, resultTokens }) => requestTokens + resultTokens),
  )
  const width = screen.columns - NAME - 29
  const title = left('Tools', screen.columns - 27)
  const columns = right('calls', 9) + right('requests', 9) + right('results', 9)
  const rows = shownTools.map(({ tool, calls, requestTokens, resultTokens }) => {
    const drawn = left(bar((requestTokens + resultTokens) / most, width, screen.symbols), width)
    const name = left(cutEnd(shown(tool), NAME - 1, screen.symbols.more), NAME)
    const figures = right(whole(calls), 9) + right(tokens(requestTokens), 9) + right(tokens(resultTokens), 9)
    return `  ${name}${screen.colors.cyan(drawn)}${figures}`
  })
  return [
    `${screen.colors.bold(title)}${screen.colors.dim(columns)}`,
    ...rows,
    ...more(byTool.length - MOST_TOOLS, 'tool', screen),
  ]
}

const MOST_ITEMS = 8

export function largest(report: SessionReport, screen: Screen): readonly string[] {
  const items = report.largest.slice(0, MOST_ITEMS)
  if (items.length === 0) return []
  const rows = items.map((item) => {
    const name = left(cutEnd(shown(nameOf(item)), NAME - 1, screen.symbols.more), NAME)
    const room = screen.columns - 10 - NAME
    return `${right(tokens(item.tokens), 8)}  ${name}${screen.colors.dim(whatOf(item, report.project, room, screen))}`.trimEnd()
  })
  return [heading('Largest items', 'tokens, estimated', screen), ...rows]
}

function nameOf({ kind, tool }: LargeItem): string {
  if (tool === null) return kind
  return kind === 'request' ? `${tool} (request)` : tool
}

function whatOf({ what }: LargeItem, project: string | null, room: number, { symbols }: Screen): string {
  const isPath = /^[~./\\]|^[A-Za-z]:\\/.test(what) && !what.includes(' ')
  return isPath
    ? cutStart(projectPath(what, project), room, symbols.more)
    : cutEnd(shown(what), room, symbols.more)
}

const MOST_READS = 6

export function readAgain({ duplicateReads, project }: SessionReport, screen: Screen): readonly string[] {
  if (duplicateReads.length === 0) return []
  const wasted = duplicateReads.reduce((sum, read) => sum + read.tokens, 0)
  const rows = duplicateReads.slice(0, MOST_READS).map((read) => {
    const path = cutStart(projectPath(read.path, project), screen.columns - 18, screen.symbols.more)
    return `${right(tokens(read.tokens), 8)}  ${left(`${whole(read.count)}${screen.symbols.times}`, 6)}${screen.colors.dim(path)}`
  })
  return [
    heading(
      'Read again',
      `${count(duplicateReads.length, 'file')}, ${tokens(wasted)} tokens repeated`,
      screen,
    ),
    ...rows,
    ...more(duplicateReads.length - MOST_READS, 'file', screen),
  ]
}

function more(rest: number, what: string, { colors, symbols }: Screen): readonly string[] {
  return rest > 0 ? [colors.dim(`  ${symbols.more} and ${count(rest, what)} more`)] : []
}
