/**
 * What a text is made of, counted in one pass: characters and runs of them, by class. A tokenizer parts a text
 * roughly where the class of character changes, so these few counts tell most of what it would say.
 */
export const CHARACTER_CLASSES = [
  'space', // blanks, tabs and other control characters
  'newline',
  'lower',
  'upper',
  'digit',
  'punctuation',
  'escape', // the backslash: in quoted JSON each one begins a token of its own
  'letter', // alphabets other than ASCII
  'symbol', // arrows, boxes, dashes, quotes
  'wide', // Chinese, Japanese, Korean, and halves of surrogate pairs
] as const
export type CharacterClass = (typeof CHARACTER_CLASSES)[number]

const CLASSES: number = CHARACTER_CLASSES.length

/** Characters by class, then runs by class. Appending to a text lowers none of them. */
export type CharacterCounts = Float64Array

export const COUNTS: number = 2 * CLASSES

const UNITS = 0x10000
const CLASS_OF: Uint8Array = classTable()

/** Adds the counts of `text` to `counts`. */
export function countCharacters(
  text: string,
  counts: CharacterCounts = new Float64Array(COUNTS),
): CharacterCounts {
  let previous = -1
  for (let index = 0; index < text.length; index += 1) {
    const current = CLASS_OF[text.charCodeAt(index)] as number
    counts[current] = (counts[current] as number) + 1
    if (current !== previous) counts[CLASSES + current] = (counts[CLASSES + current] as number) + 1
    previous = current
  }
  return counts
}

function classTable(): Uint8Array {
  const table = new Uint8Array(UNITS)
  for (let unit = 0; unit < UNITS; unit += 1) table[unit] = CHARACTER_CLASSES.indexOf(classOf(unit))
  return table
}

function classOf(unit: number): CharacterClass {
  if (unit >= 0x2e80) return 'wide'
  if (unit >= 0x2000) return 'symbol'
  if (unit >= 0x80) return 'letter'
  return asciiClass(unit)
}

function asciiClass(unit: number): CharacterClass {
  if (unit === 0x0a || unit === 0x0d) return 'newline'
  if (unit <= 0x20 || unit === 0x7f) return 'space'
  if (unit >= 0x61 && unit <= 0x7a) return 'lower'
  if (unit >= 0x41 && unit <= 0x5a) return 'upper'
  if (unit >= 0x30 && unit <= 0x39) return 'digit'
  return unit === 0x5c ? 'escape' : 'punctuation'
}
