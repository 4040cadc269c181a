/** Families of tokenizers, and what the estimate of each rests on. The weights are in `estimator-weights`. */
export type TokenizerFamily = 'claude-to-4.6' | 'claude-from-4.7' | 'openai' | 'gemini'

/** Fitted to recorded sessions, derived from figures measured elsewhere, or the fixed rule and nothing more. */
export type EstimateBasis = 'fitted' | 'derived' | 'fixed-rule'

export const TOKENIZER_FAMILIES: Readonly<Record<TokenizerFamily, EstimateBasis>> = {
  'claude-to-4.6': 'fitted',
  'claude-from-4.7': 'derived',
  openai: 'derived',
  gemini: 'fixed-rule',
}
