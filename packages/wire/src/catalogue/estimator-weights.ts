/** The weights of a token estimate for each family of tokenizer: fitted, derived, or the fixed rule. */
import {
  type CharacterClass,
  type EstimatePolicy,
  type EstimatorWeights,
  evenWeights,
  fixedRule,
  type TextWeights,
} from '@tidemark/core'
import { FITTED, type FittedConstants } from './estimator-constants.ts'
import type { TokenizerFamily } from './model-entry.ts'

/** `null`: a model nobody knows, or a family without figures. The flat figures are the policy's. */
export function estimatorWeights(family: TokenizerFamily | null, policy: EstimatePolicy): EstimatorWeights {
  switch (family) {
    case 'claude-to-4.6':
      return fittedWeights(FITTED, policy)
    case 'claude-from-4.7':
      return claudeFrom47(policy)
    case 'openai':
      return openai(policy)
    default:
      return fixedRule(policy)
  }
}

/** A reminder that a host sends after a number of blocks without certain tools, and does not log. */
export interface ReminderRule {
  /** Tools whose use puts the reminder off. */
  readonly tools: readonly string[]
  /** Blocks of responses, thinking aside, from one to the next. */
  readonly every: number
  readonly tokens: number
}

/** What Claude Code sends and, in the versions that ran these models, did not log. */
export const CLAUDE_CODE_REMINDER: ReminderRule = {
  tools: ['TodoWrite', 'TaskCreate', 'TaskUpdate'],
  every: 10,
  tokens: FITTED.reminder,
}

const FITTED_TEXT: TextWeights = { characters: FITTED.characters, runs: FITTED.runs }

/** Patches and limits as the vision page has them; 4.7 and later see larger pictures. */
const STANDARD_PATCHES = { pixels: 28, maxEdge: 1568, maxTokens: 1568 }
const LARGE_PATCHES = { pixels: 28, maxEdge: 2576, maxTokens: 4784 }

/** Constants as they were fitted to sessions of Claude up to 4.6. */
export function fittedWeights(fitted: FittedConstants, policy: EstimatePolicy): EstimatorWeights {
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
 * No session of the newer tokenizer was at hand. Measured elsewhere on Opus 4.7 and 4.8: 2.4 characters a token
 * in tool inputs and 2.1 in results, where the older one has 3.3 and 2.9; text runs at 1.3 times as many tokens.
 * So: the older weights, times that. Sessions correct it soon, since the start weighs little.
 */
const NEWER = { text: 1.3, toolInput: 1.38, toolResult: 1.38 }

function claudeFrom47(policy: EstimatePolicy): EstimatorWeights {
  const older = fittedWeights(FITTED, policy)
  return {
    ...older,
    text: times(FITTED_TEXT, NEWER.text),
    toolInput: times(FITTED_TEXT, NEWER.toolInput),
    toolResult: times(FITTED_TEXT, NEWER.toolResult),
    thinking: { ...older.thinking, perSignatureCharacter: FITTED.perSignatureCharacter * NEWER.text },
    image: { flat: policy.imageTokens, patches: LARGE_PATCHES },
    start: { scale: 1, offset: 0, weight: 4_000 },
  }
}

/**
 * Counts of the public o200k vocabulary are 0.87 of the older Claude's on the same texts, half of them within
 * 5%; one recorded Codex session came out 7% low with 12 tokens an item beside its text.
 */
const O200K = { share: 0.87, perItem: 12 }

function openai(policy: EstimatePolicy): EstimatorWeights {
  const text = times(FITTED_TEXT, O200K.share)
  return {
    ...fixedRule(policy),
    text,
    toolInput: text,
    toolResult: text,
    perText: O200K.perItem,
    perToolUse: O200K.perItem,
    perToolResult: O200K.perItem,
    start: { scale: 1, offset: 0, weight: 4_000 },
  }
}

function times({ characters, runs }: TextWeights, factor: number): TextWeights {
  return { characters: eachTimes(characters, factor), runs: eachTimes(runs, factor) }
}

function eachTimes(
  weights: Readonly<Record<CharacterClass, number>>,
  factor: number,
): Readonly<Record<CharacterClass, number>> {
  const entries = Object.entries(weights).map(([name, weight]) => [name, weight * factor])
  return { ...evenWeights(0).characters, ...Object.fromEntries(entries) }
}
