import { cutEnd, widthOf } from './width.ts'

/** In as many lines as it takes, broken between words; the first begins with `mark`, the others as far in. */
export function wrap(text: string, columns: number, mark = ''): readonly string[] {
  const indent = ' '.repeat(widthOf(mark))
  const room = columns - indent.length
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    const joined = last === undefined ? word : `${last} ${word}`
    if (last !== undefined && widthOf(joined) <= room) lines[lines.length - 1] = joined
    else lines.push(cutEnd(word, room))
  }
  return lines.map((line, index) => `${index === 0 ? mark : indent}${line}`)
}
