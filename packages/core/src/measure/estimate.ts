/**
 * How many tokens a thing takes before a provider has said so. The figures are whole, never 0 for a block,
 * and never fall when something is appended; the calibration of the session turns them into what is expected.
 */
import { type Block, blocksOf, type Content, isThinking } from '../conversation/block.ts'
import type { Entry } from '../view/entry.ts'
import { isShown, partsOf } from '../view/parts.ts'
import type { Payload } from '../view/payload.ts'
import { COUNTS, countCharacters } from './character-classes.ts'
import { imageTokens } from './estimate-image.ts'
import { type BlockParts, jsonOf, partsOfBlock } from './estimate-parts.ts'
import { type EstimatorWeights, flatWeights, type TextWeights } from './estimate-weights.ts'

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
