/**
 * Text for the terminal: measures its width in cells, cuts and wraps it, and makes text from logs safe to print. Colour
 * codes have no width, and wide characters take two cells.
 */
import { homedir } from 'node:os'
import { basename, win32 } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { redact } from 'tidemark'
import { findRepository } from 'tidemark/logs'

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

const PLAIN_ASCII = /^[\x20-\x7e]*$/
const INVISIBLE = /^[\p{Default_Ignorable_Code_Point}\p{Control}\p{Mark}]+$/u
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\uFE0F/u

/** Ranges of code points that are two cells wide (W and F in Unicode's EastAsianWidth, merged). */
const WIDE_RANGES: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff01, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18cff],
  [0x1aff0, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
]

/** Returns the width of a text in cells of the terminal. */
export function measureTextWidth(text: string): number {
  const bare = text.includes('\u001b') ? stripVTControlCharacters(text) : text
  if (PLAIN_ASCII.test(bare)) return bare.length
  let width = 0
  for (const { segment } of graphemes.segment(bare)) width += graphemeWidth(segment)
  return width
}

function graphemeWidth(grapheme: string): number {
  if (INVISIBLE.test(grapheme)) return 0
  if (EMOJI.test(grapheme)) return 2
  const point = grapheme.codePointAt(0) ?? 0
  return WIDE_RANGES.some(([first, last]) => point >= first && point <= last) ? 2 : 1
}

/** Cuts a text without colour codes if it is wider than `width` cells; `more` is then its end. */
export function cutTextEnd(text: string, width: number, more = '…'): string {
  if (measureTextWidth(text) <= width) return text
  return takeWidth(splitGraphemes(text), width - measureTextWidth(more)).join('') + fitEllipsis(more, width)
}

/** Cuts the beginning of a text without colour codes if it is wider than `width` cells; for paths, whose end matters most. */
export function cutTextStart(text: string, width: number, more = '…'): string {
  if (measureTextWidth(text) <= width) return text
  const end = takeWidth(splitGraphemes(text).reverse(), width - measureTextWidth(more)).reverse()
  return fitEllipsis(more, width) + end.join('')
}

function splitGraphemes(text: string): string[] {
  return [...graphemes.segment(text)].map(({ segment }) => segment)
}

function fitEllipsis(more: string, width: number): string {
  return width >= measureTextWidth(more) ? more : ''
}

function takeWidth(segments: readonly string[], width: number): string[] {
  let room = width
  const end = segments.findIndex((segment) => {
    room -= graphemeWidth(segment)
    return room < 0
  })
  return segments.slice(0, end === -1 ? segments.length : end)
}

/** Pads a text with spaces at its end to `width` cells. A wider text is not cut. */
export function alignLeft(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - measureTextWidth(text)))
}

/** Pads a text with spaces at its beginning to `width` cells. A wider text is not cut. */
export function alignRight(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - measureTextWidth(text))) + text
}

/**
 * Wraps a text between words; a word that is too long for a line is continued on the next line, but a path or an address stays whole, so
 * that it can be copied. The first line begins with `mark`; the other lines are indented by the width of `mark`.
 */
export function wrapText(text: string, columns: number, mark = ''): readonly string[] {
  const indent = ' '.repeat(measureTextWidth(mark))
  const room = columns - indent.length
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    const joined = last === undefined ? word : `${last} ${word}`
    const isLongPath = word.includes('/') && measureTextWidth(word) > room
    const isListMark = last !== undefined && last.trim().length <= 2
    if (last !== undefined && (measureTextWidth(joined) <= room || (isLongPath && isListMark)))
      lines[lines.length - 1] = joined
    else lines.push(...(isLongPath ? [word] : breakWord(word, room)))
  }
  return lines.map((line, index) => `${index === 0 ? mark : indent}${line}`)
}

const LIST_OR_QUOTE = /^\s*(?:(?:>\s?)+|(?:[-*+]|\d+[.)]) )/

/** Wraps a line of Markdown. Quotations are marked on every line; list items continue indented below their text. */
export function wrapMarkdownLine(line: string, columns: number, indent = ''): readonly string[] {
  const mark = LIST_OR_QUOTE.exec(line)?.[0] ?? ''
  const [first = '', ...others] = wrapText(line.slice(mark.length), columns - measureTextWidth(indent + mark))
  const continued = mark.includes('>') ? mark : ' '.repeat(measureTextWidth(mark))
  return [`${indent}${mark}${first}`, ...others.map((other) => `${indent}${continued}${other}`)]
}

