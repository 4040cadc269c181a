/**
 * Shortens the text of a file to the regions that later edits are likely to need: the lines around its last edits and the
 * part that was last read. Lines that are left out are marked with their numbers, so that they can be read again.
 */

/**
 * Consecutive lines of a file. `from`: number of the first line, counted from 1; null if the place is not known. Parts
 * without a known place come last.
 */
export interface FilePart {
  readonly from: number | null
  readonly text: string
}

/** The lines `from` to `to` of a file, counted from 1. */
export interface LineRange {
  readonly from: number
  readonly to: number
}

/** What tool calls last did with a file. */
export interface LastFileUse {
  /** Texts that edits put into the file, newest first. */
  readonly edits: readonly string[]
  /** The lines that were last read; null if the last read was of the whole file. */
  readonly read: LineRange | null
}

interface RegionLimits {
  /** Number of the last line of the file; null if it is not known. */
  readonly lastLine: number | null
  /** Checks whether a shortened text is within the token limit. */
  readonly fits: (content: string) => boolean
}

/** Number of lines shown before and after an edit, before lines further away are added. */
const LINES_AROUND = 20

/**
 * Returns the most important lines of a file in their order, as many as fit, with a mark for each gap. Null if not even the
 * most important line fits.
 */
export function formatRegions(
  parts: readonly FilePart[],
  focus: LastFileUse,
  { lastLine, fits }: RegionLimits,
): string | null {
  const lines = listNumberedLines(parts)
  const ranked = rankLines(lines, focus)
  let best: string | null = null
  let [least, most] = [1, ranked.length]
  while (least <= most) {
    const count = Math.ceil((least + most) / 2)
    const shown = ranked.slice(0, count).sort((a, b) => a - b)
    const content = formatLines(
      shown.flatMap((index) => lines[index] ?? []),
      lastLine,
    )
    if (fits(content)) {
      best = content
      least = count + 1
    } else most = count - 1
  }
  return best
}

interface NumberedLine {
  readonly number: number | null
  readonly text: string
}

function listNumberedLines(parts: readonly FilePart[]): readonly NumberedLine[] {
  return parts.flatMap(({ from, text }) =>
    splitFileLines(text).map((line, index) => ({ number: from === null ? null : from + index, text: line })),
  )
}

/** Splits the text of a file into lines. A line end at the end of the text begins no further line. */
export function splitFileLines(text: string): readonly string[] {
  const lines = text.split('\n')
  return lines.length > 1 && lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

/** Number of last edits whose regions are shown before anything else. */
const EDITS_FIRST = 12

/**
 * Returns the indexes of all lines, the most important first: lines around the last edits (newest edit first), the part
 * last read, lines around earlier edits, then by distance from the first region. Without edits and reads, from the
 * beginning of the file.
 */
function rankLines(lines: readonly NumberedLine[], { edits, read }: LastFileUse): readonly number[] {
  const ranked = new Set<number>()
  const add = (from: number, to: number): void => {
    for (let at = Math.max(0, from); at <= Math.min(to, lines.length - 1); at += 1) ranked.add(at)
  }
  const addAround = ({ from, to }: LineRange): void => add(from - LINES_AROUND, to + LINES_AROUND)
  const edited = findEditedLines(lines, edits)
  const part = read === null ? null : findReadLines(lines, read)
  for (const region of edited.slice(0, EDITS_FIRST)) addAround(region)
  if (part !== null) add(part.from, part.to)
  for (const region of edited.slice(EDITS_FIRST)) addAround(region)
  const { from, to } = edited[0] ?? part ?? { from: 0, to: 0 }
  for (let distance = 0; ranked.size < lines.length; distance += 1) {
    add(from - distance, from - distance)
    add(to + distance, to + distance)
    if (distance > lines.length) break
  }
  return [...ranked]
}

/** Returns the indexes of the lines that edits wrote, newest edit first. A text that was replaced since is left out. */
function findEditedLines(lines: readonly NumberedLine[], edits: readonly string[]): readonly LineRange[] {
  const text = lines.map((line) => line.text).join('\n')
  return edits.flatMap((edit) => {
    const at = edit.trim() === '' ? -1 : text.indexOf(edit)
    if (at === -1) return []
    const from = countLineEnds(text.slice(0, at))
    return [{ from, to: from + countLineEnds(edit) }]
  })
}

function countLineEnds(text: string): number {
  return text.split('\n').length - 1
}

function findReadLines(lines: readonly NumberedLine[], { from, to }: LineRange): LineRange | null {
  const isRead = ({ number }: NumberedLine): boolean => number !== null && number >= from && number <= to
  const first = lines.findIndex(isRead)
  const last = lines.findLastIndex(isRead)
  return first === -1 ? null : { from: first, to: last }
}

/** Joins the lines, with a mark for each gap. Lines without a known place come last, below a heading. */
function formatLines(lines: readonly NumberedLine[], lastLine: number | null): string {
  const shown: string[] = []
  let next = 1
  for (const { number, text } of lines) {
    if (number === null) continue
    if (number > next) shown.push(formatGap(next, number - 1))
    shown.push(text)
    next = number + 1
  }
  if (lastLine === null) shown.push(`[lines from ${next} on are not shown]`)
  else if (next <= lastLine) shown.push(formatGap(next, lastLine))
  const unplaced = lines.filter(({ number }) => number === null).map(({ text }) => text)
  if (unplaced.length > 0)
    shown.push('[written by edits; their place in the file is not known:]', ...unplaced)
  return shown.join('\n')
}

function formatGap(from: number, to: number): string {
  return from === to ? `[line ${from} is not shown]` : `[lines ${from} to ${to} are not shown]`
}
