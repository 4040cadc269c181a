/** Shortens texts: the part that is kept is unchanged, and a mark shows that something is missing. */

const CUT = '…'

/** The first `most` characters; never splits a surrogate pair. */
export function beginning(text: string, most: number): string {
  if (text.length <= most) return text
  return `${text.slice(0, isHalf(text, most) ? most - 1 : most)}${CUT}`
}

/** The last `most` characters. */
export function ending(text: string, most: number): string {
  if (text.length <= most) return text
  const from = text.length - most
  return `${CUT}${text.slice(isHalf(text, from) ? from + 1 : from)}`
}

/** The first line that is not blank, cut to `most` characters. */
export function firstLine(text: string, most: number): string {
  const line = text.split('\n').find((given) => given.trim() !== '') ?? ''
  return beginning(line.trim(), most)
}

/** Both ends, with a note of how many characters are missing and which record has them. */
export function bothEnds(text: string, each: number, id: string): string {
  const lead = text.length - text.trimStart().length
  const trail = text.length - text.trimEnd().length
  const head = text.slice(0, lead + each)
  const tail = text.slice(-(trail + each))
  const missing = text.length - head.length - tail.length
  return missing <= 0
    ? text
    : `${head}\n[${CUT} ${missing} characters, in full in record ${id} ${CUT}]\n${tail}`
}

/** Whether position `at` is inside a surrogate pair. */
function isHalf(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before <= 0xdbff
}

// The beginning or end of a text within a number of tokens.

/** Counts the tokens of a text; appending to the text never lowers the result. */
export type Measure = (text: string) => number

/** No token has more characters than this, except runs of blanks: a longer text need not be measured. */
const LONGEST_TOKEN = 24

/** The longest beginning within `tokens`; ends at a line end unless that would lose half of it. */
export function headWithin(text: string, tokens: number, measure: Measure): string {
  const length = longest(text, tokens, (size) => measure(text.slice(0, size)))
  const head = text.slice(0, isLowHalf(text, length) ? length - 1 : length)
  if (head.length === text.length) return text
  const line = head.lastIndexOf('\n') + 1
  return line * 2 >= head.length ? head.slice(0, line) : head
}

/** The longest end within `tokens`; likewise begins at a line start. */
export function tailWithin(text: string, tokens: number, measure: Measure): string {
  const length = longest(text, tokens, (size) => measure(text.slice(text.length - size)))
  const start = text.length - length
  const tail = text.slice(isLowHalf(text, start) ? start + 1 : start)
  if (tail.length === text.length) return text
  const line = tail.indexOf('\n') + 1
  return line * 2 <= tail.length ? tail.slice(line) : tail
}

function longest(text: string, tokens: number, measured: (size: number) => number): number {
  let most = Math.min(text.length, Math.max(0, tokens) * LONGEST_TOKEN)
  if (measured(most) <= tokens) return most
  let least = 0
  while (least < most) {
    const size = Math.ceil((least + most) / 2)
    if (measured(size) <= tokens) least = size
    else most = size - 1
  }
  return least
}

function isLowHalf(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  const before = at > 0 ? text.charCodeAt(at - 1) : 0
  return unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff
}
