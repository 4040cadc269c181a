/**
 * Weights of the token estimator for each tokenizer family: fitted to recorded sessions (Claude up to 4.6), derived
 * from published figures (newer Claude, OpenAI), or a fixed number of characters per token (all others).
 */
import type { TokenEstimatePolicy } from '@tidemark/core/policy/window-policy'
import {
  type CharacterClass,
  createDefaultWeights,
  createUniformTextWeights,
  type EstimatorWeights,
  type TextWeights,
} from '@tidemark/core/tokens/estimator'
import { FITTED_CONSTANTS, type FittedConstants } from './estimator-constants.ts'
import type { TokenizerFamily } from './model-entry.ts'

/**
 * Returns the token estimator's weights for a tokenizer family; null stands for an unknown tokenizer. The weights of
 * images and documents are taken from `policy`.
 */
export function createEstimatorWeights(
  family: TokenizerFamily | null,
  policy: TokenEstimatePolicy,
): EstimatorWeights {
  switch (family) {
    case 'claude-to-4.6':
      return createFittedWeights(FITTED_CONSTANTS, policy)
    case 'claude-from-4.7':
      return claudeFrom47Weights(policy)
    case 'openai':
      return openaiWeights(policy)
    default:
      return createDefaultWeights(policy)
  }
}

const FITTED_TEXT_WEIGHTS: TextWeights = {
  characters: FITTED_CONSTANTS.characters,
  runs: FITTED_CONSTANTS.runs,
}

/** Image patch sizes and limits from the provider's vision documentation. Claude 4.7 and later accept larger images. */
const STANDARD_PATCHES = { pixels: 28, maxEdge: 1568, maxTokens: 1568 }
const LARGE_PATCHES = { pixels: 28, maxEdge: 2576, maxTokens: 4784 }

/** Returns estimator weights from constants that were fitted to sessions of Claude up to 4.6. */
export function createFittedWeights(fitted: FittedConstants, policy: TokenEstimatePolicy): EstimatorWeights {
  const text = { characters: fitted.characters, runs: fitted.runs }
  return {
    text,
    toolInput: text,
    toolResult: text,
    inputForm: 'fields',
    perText: fitted.perText,
    perToolUse: fitted.perToolUse,
    perToolField: fitted.perToolField,
    perToolResult: fitted.perToolResult,
    thinking: {
      bySignature: 'always',
      perSignatureCharacter: fitted.perSignatureCharacter,
      less: fitted.signatureLess,
    },
    image: { flat: policy.imageTokens, patches: STANDARD_PATCHES },
    document: policy.documentTokens,
    start: fitted.start,
  }
}

/**
 * Tokens that the tokenizer of Claude 4.7 and later counts, divided by those of the older one. No recorded sessions
 * were available, so the ratios are derived from published measurements on Opus 4.7 and 4.8: 2.4 instead of 3.3
 * characters per token in tool inputs, 2.1 instead of 2.9 in tool results. Calibration by reported usage corrects them.
 */
const NEWER_TOKENIZER_RATIO = { text: 1.3, toolInput: 1.38, toolResult: 1.38 }

function claudeFrom47Weights(policy: TokenEstimatePolicy): EstimatorWeights {
  const older = createFittedWeights(FITTED_CONSTANTS, policy)
  return {
    ...older,
    text: scaleTextWeights(FITTED_TEXT_WEIGHTS, NEWER_TOKENIZER_RATIO.text),
    toolInput: scaleTextWeights(FITTED_TEXT_WEIGHTS, NEWER_TOKENIZER_RATIO.toolInput),
    toolResult: scaleTextWeights(FITTED_TEXT_WEIGHTS, NEWER_TOKENIZER_RATIO.toolResult),
    thinking: {
      ...older.thinking,
      perSignatureCharacter: FITTED_CONSTANTS.perSignatureCharacter * NEWER_TOKENIZER_RATIO.text,
    },
    image: { flat: policy.imageTokens, patches: LARGE_PATCHES },
    start: { scale: 1, offset: 0, weight: 4_000 },
  }
}

/**
 * `share`: tokens of OpenAI's public o200k tokenizer per token of the older Claude tokenizer, on the same texts; half
 * of the texts are within 5 % of it. `perItem`: tokens added for each item. With these values, one recorded Codex
 * session is estimated 7 % too low.
 */
const O200K_RATIO = { share: 0.87, perItem: 12 }

function openaiWeights(policy: TokenEstimatePolicy): EstimatorWeights {
  const text = scaleTextWeights(FITTED_TEXT_WEIGHTS, O200K_RATIO.share)
  return {
    ...createDefaultWeights(policy),
    text,
    toolInput: text,
    toolResult: text,
    perText: O200K_RATIO.perItem,
    perToolUse: O200K_RATIO.perItem,
    perToolResult: O200K_RATIO.perItem,
    start: { scale: 1, offset: 0, weight: 4_000 },
  }
}

function scaleTextWeights({ characters, runs }: TextWeights, factor: number): TextWeights {
  return { characters: scaleEach(characters, factor), runs: scaleEach(runs, factor) }
}

function scaleEach(
  weights: Readonly<Record<CharacterClass, number>>,
  factor: number,
): Readonly<Record<CharacterClass, number>> {
  const entries = Object.entries(weights).map(([name, weight]) => [name, weight * factor])
  return { ...createUniformTextWeights(0).characters, ...Object.fromEntries(entries) }
}
