/** Rows in columns, as wide as what stands in them; one column gives way where the screen is too narrow. */
import type { Screen } from './screen.ts'
import { cutEnd, cutStart, left, right, widthOf } from './text.ts'

export interface Column<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  readonly align?: 'left' | 'right'
  /** This one is cut so that the row fits; at its end unless said otherwise. */
  readonly gives?: 'end' | 'start'
  readonly paint?: (text: string) => string
}

const GAP = 2

export function table<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  screen: Screen,
): readonly string[] {
  const cells = rows.map((row) => columns.map(({ text }) => text(row)))
  const widths = fitted(columns, cells, screen.columns)
  const titles = columns.map((column, index) => aligned(column.title, column, widths[index] ?? 0))
  return [
    screen.colors.dim(titles.join(' '.repeat(GAP)).trimEnd()),
    ...cells.map((texts) => rowLine(texts, columns, { widths, screen })),
  ]
}

function fitted<Row>(
  columns: readonly Column<Row>[],
  cells: readonly (readonly string[])[],
  room: number,
): readonly number[] {
  const natural = columns.map(({ title }, index) =>
    cells.reduce((most, texts) => Math.max(most, widthOf(texts[index] ?? '')), widthOf(title)),
  )
  const giving = columns.flatMap(({ gives }, index) => (gives === undefined ? [] : [index]))
  return narrowed(natural, giving, room)
}

const LEAST = 6

/** The widest of those that give way gives way first. */
function narrowed(natural: readonly number[], giving: readonly number[], room: number): readonly number[] {
  const widths = [...natural]
  for (let over = sum(widths) - room; over > 0; over -= 1) {
    const widest = giving.reduce(
      (most, index) => ((widths[index] ?? 0) > (widths[most] ?? 0) ? index : most),
      giving[0] ?? -1,
    )
    const width = widths[widest] ?? 0
    if (width <= LEAST) break
    widths[widest] = width - 1
  }
  return widths
}

/** With the gaps between. */
function sum(widths: readonly number[]): number {
  return widths.reduce((total, width) => total + width + GAP, -GAP)
}

interface RowSetting {
  readonly widths: readonly number[]
  readonly screen: Screen
}

function rowLine<Row>(
  texts: readonly string[],
  columns: readonly Column<Row>[],
  { widths, screen }: RowSetting,
): string {
  const parts = columns.map((column, index) => {
    const width = widths[index] ?? 0
    const text = texts[index] ?? ''
    const cut = column.gives === 'start' ? cutStart : cutEnd
    const cell = aligned(cut(text, width, screen.symbols.more), column, width)
    return column.paint === undefined ? cell : column.paint(cell)
  })
  return parts.join(' '.repeat(GAP)).trimEnd()
}

function aligned<Row>(text: string, { align }: Column<Row>, width: number): string {
  return align === 'right' ? right(text, width) : left(text, width)
}
