/** Texts made shorter without a lie: what stands is as it was, and a mark says that something is missing. */

const CUT = '…'

/** The first `most` characters, never half a surrogate pair. */
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

/** The first line that says something, cut to `most`. */
export function firstLine(text: string, most: number): string {
  const line = text.split('\n').find((given) => given.trim() !== '') ?? ''
  return beginning(line.trim(), most)
}

/** Both ends, with the number of characters between them and where to read them. */
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

/** Is the place between the halves of a pair? */
function isHalf(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  return before >= 0xd800 && before <= 0xdbff
}

// The beginning or the end of a text that fits into so many tokens.

/** Tokens of a text; appending never lowers the figure. */
export type Measure = (text: string) => number

/** No token stands for more characters than this, blank runs aside: what is longer need not be measured. */
const LONGEST_TOKEN = 24

/** The longest beginning within `tokens`: to the end of a line, unless that would give up half of it. */
export function headWithin(text: string, tokens: number, measure: Measure): string {
  const length = longest(text, tokens, (size) => measure(text.slice(0, size)))
  const head = text.slice(0, beforePair(text, length))
  if (head.length === text.length) return text
  const line = head.lastIndexOf('\n') + 1
  return line * 2 >= head.length ? head.slice(0, line) : head
}

/** The longest end within `tokens`, from the beginning of a line likewise. */
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

/** A character of two units is not cut in the middle. */
function beforePair(text: string, length: number): number {
  return isLowHalf(text, length) ? length - 1 : length
}

function isLowHalf(text: string, at: number): boolean {
  const unit = text.charCodeAt(at)
  const before = at > 0 ? text.charCodeAt(at - 1) : 0
  return unit >= 0xdc00 && unit <= 0xdfff && before >= 0xd800 && before <= 0xdbff
}
