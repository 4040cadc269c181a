/**
 * Shortens texts to a number of characters or tokens. The remaining part is unchanged; the character-based functions
 * mark the cut.
 */
import { sliceText } from './well-formed-text.ts'

const ELLIPSIS = '…'

/** Returns the first `most` characters and an ellipsis, or the whole text if it is short enough. Never splits a surrogate pair. */
export function truncateEnd(text: string, most: number): string {
  if (text.length <= most) return text
  return `${sliceText(text, 0, most)}${ELLIPSIS}`
}

/** Returns an ellipsis and the last `most` characters, or the whole text if it is short enough. Never splits a surrogate pair. */
export function truncateStart(text: string, most: number): string {
  if (text.length <= most) return text
  return `${ELLIPSIS}${sliceText(text, text.length - most)}`
}

/** Matches a line that says something, in any language: one with a word or a number, unlike a lone brace. */
const SAYING = /[\p{L}\p{N}]{2}|[\p{Lo}\p{N}]/u

/** Returns the first line that says something, or else the first that is not blank, cut to `most` characters. */
export function truncateFirstLine(text: string, most: number): string {
  const lines = text.split('\n').filter((given) => given.trim() !== '')
  const line = lines.find((given) => SAYING.test(given)) ?? lines[0] ?? ''
  return truncateEnd(line.trim(), most)
}

/** Returns the words by which a shortened text refers to the record that holds it whole. */
export function formatRecordPointer(id: string): string {
  return `in full in record ${id}`
}

/** Returns both ends of a text with a note of how many characters are missing and that record `id` contains them. */
export function truncateMiddle(text: string, each: number, id: string): string {
  const lead = text.length - text.trimStart().length
  const trail = text.length - text.trimEnd().length
  const head = sliceText(text, 0, lead + each)
  const tail = sliceText(text, -(trail + each))
  const missing = text.length - head.length - tail.length
  return missing <= 0
    ? text
    : `${head}\n[${ELLIPSIS} ${missing} characters, ${formatRecordPointer(id)} ${ELLIPSIS}]\n${tail}`
}

/** Returns both ends of a text with an ellipsis between them, or the whole text if it is short enough. */
export function cutMiddle(text: string, head: number, tail: number): string {
  if (text.length <= head + tail) return text
  return `${sliceText(text, 0, head)}${ELLIPSIS}${sliceText(text, -tail)}`
}

/** Returns a text on one line, with each run of white space as one blank, cut to `most` characters. */
export function toOneLine(text: string, most: number = Number.POSITIVE_INFINITY): string {
  // Only the beginning of a long text is read. It has enough characters unless nearly all are white space.
  const isLong = text.length > 20 * most
  const line = (isLong ? sliceText(text, 0, 20 * most) : text).replace(/\s+/g, ' ').trim()
  return isLong && line.length <= most ? `${line}${ELLIPSIS}` : truncateEnd(line, most)
}

/** Returns a text in quotation marks on one line. */
export function quoteInline(text: string, most: number): string {
  return `"${toOneLine(text, most)}"`
}

// Functions that cut a text to its beginning or end within a number of tokens.

/** Counts the tokens of a text. The count must never decrease when text is appended. */
export type TokenCounter = (text: string) => number

/**
 * Maximum length of a token in characters, except runs of blanks. Text beyond `tokens` times this length cannot fit.
 */
const MAX_TOKEN_CHARACTERS = 24

/**
 * Returns the longest beginning of a text with at most `tokens` tokens. It ends at a line end, unless that would lose
 * more than half of it.
 */
export function takeHead(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(0, size)))
  const head = sliceText(text, 0, length)
  if (head.length === text.length) return text
  const line = head.lastIndexOf('\n') + 1
  return line * 2 >= head.length ? head.slice(0, line) : head
}

/**
 * Returns the longest end of a text with at most `tokens` tokens. It begins at a line start, unless that would lose
 * more than half of it.
 */
export function takeTail(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(text.length - size)))
  const tail = sliceText(text, text.length - length)
  if (tail.length === text.length) return text
  const line = tail.indexOf('\n') + 1
  return line * 2 <= tail.length ? tail.slice(line) : tail
}

function findLongest(text: string, tokens: number, measured: (size: number) => number): number {
  let most = Math.min(text.length, Math.max(0, tokens) * MAX_TOKEN_CHARACTERS)
  if (measured(most) <= tokens) return most
  let least = 0
  while (least < most) {
    const size = Math.ceil((least + most) / 2)
    if (measured(size) <= tokens) least = size
    else most = size - 1
  }
  return least
}
