/** Shortens texts: the part that is kept is unchanged, and a mark shows that something is missing. */

const ELLIPSIS = '…'

/** The first `most` characters; never splits a surrogate pair. */
export function truncateEnd(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, isInsidePair(text, most) ? most - 1 : most)}${ELLIPSIS}`
}

/** The last `most` characters. */
export function truncateStart(text: string, most: number): string {
  if (text.length <= most) return text
  const from = text.length - most
  return `${ELLIPSIS}${text.slice(isInsidePair(text, from) ? from + 1 : from)}`
}

/** The first line that is not blank, cut to `most` characters. */
export function truncateFirstLine(text: string, most: number): string {
  const line = text.split('\n').find((given) => given.trim() !== '') ?? ''
  return truncateEnd(line.trim(), most)
}

/** Both ends, with a note of how many characters are missing and which record has them. */
export function truncateMiddle(text: string, each: number, id: string): string {
  const lead = text.length - text.trimStart().length
  const trail = text.length - text.trimEnd().length
  const head = text.slice(0, lead + each)
  const tail = text.slice(-(trail + each))
  const missing = text.length - head.length - tail.length
  return missing <= 0
    ? text
    : `${head}\n[${ELLIPSIS} ${missing} characters, in full in record ${id} ${ELLIPSIS}]\n${tail}`
}

/** Whether position `at` is inside a surrogate pair. */
function isInsidePair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before <= 0xdbff
}

// The beginning or end of a text within a number of tokens.

/** Counts the tokens of a text; appending to the text never lowers the result. */
export type TokenCounter = (text: string) => number

/** No token has more characters than this, except runs of blanks: a longer text need not be measured. */
const MAX_TOKEN_CHARACTERS = 24

/** The longest beginning within `tokens`; ends at a line end unless that would lose half of it. */
export function takeHead(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(0, size)))
  const head = text.slice(0, isLowSurrogateAt(text, length) ? length - 1 : length)
  if (head.length === text.length) return text
  const line = head.lastIndexOf('\n') + 1
  return line * 2 >= head.length ? head.slice(0, line) : head
}

/** The longest end within `tokens`; likewise begins at a line start. */
export function takeTail(text: string, tokens: number, measure: TokenCounter): string {
  const length = findLongest(text, tokens, (size) => measure(text.slice(text.length - size)))
  const start = text.length - length
  const tail = text.slice(isLowSurrogateAt(text, start) ? start + 1 : start)
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

function isLowSurrogateAt(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  const before = at > 0 ? text.charCodeAt(at - 1) : 0
  return unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff
}
