/** Replaces exact texts in a file's text, keeps its line ends, and shows the changes. */
import { formatCount, formatInteger } from '@tidemark/terminal/render/format-numbers'
import { cutText, ToolError } from './tool-definition.ts'

/** One replacement, with the fields of the tool Edit. */
export interface TextEdit {
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean
}

interface EditedText {
  readonly text: string
  /** The inserted texts as offsets in `text`, unordered. */
  readonly changes: readonly Span[]
}

interface Span {
  readonly start: number
  readonly end: number
}

/** Applies edits one after the other. If one does not match, throws a `ToolError`, and none is applied. */
export function applyEdits(text: string, edits: readonly TextEdit[]): EditedText {
  const first: EditedText = { text, changes: [] }
  return edits.reduce((edited, edit, index) => {
    const label = edits.length === 1 ? '' : `Edit ${index + 1} of ${edits.length}: `
    return applyEdit(edited, edit, label)
  }, first)
}

function applyEdit(edited: EditedText, edit: TextEdit, label: string): EditedText {
  const { text } = edited
  if (edit.old_string === '') throw new ToolError(`${label}old_string is empty, but the file is not.`)
  if (toLineFeeds(edit.old_string) === toLineFeeds(edit.new_string))
    throw new ToolError(`${label}old_string and new_string are the same.`)
  const found = findOccurrences(text, edit.old_string)
  if (found.length === 0)
    throw new ToolError(`${label}old_string is not in the file. ${describeNearest(text, edit.old_string)}`)
  if (found.length > 1 && edit.replace_all !== true)
    throw new ToolError(
      `${label}old_string occurs ${formatInteger(found.length)} times (lines ${listLines(text, found)}). Add surrounding lines to make it unique, or set replace_all.`,
    )
  const replacement = hasCrlfLines(text) ? toCrlf(edit.new_string) : toLineFeeds(edit.new_string)
  return replaceSpans(edited, found, replacement)
}

/** Maximum number of changed places that are remembered, because no more are shown. */
const MAX_CHANGES = 100

/** Replaces spans. They must be in order and must not overlap. */
function replaceSpans(
  { text, changes }: EditedText,
  spans: readonly Span[],
  replacement: string,
): EditedText {
  const parts: string[] = []
  const replaced: Span[] = []
  let done = 0
  let length = 0
  for (const { start, end } of spans) {
    parts.push(text.slice(done, start), replacement)
    length += start - done + replacement.length
    done = end
    replaced.push({ start: length - replacement.length, end: length })
  }
  const moved = changes.map(({ start, end }) => {
    const before = spans.filter((span) => span.end <= start)
    const shift = before.reduce((sum, span) => sum + replacement.length - (span.end - span.start), 0)
    return { start: start + shift, end: end + shift }
  })
  return {
    text: parts.join('') + text.slice(done),
    changes: [...moved, ...replaced].slice(0, MAX_CHANGES),
  }
}

function toLineFeeds(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

/** Returns a text with CR LF at the end of each line. */
export function toCrlf(text: string): string {
  return toLineFeeds(text).replaceAll('\n', '\r\n')
}

/** Returns true if at least half of the line ends of a text are CR LF. */
export function hasCrlfLines(text: string): boolean {
  const crlf = text.split('\r\n').length - 1
  return crlf > 0 && crlf >= text.split('\n').length - 1 - crlf
}

/** Finds all non-overlapping occurrences of a text. LF also matches CR LF, because Read does not show the difference. */
function findOccurrences(text: string, wanted: string): readonly Span[] {
  const plain = toLineFeeds(text)
  const plainWanted = toLineFeeds(wanted)
  const found: Span[] = []
  for (
    let at = plain.indexOf(plainWanted);
    at !== -1;
    at = plain.indexOf(plainWanted, at + plainWanted.length)
  )
    found.push({ start: at, end: at + plainWanted.length })
  return plain.length === text.length ? found : toOriginalOffsets(text, found)
}

/** Converts offsets in a text with LF line ends to offsets in the original text with CR LF. `spans` must be in order. */
function toOriginalOffsets(text: string, spans: readonly Span[]): readonly Span[] {
  let removed = 0
  let nextCr = text.indexOf('\r\n')
  function convert(offset: number): number {
    while (nextCr !== -1 && nextCr - removed < offset) {
      removed += 1
      nextCr = text.indexOf('\r\n', nextCr + 2)
    }
    return offset + removed
  }
  return spans.map(({ start, end }) => ({ start: convert(start), end: convert(end) }))
}

const MAX_LISTED = 10

function listLines(text: string, spans: readonly Span[]): string {
  const lines = spans.slice(0, MAX_LISTED).map(({ start }) => toLineNumber(text, start))
  return lines.join(', ') + (spans.length > MAX_LISTED ? ' …' : '')
}

function toLineNumber(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < offset; at = text.indexOf('\n', at + 1)) line += 1
  return line
}

