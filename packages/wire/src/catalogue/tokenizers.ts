/**
 * Where a token estimate starts, by family of tokenizer: characters per token by kind of block, measured on
 * real sessions. Calibration does the rest.
 */
export type TokenizerFamily = 'claude-to-4.6' | 'claude-from-4.7' | 'openai' | 'gemini'

export interface EstimatorConstants {
  readonly charactersPerToken: {
    readonly text: number | null
    readonly thinking: number | null
    readonly toolInput: number | null
    readonly toolResult: number | null
  }
  /** Tokens that every tool result costs beside its text. */
  readonly perToolResult: number | null
  /** Thinking whose text is hidden, by the length of its signature: tokens a character, less a constant. */
  readonly signature: { readonly perCharacter: number; readonly less: number } | null
  readonly source: string
  readonly asOf: string
}

const MEASURED = 'measured on recorded sessions, against the usage of each response'

export const ESTIMATOR_CONSTANTS: Readonly<Record<TokenizerFamily, EstimatorConstants>> = {
  'claude-to-4.6': {
    charactersPerToken: { text: 3.6, thinking: 3.3, toolInput: 3.3, toolResult: 2.9 },
    perToolResult: 94,
    signature: { perCharacter: 0.205, less: 38 },
    source: `${MEASURED} (Opus 4.5 and 4.6)`,
    asOf: '2026-11-15',
  },
  'claude-from-4.7': {
    charactersPerToken: { text: 2.5, thinking: null, toolInput: 2.4, toolResult: 2.1 },
    perToolResult: null,
    signature: null,
    source: `${MEASURED} (Opus 4.7 and 4.8); text: 2.5M characters per 1M tokens, models page of 2026-10-10`,
    asOf: '2026-11-15',
  },
  openai: unmeasured(),
  gemini: unmeasured(),
}

function unmeasured(): EstimatorConstants {
  return {
    charactersPerToken: { text: null, thinking: null, toolInput: null, toolResult: null },
    perToolResult: null,
    signature: null,
    source: 'not measured',
    asOf: '2026-11-15',
  }
}
