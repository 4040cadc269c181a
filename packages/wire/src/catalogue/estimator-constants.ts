/**
 * Constants of the token estimate for Claude up to 4.6. Written by `scripts/fit-estimator.ts`: change them there.
 * Method and errors: docs/estimator.md.
 */
import type { CalibrationStart, CharacterClass } from '@tidemark/core/tokens/estimator'

/** One set for texts of every kind: separate sets for tool inputs and results gave no better estimates. */
export interface FittedConstants {
  readonly characters: Readonly<Record<CharacterClass, number>>
  readonly runs: Readonly<Record<CharacterClass, number>>
  readonly perText: number
  readonly perToolUse: number
  readonly perToolField: number
  readonly perToolResult: number
  readonly perSignatureCharacter: number
  readonly signatureLess: number
  /** Tokens of a reminder that the host sends with requests but does not log. */
  readonly reminder: number
  readonly start: CalibrationStart
}

/**
 * Fitted to 1723 turns of 10 sessions with claude-opus-4-5, claude-opus-4-6, claude-sonnet-4-5, as of 2026-11-15.
 * Weights of other alphabets, of wide characters, and of newlines and symbols in a row are assumed, not fitted.
 */
export const FITTED_CONSTANTS: FittedConstants = {
  characters: {
    space: 0.0638,
    newline: 0.1,
    lower: 0.0416,
    upper: 0.1911,
    digit: 0.3667,
    punctuation: 0.1584,
    escape: 0.5054,
    letter: 0.6,
    symbol: 0.25,
    wide: 1.1,
  },
  runs: {
    space: 0.0236,
    newline: 1.4634,
    lower: 0.6656,
    upper: 0.5484,
    digit: 0.8453,
    punctuation: 0.9648,
    escape: 0.6014,
    letter: 0,
    symbol: 0.6954,
    wide: 0,
  },
  perText: 1.4,
  perToolUse: 28.1,
  perToolField: 15,
  perToolResult: 30.2,
  perSignatureCharacter: 0.1992,
  signatureLess: 33.9,
  reminder: 114,
  start: {
    scale: 1.025,
    offset: -4.7,
    weight: 20000,
  },
}
