/** What a person meant who wrote a name nobody knows. */

/** The known name closest to `given`, or null where none is close enough to be a slip of the hand. */
export function nearest(given: string, known: readonly string[]): string | null {
  const furthest = Math.max(2, Math.floor(given.length / 3))
  let best: string | null = null
  let least = furthest + 1
  for (const candidate of known) {
    const distance = distanceBetween(given.toLowerCase(), candidate.toLowerCase())
    if (distance < least && distance < candidate.length) [best, least] = [candidate, distance]
  }
  return best
}

/** Letters to add, drop, change or swap with their neighbour. */
function distanceBetween(from: string, to: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row]
    for (let column = 1; column <= to.length; column += 1) {
      const change = at(last, column - 1) + (from[row - 1] === to[column - 1] ? 0 : 1)
      const swap = isSwap(from.slice(0, row), to.slice(0, column)) ? at(beforeLast, column - 2) + 1 : change
      current.push(Math.min(at(last, column) + 1, at(current, column - 1) + 1, change, swap))
    }
    beforeLast = last
    last = current
  }
  return at(last, to.length)
}

/** The last two letters of the one are those of the other, the other way round. */
function isSwap(from: string, to: string): boolean {
  return from.length > 1 && to.length > 1 && from.at(-1) === to.at(-2) && from.at(-2) === to.at(-1)
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? 0
}
