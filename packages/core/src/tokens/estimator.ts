/**
 * What a token estimate is made with: plain data, one set per family of tokenizer. Fitted sets are in the
 * catalogue; the fixed rule, for a family nobody has measured, is made here from the policy.
 */

import type { Entry } from '../context/entry.ts'
import { isShown, partsOf } from '../context/message-parts.ts'
import type { Payload } from '../context/payload.ts'
import {
  type Block,
  blocksOf,
  type Content,
  isMedia,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
} from '../log/block.ts'
import { type ImageSize, imageSize } from '../log/image-size.ts'
import { isObject } from '../log/json.ts'
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

// How many tokens a thing takes before a provider has said so. The figures are whole, never 0 for a block,
// and never fall when something is appended; the calibration of the session turns them into what is expected.

export interface Estimator {
  readonly weights: EstimatorWeights
  text(text: string): number
  block(block: Block): number
  content(content: Content): number
  /** What an entry of the view brings to a request. Remembered for as long as the view holds this form of it. */
  entry(entry: Entry): number
  /** The part of `entry` that is thinking. */
  thinking(entry: Entry): number
  /** What stands in front of the messages: system prompt and tools. */
  prefix(payload: Pick<Payload, 'system' | 'tools'>): number
  /** A whole request. */
  payload(payload: Payload): number
}

export function createEstimator(weights: EstimatorWeights): Estimator {
  const scale = scaleFor(weights)
  const block = (given: Block): number => blockTokens(given, scale)
  const all = (blocks: readonly Block[]): number => sum(blocks.map(block))
  const content = (given: Content): number => all(blocksOf(given))
  const prefix = ({ system, tools }: Pick<Payload, 'system' | 'tools'>): number =>
    (system === undefined ? 0 : content(system)) +
    sum((tools ?? []).map((tool) => whole(scale.text([jsonOf(tool)]))))
  return {
    weights,
    text: (text) => block({ type: 'text', text }),
    block,
    content,
    entry: remembered((entry) => all(shownBlocks(entry))),
    thinking: (entry) => all(shownBlocks(entry).filter(isThinking)),
    prefix,
    payload: (payload) => prefix(payload) + sum(payload.messages.map((message) => content(message.content))),
  }
}

/** A cleared entry is another object than the one that was shown whole, so neither form is taken for the other. */
function remembered(measure: (entry: Entry) => number): (entry: Entry) => number {
  const known = new WeakMap<Entry, number>()
  return (entry) => {
    const tokens = known.get(entry) ?? measure(entry)
    known.set(entry, tokens)
    return tokens
  }
}

function shownBlocks(entry: Entry): readonly Block[] {
  return isShown(entry) ? partsOf(entry).map((part) => part.block) : []
}

/** The weights, with those of each kind of text made into a scale to put texts on. */
interface Scale {
  readonly weights: EstimatorWeights
  readonly text: TextScale
  readonly toolInput: TextScale
  readonly toolResult: TextScale
}

type TextScale = (texts: readonly string[]) => number

function scaleFor(weights: EstimatorWeights): Scale {
  return {
    weights,
    text: textScale(weights.text),
    toolInput: textScale(weights.toolInput),
    toolResult: textScale(weights.toolResult),
  }
}

function textScale(given: TextWeights): TextScale {
  const weights = flatWeights(given)
  return (texts) => {
    const counts = new Float64Array(COUNTS)
    for (const text of texts) countCharacters(text, counts)
    return counts.reduce((tokens, count, index) => tokens + count * (weights[index] ?? 0), 0)
  }
}

function blockTokens(block: Block, scale: Scale): number {
  const parts = partsOfBlock(block, scale.weights.inputForm)
  const inner = sum(parts.inner.map((held) => blockTokens(held, scale)))
  return whole(ownTokens(block, parts, scale) + inner)
}

/** Without the blocks inside. */
function ownTokens(block: Block, parts: BlockParts, scale: Scale): number {
  const { weights } = scale
  switch (parts.kind) {
    case 'text':
      return weights.perText + scale.text(parts.texts)
    case 'tool-use':
      return weights.perToolUse + weights.perToolField * parts.fields + scale.toolInput(parts.texts)
    case 'tool-result':
      return weights.perToolResult + scale.toolResult(parts.texts)
    case 'thinking':
      return thinkingTokens(parts, scale)
    case 'image':
      return imageTokens(block, weights.image)
    case 'document':
      return Math.max(weights.document, scale.text(parts.texts))
    case 'other':
      return scale.text(parts.texts)
  }
}

