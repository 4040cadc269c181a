/** The facts a reason rests on, in words: figures first, then what backs or limits the reason. */
import type { Explanation } from './explain.ts'
import { factOf } from './fact.ts'
import { countText, durationText } from './figures-in-words.ts'
import type { ProviderWord } from './provider-word.ts'
import { zoneOf } from './reason.ts'

export interface Facts {
  readonly expected: number
  readonly read: number
  readonly gapMs: number
  readonly explanation: Explanation
  readonly word: ProviderWord | null
}

export function evidenceOf({ expected, read, gapMs, explanation, word }: Facts): string {
  const { reason, also } = explanation
  const others = also.map(factOf)
  return [
    `${countText(read)} of ${countText(expected)} expected tokens were read, ${durationText(gapMs)} after the request before`,
    ...(others.length === 0 ? [] : [`also: ${others.join('; ')}`]),
    ...(word === null ? [] : [wordText(word, word.zone === zoneOf(reason))]),
  ].join('. ')
}

function wordText({ said, missedTokens, isVague }: ProviderWord, agrees: boolean): string {
  const size = missedTokens === null ? '' : ` (${countText(missedTokens)} tokens)`
  if (isVague === true) return `the provider ${agrees ? 'may agree' : 'cannot tell'}: ${said}${size}`
  return `the provider ${agrees ? 'agrees' : 'says otherwise'}: ${said}${size}`
}
