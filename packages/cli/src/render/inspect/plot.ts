/** The context over the calls of a session, as a filled curve with its limits and the rewrites below it. */
import type { ContextCurve } from 'tidemark'
import { limit, whole } from '../figures.ts'
import type { Screen } from '../screen.ts'
import { right, widthOf } from '../width.ts'
import { labelOf, rowOf, type Scale, scaleFor } from './scale.ts'

export interface PlotMark {
  /** How many points of the curve come before it. */
  readonly afterCall: number
  readonly kind: 'compacted' | 'cleared'
}

const LABEL = 5
const MARGIN = LABEL + 3

export function plot(curve: ContextCurve, marks: readonly PlotMark[], screen: Screen): readonly string[] {
  const { points } = curve
  if (points.length === 0) return []
  const width = screen.columns - MARGIN
  const scale = scaleFor(curve)
  const values = points.map(({ tokens }) => tokens)
  const rows = rowsOf(spread(values, width), { curve, scale }, screen)
  const ground = marks.length === 0 ? [] : [markLine(marks, { calls: points.length, width }, screen)]
  return [...rows, floorLine(width, screen), ...ground, callLine(curve, width, screen)]
}

/** One height a column: the largest of the calls that share it, or the same call over several columns. */
function spread(values: readonly number[], width: number): readonly number[] {
  return Array.from({ length: width }, (_, column) => {
    const from = Math.floor((column * values.length) / width)
    const to = Math.max(from + 1, Math.floor(((column + 1) * values.length) / width))
    return values.slice(from, to).reduce((most, value) => Math.max(most, value), 0)
  })
}

interface Picture {
  readonly curve: ContextCurve
  readonly scale: Scale
}

function rowsOf(heights: readonly number[], { curve, scale }: Picture, screen: Screen): readonly string[] {
  const [window, autoCompact] = [rowOf(curve.window, scale), rowOf(curve.autoCompact, scale)]
  return Array.from({ length: scale.rows }, (_, index) => {
    const row = scale.rows - 1 - index
    const rule = row === autoCompact ? screen.symbols.rule : row === window ? screen.symbols.edge : ' '
    return `${axisLabel(row, scale, screen)} ${area(heights, { row, scale, rule }, screen)}`.trimEnd()
  })
}

function axisLabel(row: number, scale: Scale, { symbols, colors }: Screen): string {
  const value = labelOf(row, scale)
  return colors.dim(`${right(value === null ? '' : limit(value), LABEL)} ${symbols.axis}`)
}

interface Row {
  readonly row: number
  readonly scale: Scale
  /** What the empty cells of the row hold. */
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

/** Neighbours of one colour together, so that a row costs a few codes and not one a cell. */
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

interface Ground {
  readonly calls: number
  readonly width: number
}

function markLine(marks: readonly PlotMark[], { calls, width }: Ground, { symbols, colors }: Screen): string {
  const cells = Array.from({ length: width }, () => ' ')
  // Compactions last: where both fall into one column, the larger act is the one to see.
  const inOrder = marks.toSorted((one, other) => weight(one) - weight(other))
  for (const { afterCall, kind } of inOrder) {
    const column = Math.floor((afterCall * width) / Math.max(1, calls))
    cells[Math.min(width - 1, column)] = symbols[kind]
  }
  return `${' '.repeat(MARGIN)}${colors.yellow(cells.join('').trimEnd())}`
}

function weight({ kind }: PlotMark): number {
  return kind === 'compacted' ? 1 : 0
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
