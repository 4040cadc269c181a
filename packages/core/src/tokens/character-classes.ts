/** Counts the characters of a text by class, from which the estimator computes tokens. */

/**
 * Character classes (letters, digits, white space …). A tokenizer splits text roughly where the class changes, so the
 * numbers of characters and of runs in each class predict the number of tokens well.
 */
export const CHARACTER_CLASSES = [
  'space', // Blanks, tabs and other control characters.
  'newline',
  'lower',
  'upper',
  'digit',
  'punctuation',
  'escape', // The backslash, which starts a token in quoted JSON.
  'letter', // Alphabets other than ASCII.
  'symbol', // Arrows, boxes, dashes and quotes.
  'wide', // Chinese, Japanese, Korean, and halves of surrogate pairs.
] as const
export type CharacterClass = (typeof CHARACTER_CLASSES)[number]

const CLASS_COUNT: number = CHARACTER_CLASSES.length

/**
 * Array of counts: the number of characters of each class, then the number of runs of each class. Appending text never
 * lowers a count.
 */
type CharacterCounts = Float64Array

export const CHARACTER_COUNTS_LENGTH: number = 2 * CLASS_COUNT

/** The character class of each UTF-16 code unit. */
const CLASS_BY_CODE_UNIT: Uint8Array = Uint8Array.from({ length: 0x10000 }, (_, unit) =>
  CHARACTER_CLASSES.indexOf(classifyCodeUnit(unit)),
)

/**
 * Reused buffer: how often a character of one class (row) is followed by one of another (column). The last row is for
 * the first character. One addition for each character counts both characters and runs.
 */
const pairCounts = new Uint32Array((CLASS_COUNT + 1) * CLASS_COUNT)

/** Adds the characters and runs of `text` to `counts`, and returns `counts`. */
export function countCharacters(
  text: string,
  counts: CharacterCounts = new Float64Array(CHARACTER_COUNTS_LENGTH),
): CharacterCounts {
  pairCounts.fill(0)
  let row = CLASS_COUNT * CLASS_COUNT
  for (let index = 0; index < text.length; index += 1) {
    const current = CLASS_BY_CODE_UNIT[text.charCodeAt(index)] as number
    pairCounts[row + current] = (pairCounts[row + current] as number) + 1
    row = current * CLASS_COUNT
  }
  for (let pair = 0; pair < pairCounts.length; pair += 1) {
    const count = pairCounts[pair] as number
    if (count === 0) continue
    const current = pair % CLASS_COUNT
    const isRunStart = pair !== current * CLASS_COUNT + current
    counts[current] = (counts[current] as number) + count
    if (isRunStart) counts[CLASS_COUNT + current] = (counts[CLASS_COUNT + current] as number) + count
  }
  return counts
}

function classifyCodeUnit(unit: number): CharacterClass {
  if (unit >= 0x2e80) return 'wide'
  if (unit >= 0x2000) return 'symbol'
  if (unit >= 0x80) return 'letter'
  if (unit === 0x0a || unit === 0x0d) return 'newline'
  if (unit <= 0x20 || unit === 0x7f) return 'space'
  if (unit >= 0x61 && unit <= 0x7a) return 'lower'
  if (unit >= 0x41 && unit <= 0x5a) return 'upper'
  if (unit >= 0x30 && unit <= 0x39) return 'digit'
  return unit === 0x5c ? 'escape' : 'punctuation'
}
