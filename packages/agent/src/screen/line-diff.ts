/** Compares two texts line by line, to show an edit before and after it is made. */
import { diffArrays } from 'diff'

/** A line of a shown change. */
export interface DiffLine {
  /** `gap`: unchanged lines that are left out. `note`: a remark about the change, in `text`. */
  readonly kind: 'same' | 'removed' | 'added' | 'gap' | 'note'
  readonly text: string
  /** The line number; for a removed line, its number before the change. Absent if unknown. */
  readonly number?: number
}

/**
 * If more lines than this were removed and added, the differing part is shown as removed and added as a whole, because the time
 * to compare grows with the square: about 100 ms at this limit.
 */
const MAX_CHANGED_LINES = 1_000
const CONTEXT_LINES = 3

/** Returns the changed lines with three lines around them, numbered; a single note if nothing changes, or only line ends. */
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

/** Returns the prefix of each line: its number, if known, and a mark. */
export function formatLinePrefixes(change: readonly DiffLine[]): readonly string[] {
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

/** An empty text has no lines, so that a new file is shown with added lines only. */
function splitLines(text: string): readonly string[] {
  if (text === '') return []
  const lines = text.replaceAll('\r\n', '\n').split('\n')
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

function diffMiddle(old: readonly string[], now: readonly string[]): readonly DiffLine[] {
  const parts = diffArrays([...old], [...now], { maxEditLength: MAX_CHANGED_LINES }) ?? [
    { removed: true, added: false, value: old },
    { removed: false, added: true, value: now },
  ]
  return parts.flatMap(({ removed, added, value }) => {
    const kind = removed ? 'removed' : added ? 'added' : 'same'
    return value.map((text): DiffLine => ({ kind, text }))
  })
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
