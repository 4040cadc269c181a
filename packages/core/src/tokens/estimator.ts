/** Estimates tokens without a tokenizer, from the characters of a text by class and the weights of a tokenizer family. */
import { type ContextEntry, isVisibleToModel, toTracedBlocks } from '../context/context-entry.ts'
import type { Payload } from '../context/payload.ts'
import {
  type Block,
  isMediaBlock,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type MessageContent,
} from '../log/block.ts'
import { readImageSize } from '../log/image-size.ts'
import { isObject } from '../log/json.ts'
import type { PrefixSnapshot } from '../log/record.ts'
import type { TokenEstimatePolicy } from '../policy/window-policy.ts'

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

/** Length of the array that `countCharacterClasses` fills. */
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
export function countCharacterClasses(
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

// The estimator. An estimate is an integer of at least 1 per block, and appending text never lowers it. Estimates are
// not calibrated: `usage.ts` corrects them with the usage that the provider reports.

/** Estimates in tokens, uncalibrated. */
export interface Estimator {
  readonly weights: EstimatorWeights
  text(text: string): number
  block(block: Block): number
  content(content: MessageContent): number
  /** Estimates the tokens that a context entry adds to an API request. The result is cached for each entry object. */
  entry(entry: ContextEntry): number
  /** Estimates the tokens of the thinking blocks in the entry. */
  thinking(entry: ContextEntry): number
  /** Estimates the tokens of system prompt and tools. */
  prefix(payload: Pick<Payload, 'system' | 'tools'>): number
  /** Estimates the tokens of system prompt and tools of a snapshot. The result is cached for each snapshot object. */
  snapshot(snapshot: Pick<PrefixSnapshot, 'sections' | 'tools'>): number
  /** Estimates the tokens of a whole API request. */
  payload(payload: Payload): number
  /** Returns true if `model` counts the same tokens as the estimator, so that its reported usage can be compared. */
  hasTokenizerOf(model: string): boolean
}

/** Creates an estimator, which caches by object. `hasTokenizerOf`: as in `Estimator`; default: all models have the same tokens. */
export function createEstimator(
  weights: EstimatorWeights,
  hasTokensOf: Estimator['hasTokenizerOf'] = () => true,
): Estimator {
  const scale: TextScales = {
    weights,
    text: createTextScale(weights.text),
    toolInput: createTextScale(weights.toolInput),
    toolResult: createTextScale(weights.toolResult),
  }
  const block = memoize((given: Block): number => estimateBlock(given, scale))
  const all = (blocks: readonly Block[]): number => sumTokens(blocks.map(block))
  const text = (given: string): number => estimateBlock({ type: 'text', text: given }, scale)
  const content = (given: MessageContent): number => (typeof given === 'string' ? text(given) : all(given))
  const prefix = ({ system, tools }: Pick<Payload, 'system' | 'tools'>): number =>
    (system === undefined ? 0 : content(system)) +
    sumTokens((tools ?? []).map((tool) => roundTokens(scale.text([toJson(tool)]))))
  return {
    weights,
    hasTokenizerOf: hasTokensOf,
    text,
    block,
    content,
    entry: memoize((entry) => all(listVisibleBlocks(entry))),
    thinking: (entry) => all(listVisibleBlocks(entry).filter(isThinkingBlock)),
    prefix,
    snapshot: memoize(({ sections, tools }) =>
      prefix({ system: sections.map(({ text: section }) => ({ type: 'text', text: section })), tools }),
    ),
    payload: (payload) =>
      prefix(payload) + sumTokens(payload.messages.map((message) => content(message.content))),
  }
}

/** Caches the estimate of each block or entry object. Clearing an entry creates a new object, which gets its own estimate. */
function memoize<Measured extends object>(measure: (given: Measured) => number): (given: Measured) => number {
  const known = new WeakMap<Measured, number>()
  return (given) => {
    const tokens = known.get(given) ?? measure(given)
    known.set(given, tokens)
    return tokens
  }
}

function listVisibleBlocks(entry: ContextEntry): readonly Block[] {
  return isVisibleToModel(entry) ? toTracedBlocks(entry).map((part) => part.block) : []
}

/** The weights of an estimator, and a function for each kind of text that estimates its tokens. */
interface TextScales {
  readonly weights: EstimatorWeights
  readonly text: TextScale
  readonly toolInput: TextScale
  readonly toolResult: TextScale
}

type TextScale = (texts: readonly string[]) => number

function createTextScale(given: TextWeights): TextScale {
  const weights = [given.characters, given.runs].flatMap((byClass) =>
    CHARACTER_CLASSES.map((name) => byClass[name]),
  )
  const counts = new Float64Array(CHARACTER_COUNTS_LENGTH)
  return (texts) => {
    counts.fill(0)
    for (const text of texts) countCharacterClasses(text, counts)
    let tokens = 0
    for (let index = 0; index < weights.length; index += 1)
      tokens += (counts[index] as number) * (weights[index] as number)
    return tokens
  }
}

function estimateBlock(block: Block, scale: TextScales): number {
  const parts = splitBlockForEstimate(block, scale.weights.inputForm)
  const inner = sumTokens(parts.nestedBlocks.map((held) => estimateBlock(held, scale)))
  return roundTokens(estimateOwnTokens(block, parts, scale) + inner)
}

/** Estimates the tokens of a block, not counting the blocks nested in it. */
function estimateOwnTokens(block: Block, parts: BlockParts, scale: TextScales): number {
  const { weights } = scale
  switch (parts.kind) {
    case 'text':
      return weights.perText + scale.text(parts.texts)
    case 'tool-use':
      return weights.perToolUse + weights.perToolField * parts.fields + scale.toolInput(parts.texts)
    case 'tool-result':
      return weights.perToolResult + scale.toolResult(parts.texts)
    case 'thinking':
      return estimateThinking(parts, scale)
    case 'image':
      return estimateImageTokens(block, weights.image)
    case 'document':
      return Math.max(weights.document, scale.text(parts.texts))
    case 'other':
      return scale.text(parts.texts)
  }
}

/**
 * Estimates the tokens of thinking from its text, or from its signature if the weights allow that. The larger of the
 * two estimates is used.
 */
function estimateThinking({ texts, signatureLength }: BlockParts, scale: TextScales): number {
  const { bySignature, perSignatureCharacter, less } = scale.weights.thinking
  const byText = scale.text(texts)
  const bySignatureLength = signatureLength * perSignatureCharacter - less
  const isHidden = texts.every((text) => text === '')
  return isHidden || bySignature === 'always' ? Math.max(byText, bySignatureLength) : byText
}

function roundTokens(tokens: number): number {
  return Math.max(1, Math.round(tokens))
}

function sumTokens(figures: readonly number[]): number {
  return figures.reduce((total, figure) => total + figure, 0)
}

// The functions below split a block into the parts whose tokens are estimated.

interface BlockParts {
  readonly kind: 'text' | 'tool-use' | 'tool-result' | 'thinking' | 'image' | 'document' | 'other'
  readonly texts: readonly string[]
  /** Number of fields in the input of a tool call; 0 if the whole input is counted as JSON text. */
  readonly fields: number
  /** Number of characters of the thinking signature, or of the data of redacted thinking. */
  readonly signatureLength: number
  /** Nested blocks, whose tokens are estimated separately. */
  readonly nestedBlocks: readonly Block[]
}

const NO_PARTS = { texts: [], fields: 0, signatureLength: 0, nestedBlocks: [] } as const

/**
 * Splits a block into the parts whose tokens are estimated. `inputForm` says how the input of a tool call is counted:
 * as JSON text, or field by field with strings unescaped.
 */
export function splitBlockForEstimate(block: Block, inputForm: 'json' | 'fields'): BlockParts {
  if (isTextBlock(block)) return { ...NO_PARTS, kind: 'text', texts: [block.text] }
  if (isToolUse(block)) return { ...NO_PARTS, kind: 'tool-use', ...splitCall(block, inputForm) }
  if (isToolResult(block)) return { ...NO_PARTS, kind: 'tool-result', ...splitContent(block.content) }
  if (isThinkingBlock(block)) return { ...NO_PARTS, kind: 'thinking', ...splitThinking(block) }
  if (!isMediaBlock(block)) return { ...NO_PARTS, kind: 'other', texts: [toJson(block)] }
  return block.type === 'image'
    ? { ...NO_PARTS, kind: 'image' }
    : { ...NO_PARTS, kind: 'document', ...splitDocument(block.source) }
}

function toJson(value: unknown): string {
  return JSON.stringify(value) ?? 'null'
}

function splitCall(block: Block, inputForm: 'json' | 'fields'): Pick<BlockParts, 'texts' | 'fields'> {
  const name = typeof block.name === 'string' ? block.name : ''
  if (inputForm === 'json' || !isObject(block.input)) return { texts: [name, toJson(block.input)], fields: 0 }
  const fields = Object.entries(block.input)
  const texts = fields.flatMap(([key, value]) => [key, typeof value === 'string' ? value : toJson(value)])
  return { texts: [name, ...texts], fields: fields.length }
}

function splitContent(content: unknown): Pick<BlockParts, 'texts' | 'nestedBlocks'> {
  if (typeof content === 'string') return { texts: [content], nestedBlocks: [] }
  const blocks: readonly Block[] = Array.isArray(content) ? content : []
  return {
    texts: blocks.flatMap((block) => (isTextBlock(block) ? [block.text] : [])),
    nestedBlocks: blocks.filter((block) => !isTextBlock(block)),
  }
}

function splitThinking(block: Block): Pick<BlockParts, 'texts' | 'signatureLength'> {
  const signature = [block.signature, block.data].find((field) => typeof field === 'string')
  return {
    texts: typeof block.thinking === 'string' ? [block.thinking] : [],
    signatureLength: typeof signature === 'string' ? signature.length : 0,
  }
}

/**
 * Returns the text of a document whose source is text or blocks. Other documents, such as PDFs, have no text that can
 * be counted.
 */
function splitDocument(source: unknown): Pick<BlockParts, 'texts' | 'nestedBlocks'> {
  if (!isObject(source)) return { texts: [], nestedBlocks: [] }
  if (source.type === 'text') return splitContent(source.data)
  return source.type === 'content' ? splitContent(source.content) : { texts: [], nestedBlocks: [] }
}

/**
 * Estimates the tokens of an image: by the provider's formula if its width and height can be read, otherwise a fixed
 * number.
 */
export function estimateImageTokens(block: Block, weights: ImageWeights): number {
  const { flat, patches: rule } = weights
  const { source } = block
  if (rule === null || !isObject(source) || typeof source.data !== 'string') return flat
  const size = readImageSize(source.data)
  if (size === null) return flat
  // The provider scales a large image down, keeping its aspect ratio, until its longer side is within the limit.
  const scale = Math.min(1, rule.maxEdge / Math.max(size.width, size.height))
  const patches = (pixels: number): number => Math.ceil((pixels * scale) / rule.pixels)
  return Math.min(patches(size.width) * patches(size.height), rule.maxTokens)
}

// Weights are plain data, with one set for each family of tokenizers. Measured sets are in the model catalogue; for
// other models `createDefaultWeights` creates a set.

/**
 * Tokens per character of each character class, and tokens per run (consecutive characters of one class). No weight is
 * negative.
 */
export interface TextWeights {
  readonly characters: Readonly<Record<CharacterClass, number>>
  readonly runs: Readonly<Record<CharacterClass, number>>
}

export interface EstimatorWeights {
  /** Weights for message text, thinking, tool definitions, and the JSON of unknown blocks. */
  readonly text: TextWeights
  readonly toolInput: TextWeights
  readonly toolResult: TextWeights
  /** How the input of a tool call is counted: as JSON text, or field by field with strings unescaped. */
  readonly inputForm: 'json' | 'fields'
  /** Tokens added for each block or input field, on top of the tokens of its content. */
  readonly perText: number
  readonly perToolUse: number
  readonly perToolField: number
  readonly perToolResult: number
  readonly thinking: ThinkingWeights
  readonly image: ImageWeights
  /** Minimum tokens of a document. Some documents have no text that can be counted. */
  readonly document: number
  /** The calibration that a session starts with. */
  readonly start: CalibrationStart
}

/**
 * Weights for estimating the tokens of thinking from the length of its signature. The signature grows with the
 * thinking, even if the provider hides the text.
 */
interface ThinkingWeights {
  /** When to use the length of the signature: for all thinking, or only if the provider hides the thinking text. */
  readonly bySignature: 'always' | 'hidden'
  readonly perSignatureCharacter: number
  /** Tokens subtracted from the estimate by signature. */
  readonly less: number
}

interface ImageWeights {
  /** Estimated tokens of an image whose width and height are unknown. */
  readonly flat: number
  /**
   * The provider's formula: one token per square patch of the scaled-down image. If null, every image counts as `flat`
   * tokens.
   */
  readonly patches: {
    readonly pixels: number
    readonly maxEdge: number
    readonly maxTokens: number
  } | null
}

export interface CalibrationStart {
  readonly scale: number
  /** Tokens that each model call adds to the context on top of the scaled estimate. */
  readonly offset: number
  /** Number of tokens after which the scale learned from the session has the same weight as the starting scale. */
  readonly weight: number
}

/** Creates weights that give every character the same number of tokens, for models without measured weights. */
export function createDefaultWeights(policy: TokenEstimatePolicy): EstimatorWeights {
  const text = createUniformTextWeights(1 / policy.charactersPerToken)
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

/** Creates weights that give characters of every class the same number of tokens. Runs of characters add none. */
export function createUniformTextWeights(tokensPerCharacter: number): TextWeights {
  return { characters: createUniformWeights(tokensPerCharacter), runs: createUniformWeights(0) }
}

function createUniformWeights(weight: number): Readonly<Record<CharacterClass, number>> {
  return Object.fromEntries(CHARACTER_CLASSES.map((name) => [name, weight])) as Record<CharacterClass, number>
}