/** A signature may come after the text it signs: the figure does not fall when it does. */
function thinkingTokens({ texts, cipher }: BlockParts, scale: Scale): number {
  const { bySignature, perSignatureCharacter, less } = scale.weights.thinking
  const byText = scale.text(texts)
  const byCipher = cipher * perSignatureCharacter - less
  const isHidden = texts.every((text) => text === '')
  return isHidden || bySignature === 'always' ? Math.max(byText, byCipher) : byText
}

function whole(tokens: number): number {
  return Math.max(1, Math.round(tokens))
}

function sum(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}

// What in a block is counted, and by which weights: shared by the estimator and by what fits its weights.

interface BlockParts {
  readonly kind: 'text' | 'tool-use' | 'tool-result' | 'thinking' | 'image' | 'document' | 'other'
  readonly texts: readonly string[]
  /** Fields of a call's input, where they are counted one by one. */
  readonly fields: number
  /** Length of a signature, or of thinking that is all cipher. */
  readonly cipher: number
  /** Blocks inside that are counted by themselves. */
  readonly inner: readonly Block[]
}

const NOTHING = { texts: [], fields: 0, cipher: 0, inner: [] } as const

/** `inputForm`: the input of a call as its JSON, or field by field with strings as they are. */
export function partsOfBlock(block: Block, inputForm: 'json' | 'fields'): BlockParts {
  if (isText(block)) return { ...NOTHING, kind: 'text', texts: [block.text] }
  if (isToolUse(block)) return { ...NOTHING, kind: 'tool-use', ...callParts(block, inputForm) }
  if (isToolResult(block)) return { ...NOTHING, kind: 'tool-result', ...heldIn(block.content) }
  if (isThinking(block)) return { ...NOTHING, kind: 'thinking', ...thinkingParts(block) }
  if (!isMedia(block)) return { ...NOTHING, kind: 'other', texts: [jsonOf(block)] }
  return block.type === 'image'
    ? { ...NOTHING, kind: 'image' }
    : { ...NOTHING, kind: 'document', ...documentParts(block.source) }
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}

function callParts(block: Block, inputForm: 'json' | 'fields'): Pick<BlockParts, 'texts' | 'fields'> {
  const name = typeof block.name === 'string' ? block.name : ''
  if (inputForm === 'json' || !isObject(block.input)) return { texts: [name, jsonOf(block.input)], fields: 0 }
  const fields = Object.entries(block.input)
  const texts = fields.flatMap(([key, value]) => [key, typeof value === 'string' ? value : jsonOf(value)])
  return { texts: [name, ...texts], fields: fields.length }
}

function heldIn(content: unknown): Pick<BlockParts, 'texts' | 'inner'> {
  if (typeof content === 'string') return { texts: [content], inner: [] }
  const blocks: readonly Block[] = Array.isArray(content) ? content : []
  return {
    texts: blocks.flatMap((block) => (isText(block) ? [block.text] : [])),
    inner: blocks.filter((block) => !isText(block)),
  }
}

function thinkingParts(block: Block): Pick<BlockParts, 'texts' | 'cipher'> {
  const cipher = [block.signature, block.data].find((field) => typeof field === 'string')
  return {
    texts: typeof block.thinking === 'string' ? [block.thinking] : [],
    cipher: typeof cipher === 'string' ? cipher.length : 0,
  }
}

/** A document may be given as text or as blocks; the bytes of any other tell nothing. */
function documentParts(source: unknown): Pick<BlockParts, 'texts' | 'inner'> {
  if (!isObject(source)) return { texts: [], inner: [] }
  if (source.type === 'text') return heldIn(source.data)
  return source.type === 'content' ? heldIn(source.content) : { texts: [], inner: [] }
}

// Tokens of a picture: by its dimensions where the provider's formula and the picture's bytes tell, else flat.

export function imageTokens(block: Block, weights: ImageWeights): number {
  const size = weights.patches === null ? null : sizeOf(block)
  return size === null || weights.patches === null ? weights.flat : patchTokens(size, weights.patches)
}

function sizeOf(block: Block): ImageSize | null {
  const { source } = block
  return isObject(source) && typeof source.data === 'string' ? imageSize(source.data) : null
}

/** The picture is scaled down, keeping its shape, until both its longer edge and its patches are within limits. */
function patchTokens(size: ImageSize, rule: NonNullable<ImageWeights['patches']>): number {
  const fit = Math.min(1, rule.maxEdge / Math.max(size.width, size.height))
  const patches = (scale: number): number =>
    Math.ceil((size.width * scale) / rule.pixels) * Math.ceil((size.height * scale) / rule.pixels)
  return Math.min(patches(fit), rule.maxTokens)
}
