/** Blocks of lines put under and beside each other. */
import type { Screen, Symbols } from './screen.ts'
import { left, widthOf } from './text.ts'

/** Draws itself in a given width; no lines where there is nothing to say. */
export type Draw = (screen: Screen) => readonly string[]

const GAP = 4
/** From this width on there is room for two columns. */
const TWO_COLUMNS = 130

/** Side by side where the screen is wide enough, else one under the other. */
export function pair(one: Draw, other: Draw): Draw {
  return (screen) => {
    if (screen.columns < TWO_COLUMNS) return stacked([one(screen), other(screen)])
    const columns = Math.floor((screen.columns - GAP) / 2)
    const half = { ...screen, columns }
    const [first, second] = [one(half), other(half)]
    return first.length === 0 || second.length === 0
      ? stacked([one(screen), other(screen)])
      : beside(first, second, columns + GAP)
  }
}

function beside(first: readonly string[], second: readonly string[], indent: number): readonly string[] {
  const height = Math.max(first.length, second.length)
  return Array.from({ length: height }, (_, row) => {
    const behind = second[row] ?? ''
    return behind === '' ? (first[row] ?? '') : left(first[row] ?? '', indent) + behind
  })
}

/** With an empty line between; empty blocks leave no trace. */
export function stacked(blocks: readonly (readonly string[])[]): readonly string[] {
  return blocks
    .filter((lines) => lines.length > 0)
    .flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]))
}

/** A heading, and what is said beside it at the right edge. */
export function heading(title: string, aside: string, { columns, colors }: Screen): string {
  const room = columns - widthOf(title) - widthOf(aside)
  return aside === '' || room < 2
    ? colors.bold(title)
    : `${colors.bold(title)}${' '.repeat(room)}${colors.dim(aside)}`
}

/** A bar `share` of `width` long, to a part of a cell; at least the shortest for what is not nothing. */
export function bar(share: number, width: number, { bars }: Symbols): string {
  if (!(share > 0) || width < 1) return ''
  const parts = Math.max(1, Math.round(Math.min(1, share) * width * bars.length))
  const rest = parts % bars.length
  const full = (bars.at(-1) ?? '').repeat(Math.floor(parts / bars.length))
  return rest === 0 ? full : `${full}${bars[rest - 1] ?? ''}`
}