const SIMILAR_ENOUGH = 0.5
const MAX_QUOTED = 200
/** Maximum characters of a text in which the most similar place is searched. */
const MAX_COMPARED = 2_000_000

/** Describes the place in the file that is most similar to a text that was not found. */
function describeNearest(text: string, wanted: string): string {
  if (text.length > MAX_COMPARED) return 'Read the part of the file that you want to change again.'
  const lines = toLineFeeds(text).split('\n')
  const wantedLines = toLineFeeds(wanted).split('\n')
  const skipped = wantedLines.findIndex((line) => line.trim() !== '')
  const first = wantedLines[skipped] ?? ''
  const likeness = createLikeness(first.trim())
  const scored = lines.map((line, index) => ({ index, score: likeness(line.trim()) }))
  const best = scored.reduce((one, other) => (other.score > one.score ? other : one), { index: -1, score: 0 })
  if (best.score < SIMILAR_ENOUGH) return 'No line is like its first line. Read the file again.'
  const start = best.index - skipped
  const differs = wantedLines.findIndex((line, index) => index >= skipped && lines[start + index] !== line)
  const at = differs === -1 ? best.index : start + differs
  const quote = (line: string | undefined): string =>
    line === undefined ? 'the end of the file' : JSON.stringify(cutText(line, MAX_QUOTED))
  return `The nearest place differs at line ${at + 1}: the file has ${quote(lines[at])}, old_string has ${quote(wantedLines[at - start])}.`
}

/** Returns a function that compares a line with `wanted` by pairs of characters. 1: equal; 0: nothing in common. */
function createLikeness(wanted: string): (line: string) => number {
  const listPairs = (text: string): readonly string[] =>
    Array.from({ length: Math.max(0, text.length - 1) }, (_, index) => text.slice(index, index + 2))
  const wantedPairs = new Set(listPairs(wanted.slice(0, MAX_QUOTED)))
  return (line) => {
    if (line === wanted) return wanted === '' ? 0 : 1
    const pairs = new Set(listPairs(line.slice(0, MAX_QUOTED)))
    const common = [...pairs].filter((pair) => wantedPairs.has(pair)).length
    return pairs.size + wantedPairs.size === 0 ? 0 : (2 * common) / (pairs.size + wantedPairs.size)
  }
}

const CONTEXT_LINES = 3
const MAX_SHOWN_LINES = 80

/** Renders the changed lines for the model, with line numbers and three lines around them, up to `MAX_SHOWN_LINES`. */
export function renderChanges({ text, changes }: EditedText): string {
  const lines = toLineFeeds(text).split('\n')
  const shown = new Set<number>()
  for (const { start, end } of changes) {
    const last = Math.min(lines.length, toLineNumber(text, end) + CONTEXT_LINES)
    for (let line = Math.max(1, toLineNumber(text, start) - CONTEXT_LINES); line <= last; line += 1)
      shown.add(line)
    if (shown.size > MAX_SHOWN_LINES) break
  }
  const numbers = [...shown].sort((one, other) => one - other).slice(0, MAX_SHOWN_LINES)
  const rows = numbers.map((line, index) => {
    const gap = index > 0 && numbers[index - 1] !== line - 1 ? '   ...\n' : ''
    return `${gap}${String(line).padStart(6)}\t${cutText(lines[line - 1] ?? '', 500)}`
  })
  const isCut = shown.size > MAX_SHOWN_LINES || changes.length === MAX_CHANGES
  const more = isCut ? '\n   ... (further changed lines are not shown)' : ''
  return rows.join('\n') + more
}

/** Describes how a file's text was replaced: `from line 3 on, 2 lines removed and 3 added`. */
export function describeReplacement(before: string, after: string): string {
  const [old, now] = [toLineFeeds(before).split('\n'), toLineFeeds(after).split('\n')]
  const most = Math.min(old.length, now.length)
  let same = 0
  while (same < most && old[same] === now[same]) same += 1
  let sameAtEnd = 0
  while (sameAtEnd < most - same && old.at(-1 - sameAtEnd) === now.at(-1 - sameAtEnd)) sameAtEnd += 1
  const [removed, added] = [old.length - same - sameAtEnd, now.length - same - sameAtEnd]
  if (removed === 0 && added === 0) return 'its text is the same as before'
  return `from line ${formatInteger(same + 1)} on, ${formatCount(removed, 'line')} removed and ${formatInteger(added)} added`
}
