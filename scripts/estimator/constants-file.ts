/** Writes newly fitted constants into the catalogue's file. */
import type { FittedConstants } from '../../packages/wire/src/catalogue/estimator-constants.ts'

export interface Provenance {
  readonly sessions: number
  readonly turns: number
  readonly models: readonly string[]
  readonly asOf: string
}

const CONSTANTS =
  /\/\*\*(?:(?!\/\*\*)[\s\S])*?\*\/\nexport const FITTED_CONSTANTS: FittedConstants = \{[\s\S]*?\n\}\n/

/** Returns the text of the file with other constants, and where they come from. Throws if the file has none. */
export function replaceConstants(text: string, fitted: FittedConstants, from: Provenance): string {
  if (!CONSTANTS.test(text)) throw new Error('expected a file with FITTED_CONSTANTS')
  const comment = [
    `Fitted to ${from.turns} turns of ${from.sessions} sessions with ${from.models.join(', ')}, as of ${from.asOf}.`,
    'Weights of other alphabets, of wide characters, and of newlines and symbols in a row are assumed, not fitted.',
  ]
  const made = `/**\n${comment.map((line) => ` * ${line}\n`).join('')} */\nexport const FITTED_CONSTANTS: FittedConstants = ${JSON.stringify(fitted, null, 2)}\n`
  return text.replace(CONSTANTS, () => made)
}
