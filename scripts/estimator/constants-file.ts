/** The catalogue's file of fitted constants, written whole. */
import type { FittedConstants } from '../../packages/wire/src/catalogue/estimator-constants.ts'

export interface Provenance {
  readonly sessions: number
  readonly turns: number
  readonly models: readonly string[]
  readonly asOf: string
}

const DECLARATIONS = `import type { CalibrationStart, CharacterClass } from '@tidemark/core'

/** One set for texts of every kind: sets of their own for tool inputs and results did no better. */
export interface FittedConstants {
  readonly characters: Readonly<Record<CharacterClass, number>>
  readonly runs: Readonly<Record<CharacterClass, number>>
  readonly perText: number
  readonly perToolUse: number
  readonly perToolField: number
  readonly perToolResult: number
  readonly perSignatureCharacter: number
  readonly signatureLess: number
  /** Tokens of a reminder that the host sends and does not log. */
  readonly reminder: number
  readonly start: CalibrationStart
}`

export function constantsFile(
  fitted: FittedConstants,
  { sessions, turns, models, asOf }: Provenance,
): string {
  return `/**
 * Constants of the token estimate for Claude up to 4.6. Written by \`scripts/fit-estimator.ts\`: change them there.
 * Method and errors: docs/estimator.md.
 */
${DECLARATIONS}

/** Weights of other alphabets, of wide characters, and of newlines and symbols in a row are assumed, not fitted. */
export const FITTED: FittedConstants = ${JSON.stringify(fitted, null, 2)}

export const FITTED_FROM = ${JSON.stringify({ sessions, turns, models, asOf }, null, 2)} as const
`
}