function breakWord(word: string, room: number): readonly string[] {
  const lines: string[] = []
  let rest = measureTextWidth(word) <= room ? [] : splitGraphemes(word)
  if (rest.length === 0) return [word]
  while (rest.length > 0) {
    const line = takeWidth(rest, Math.max(2, room))
    lines.push(line.join(''))
    rest = rest.slice(line.length)
  }
  return lines
}

/**
 * Returns at most `width` characters (not cells) of a text on one line, with `more` in place of the rest. Control characters
 * become spaces, because a terminal would execute them. Secrets stay in it.
 */
export function toOneLinePreview(text: string, width: number, more = '…'): string {
  const line = text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
    .replace(/[\u0000-\u001f\u007f-\u009f]+/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
  const characters = [...line]
  return characters.length <= width
    ? line
    : `${characters.slice(0, Math.max(0, width - more.length)).join('')}${more}`
}

/** Makes text from a log safe to print: on one line, with secrets and control characters removed. */
export function toSafeLine(text: string): string {
  return (
    redact(text)
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
      .replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ')
      // Removes characters that change the text direction or have no width.
      .replace(/[\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, '')
      .replace(/\s+/g, ' ')
      .trim()
  )
}

/** Removes control sequences and characters from a text of several lines, except tabs and line ends. Secrets stay in it. */
export function removeControlCharacters(text: string): string {
  return (
    stripVTControlCharacters(text.replaceAll('\r\n', '\n'))
      // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what must go
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '')
      // Removes characters that change the order in which text is shown.
      .replace(/[\u202a-\u202e\u2066-\u2069]/g, '')
  )
}

/**
 * Characters that a terminal executes or hides, or that change the order of others. In a text that the user must approve, each is written
 * as its code. Emoji keep their joiners.
 */
const HIDDEN_CHARACTER =
  /(?<!\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)(?:\u200d|\ufe0f)|(?! |\n|\u3000|\u200d|\ufe0f)[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu

/**
 * Shows a whole text on one line, for a user who must approve it: hidden characters become codes, long runs of spaces a count.
 */
export function escapeForApproval(text: string): string {
  return showSpaces(showCodes(text), 9).replaceAll('\n', '\\n')
}

/** Shows whole lines, for a user who must approve them, as `escapeForApproval` does. A tab becomes four spaces. */
export function escapeLinesForApproval(text: string): string {
  return showSpaces(showCodes(text.replaceAll('\t', '    ')), 40)
}

/** Returns true if `escapeLinesForApproval` writes a character of the text as a code. */
export function hasHiddenCharacter(text: string): boolean {
  return text.replaceAll('\t', '').search(HIDDEN_CHARACTER) >= 0
}

function showCodes(text: string): string {
  return text.replaceAll(
    HIDDEN_CHARACTER,
    (character) => `\\u{${character.codePointAt(0)?.toString(16) ?? ''}}`,
  )
}

/** Replaces runs of at least `least` spaces by their count, because they could move the following text off the screen. */
function showSpaces(text: string, least: number): string {
  return text.replaceAll(new RegExp(` {${least},}`, 'g'), (spaces) => ` [${spaces.length} spaces] `)
}

/** Formats a path for display, with `~` for the user's home folder. */
export function formatPath(path: string, home: string = homedir()): string {
  const text = toSafeLine(path)
  const inside = relativePath(text, home)
  return inside === null ? text : inside === '' ? '~' : `~/${inside}`
}

/** Returns the name of a working directory; for a worktree below a repository, that of the repository. Does not read the disk. */
export function formatProjectName(folder: string): string {
  const repository = findRepository(folder)
  const name = /^[A-Za-z]:\\/.test(repository) ? win32.basename(repository) : basename(repository)
  return name || repository
}

/** Formats a path relative to the session's project folder; a path outside the project is formatted by `formatPath`. */
export function formatProjectPath(path: string, project: string | null): string {
  const inside = project === null ? null : relativePath(toSafeLine(path), toSafeLine(project))
  return inside === null || inside === '' ? formatPath(path) : inside
}

function relativePath(path: string, folder: string): string | null {
  if (folder === '' || folder === '/') return null
  if (path === folder) return ''
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : null
}
