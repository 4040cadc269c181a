/** Lays out a page: blocks of lines below or beside each other, headings, bars and tables. */
import type { Screen, ScreenSymbols } from './screen.ts'
import { alignLeft, alignRight, cutTextEnd, cutTextStart, measureTextWidth } from './text.ts'

/** Renders a block of lines for the width of a screen; an empty list if there is nothing to show. */
export type BlockRenderer = (screen: Screen) => readonly string[]

const BLOCK_GAP = 4
/** Screen width from which two blocks are placed side by side. */
const MIN_WIDTH_FOR_TWO = 130

/** Places two blocks side by side if the screen is wide enough and neither is empty, otherwise one below the other. */
export function placeSideBySide(one: BlockRenderer, other: BlockRenderer): BlockRenderer {
  return (screen) => {
    if (screen.columns < MIN_WIDTH_FOR_TWO) return stackBlocks([one(screen), other(screen)])
    const columns = Math.floor((screen.columns - BLOCK_GAP) / 2)
    const half = { ...screen, columns }
    const [first, second] = [one(half), other(half)]
    return first.length === 0 || second.length === 0
      ? stackBlocks([one(screen), other(screen)])
      : joinLines(first, second, columns + BLOCK_GAP)
  }
}

function joinLines(first: readonly string[], second: readonly string[], indent: number): readonly string[] {
  const height = Math.max(first.length, second.length)
  return Array.from({ length: height }, (_, row) => {
    const behind = second[row] ?? ''
    return behind === '' ? (first[row] ?? '') : alignLeft(first[row] ?? '', indent) + behind
  })
}

/** Joins blocks with an empty line between them, and leaves out empty blocks. */
export function stackBlocks(blocks: readonly (readonly string[])[]): readonly string[] {
  return blocks
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]))
}

/** Renders a heading. The text `aside` stands at the right edge of the same line, and is left out if it does not fit. */
export function renderHeading(title: string, aside: string, { columns, colors }: Screen): string {
  const room = columns - measureTextWidth(title) - measureTextWidth(aside)
  return aside === '' || room < 2
    ? colors.bold(title)
    : `${colors.bold(title)}${' '.repeat(room)}${colors.dim(aside)}`
}

/** Renders a bar that fills the fraction `share` of `width` cells. Any share above 0 is visible. The bar is not padded. */
export function renderBar(share: number, width: number, { bars }: ScreenSymbols): string {
  if (!(share > 0) || width < 1) return ''
  const parts = Math.max(1, Math.round(Math.min(1, share) * width * bars.length))
  const rest = parts % bars.length
  const full = (bars.at(-1) ?? '').repeat(Math.floor(parts / bars.length))
  return rest === 0 ? full : `${full}${bars[rest - 1] ?? ''}`
}

export interface TableColumn<Row> {
  readonly title: string
  readonly text: (row: Row) => string
  readonly align?: 'left' | 'right'
  /** Which end of a cell's text is cut if the screen is too narrow; absent if the column must not be cut. */
  readonly cutAt?: 'end' | 'start'
  readonly color?: (text: string) => string
}

const COLUMN_GAP = 2

/** Renders a table. Columns are as wide as their content. If the screen is too narrow, columns with `cutAt` are cut. */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  screen: Screen,
): readonly string[] {
  const cells = rows.map((row) => columns.map(({ text }) => text(row)))
  const widths = fitColumns(columns, cells, screen.columns)
  const titles = columns.map((column, index) => alignText(column.title, column, widths[index] ?? 0))
  const rowText = (texts: readonly string[]): string => {
    const parts = columns.map((column, index) => {
      const width = widths[index] ?? 0
      const cut = column.cutAt === 'start' ? cutTextStart : cutTextEnd
      const cell = alignText(cut(texts[index] ?? '', width, screen.symbols.more), column, width)
      return column.color === undefined ? cell : column.color(cell)
    })
    return parts.join(' '.repeat(COLUMN_GAP)).trimEnd()
  }
  return [screen.colors.dim(titles.join(' '.repeat(COLUMN_GAP)).trimEnd()), ...cells.map(rowText)]
}

const MIN_COLUMN_WIDTH = 6

/**
 * Returns the column widths of a table. If the table is wider than the screen, the widest column with `cutAt` is
 * narrowed first.
 */
function fitColumns<Row>(
  columns: readonly TableColumn<Row>[],
  cells: readonly (readonly string[])[],
  room: number,
): readonly number[] {
  const widths = columns.map(({ title }, index) =>
    cells.reduce(
      (most, texts) => Math.max(most, measureTextWidth(texts[index] ?? '')),
      measureTextWidth(title),
    ),
  )
  const giving = columns.flatMap(({ cutAt }, index) => (cutAt === undefined ? [] : [index]))
  const total = widths.reduce((sum, width) => sum + width + COLUMN_GAP, -COLUMN_GAP)
  for (let over = total - room; over > 0; over -= 1) {
    const widest = giving.reduce(
      (most, index) => ((widths[index] ?? 0) > (widths[most] ?? 0) ? index : most),
      giving[0] ?? -1,
    )
    const width = widths[widest] ?? 0
    if (width <= MIN_COLUMN_WIDTH) break
    widths[widest] = width - 1
  }
  return widths
}

function alignText<Row>(text: string, { align }: TableColumn<Row>, width: number): string {
  return align === 'right' ? alignRight(text, width) : alignLeft(text, width)
}
