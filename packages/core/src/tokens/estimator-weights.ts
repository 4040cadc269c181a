/**
 * What a token estimate is made with: plain data, one set per family of tokenizer. Fitted sets are in the
 * catalogue; the fixed rule, for a family nobody has measured, is made here from the policy.
 */
import type { EstimatePolicy } from '../policy/policy.ts'

/** Tokens for each character and each run of a class. None is negative. */
export interface TextWeights {
  readonly characters: Readonly<Record<CharacterClass, number>>
  readonly runs: Readonly<Record<CharacterClass, number>>
}

export interface EstimatorWeights {
  /** Text of anybody, names of tools, and the JSON of blocks nobody knows. */
  readonly text: TextWeights
  readonly toolInput: TextWeights
  readonly toolResult: TextWeights
  /** How the input of a call is counted: as its JSON, or field by field with strings as they are. */
  readonly inputForm: 'json' | 'fields'
  /** Tokens beside what a block holds. */
  readonly perText: number
  readonly perToolUse: number
  readonly perToolField: number
  readonly perToolResult: number
  readonly thinking: ThinkingWeights
  readonly image: ImageWeights
  /** Tokens, flat. */
  readonly document: number
  /** Where the calibration of a session begins. */
  readonly start: CalibrationStart
}

/** Thinking is counted by its signature, which grows with all that was thought, shown or not. */
interface ThinkingWeights {
  /** `hidden`: only where the text is not shown. */
  readonly bySignature: 'always' | 'hidden'
  readonly perSignatureCharacter: number
  readonly less: number
}

export interface ImageWeights {
  /** Tokens, flat, where the dimensions are not known. */
  readonly flat: number
  /** One token for each square patch of the picture, scaled down to both limits; null: always flat. */
  readonly patches: {
    readonly pixels: number
    readonly maxEdge: number
    readonly maxTokens: number
  } | null
}

export interface CalibrationStart {
  readonly scale: number
  /** Tokens added to what each call is estimated to add. */
  readonly offset: number
  /** Tokens that have to be seen before the session's own scale weighs as much as this one. */
  readonly weight: number
}

/** Every character weighs the same: the rule for a family without figures of its own. */
export function fixedRule(policy: EstimatePolicy): EstimatorWeights {
  const text = evenWeights(1 / policy.charactersPerToken)
  return {
    text,
    toolInput: text,
    toolResult: text,
    inputForm: 'json',
    perText: 0,
    perToolUse: 0,
    perToolField: 0,
    perToolResult: 0,
    thinking: {
      bySignature: 'hidden',
      perSignatureCharacter: policy.signatureTokensPerCharacter,
      less: policy.signatureLessTokens,
    },
    image: { flat: policy.imageTokens, patches: null },
    document: policy.documentTokens,
    start: { scale: 1, offset: 0, weight: 2_000 },
  }
}

/** The same weight for a character of any class, none for runs. */
export function evenWeights(tokensPerCharacter: number): TextWeights {
  return { characters: perClass(tokensPerCharacter), runs: perClass(0) }
}

function perClass(weight: number): Readonly<Record<CharacterClass, number>> {
  return Object.fromEntries(CHARACTER_CLASSES.map((name) => [name, weight])) as Record<CharacterClass, number>
}

/** The weights in the order of the counts. */
export function flatWeights({ characters, runs }: TextWeights): Float64Array {
  const byClass = (weights: Readonly<Record<CharacterClass, number>>): readonly number[] =>
    CHARACTER_CLASSES.map((name) => weights[name])
  return Float64Array.from([...byClass(characters), ...byClass(runs)])
}

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
type CharacterCounts = Float64Array

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
