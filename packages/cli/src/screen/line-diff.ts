/** Compares two texts line by line, for showing an edit before and after it is made. */

export interface DiffLine {
  /** `gap`: unchanged lines that are left out. `note`: a remark about the change, in `text`. */
  readonly kind: 'same' | 'removed' | 'added' | 'gap' | 'note'
  readonly text: string
  /** The number of the line, before the change if it is removed; not given where it is not known. */
  readonly number?: number
}

/** Above this product of line counts, the middle is shown as removed and added as a whole. */
const MAX_CELLS = 4_000_000
const CONTEXT_LINES = 3

/** Returns the changed lines with the lines around them, numbered; a note if nothing changes, or line ends only. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  if (before === after) return [{ kind: 'note', text: 'unchanged' }]
  const [old, now] = [splitLines(before), splitLines(after)]
  const most = Math.min(old.length, now.length)
  let start = 0
  while (start < most && old[start] === now[start]) start += 1
  let end = 0
  while (end < most - start && old.at(-1 - end) === now.at(-1 - end)) end += 1
  const [oldMiddle, newMiddle] = [old.slice(start, old.length - end), now.slice(start, now.length - end)]
  if (oldMiddle.length + newMiddle.length === 0) return [{ kind: 'note', text: 'only line ends change' }]
  return leaveOutUnchanged(
    numberLines([
      ...old.slice(0, start).map((text): DiffLine => ({ kind: 'same', text })),
      ...diffMiddle(oldMiddle, newMiddle),
      ...old.slice(old.length - end).map((text): DiffLine => ({ kind: 'same', text })),
    ]),
  )
}

/** Returns what stands before the text of each line: its number, where it is known, and a mark. */
export function listLineStarts(change: readonly DiffLine[]): readonly string[] {
  const digits = String(Math.max(0, ...change.map(({ number = 0 }) => number))).length
  return change.map(({ kind, number }) => {
    if (kind === 'note') return '  '
    if (kind === 'gap') return '  ⋮'
    const mark = kind === 'added' ? '+' : kind === 'removed' ? '-' : ' '
    return `  ${number === undefined ? '' : `${String(number).padStart(digits)} `}${mark} `
  })
}

function numberLines(lines: readonly DiffLine[]): readonly DiffLine[] {
  let [old, now] = [0, 0]
  return lines.map((line) => {
    if (line.kind !== 'added') old += 1
    if (line.kind !== 'removed') now += 1
    return { ...line, number: line.kind === 'removed' ? old : now }
  })
}

/** A text without content has no lines, so that a new file is shown as added lines only. */
function splitLines(text: string): readonly string[] {
  if (text === '') return []
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

function diffMiddle(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  if (old.length * now.length > MAX_CELLS)
    return [
      ...old.map((text): DiffLine => ({ kind: 'removed', text })),
      ...now.map((text): DiffLine => ({ kind: 'added', text })),
    ]
  const common = measureCommonLines(old, now)
  const width = now.length + 1
  const lines: DiffLine[] = []
  let [row, column] = [0, 0]
  while (row < old.length || column < now.length) {
    const [one = '', other = ''] = [old[row], now[column]]
    const down = row < old.length ? (common[(row + 1) * width + column] ?? 0) : -1
    const right = column < now.length ? (common[row * width + column + 1] ?? 0) : -1
    if (row < old.length && column < now.length && one === other) {
      lines.push({ kind: 'same', text: one })
      row += 1
      column += 1
    } else if (down >= right) {
      lines.push({ kind: 'removed', text: one })
      row += 1
    } else {
      lines.push({ kind: 'added', text: other })
      column += 1
    }
  }
  return lines
}

/** Returns, for each pair of places, how many lines the rests after them have in common at most. */
function measureCommonLines(old: readonly string[], now: readonly string[]): Uint32Array {
  const width = now.length + 1
  const common = new Uint32Array((old.length + 1) * width)
  for (let row = old.length - 1; row >= 0; row -= 1)
    for (let column = now.length - 1; column >= 0; column -= 1)
      common[row * width + column] =
        old[row] === now[column]
          ? (common[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(common[(row + 1) * width + column] ?? 0, common[row * width + column + 1] ?? 0)
  return common
}

function leaveOutUnchanged(lines: readonly DiffLine[]): readonly DiffLine[] {
  const isNear = new Uint8Array(lines.length)
  lines.forEach((line, index) => {
    if (line.kind !== 'same')
      isNear.fill(1, Math.max(0, index - CONTEXT_LINES), Math.min(lines.length, index + CONTEXT_LINES + 1))
  })
  const shown: DiffLine[] = []
  for (const [index, line] of lines.entries()) {
    if (isNear[index] === 1) shown.push(line)
    else if (shown.at(-1)?.kind !== 'gap') shown.push({ kind: 'gap', text: '' })
  }
  return shown
}
