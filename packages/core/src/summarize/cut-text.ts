/** Texts made shorter without a lie: what stands is as it was, and a mark says that something is missing. */

export const CUT = '…'

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
