/** One line a person can act on: what happened, what it cost, what to do. */
import { adviceFor } from './advice.ts'
import type { OwnAct } from './break-event.ts'
import { factOf } from './fact.ts'
import { countText, dollarsText } from './figures-in-words.ts'
import type { Reason } from './reason.ts'

export interface Cost {
  readonly tokens: number
  readonly dollars: number | null
}

export function breakSentence(reason: Reason, cost: Cost, ours: OwnAct | null): string {
  const fact = factOf(reason)
  return ours === null
    ? `Cache broke: ${fact}; ${costOf(cost)}. ${adviceFor(reason)}`
    : `Cache broke, and this break was ours (${ours.act}): ${fact}; ${costOf(cost)}${payback(ours)}.`
}

export function actSentence(ours: OwnAct, cost: Cost): string {
  return `This was ours: ${ours.act}; ${costOf(cost)}${payback(ours)}.`
}

function costOf({ tokens, dollars }: Cost): string {
  const price = dollars === null ? 'price not known' : dollarsText(dollars)
  return `${countText(tokens)} tokens processed again (${price})`
}

function payback({ breakEvenTurns }: OwnAct): string {
  if (breakEvenTurns === null) return ''
  return `, pays back in ${breakEvenTurns} ${breakEvenTurns === 1 ? 'call' : 'calls'}`
}
