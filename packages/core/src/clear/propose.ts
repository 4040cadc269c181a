/** Tier 1: what would be cleared now, by the way that is in force, or why nothing is. */
import type { ClearWay } from '../conversation/metadata.ts'
import { proposeBudget } from './budget.ts'
import { proposeCached } from './cached.ts'
import { proposeIdle } from './idle.ts'
import { type NativeEdits, nativeEdits } from './native.ts'
import type { ClearProposal } from './proposal.ts'
import { chooseWay, type WayQuestion } from './way.ts'

export interface ClearingQuestion extends WayQuestion {
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
}

export interface Clearing {
  readonly way: ClearWay | null
  readonly proposal: ClearProposal | null
  /** `native`: what the next request asks of the provider. */
  readonly native: NativeEdits | null
  readonly why: string
}

export function proposeClearing(question: ClearingQuestion): Clearing {
  const { way, why } = chooseWay(question)
  if (way === null) return { way, proposal: null, native: null, why }
  if (way === 'native') return { way, proposal: null, native: nativeEdits(question), why }
  return { way, native: null, ...proposeBy(way, question) }
}

function proposeBy(way: 'idle' | 'budget' | 'cached', question: ClearingQuestion) {
  if (way === 'cached') return proposeCached(question)
  return way === 'idle' ? proposeIdle(question) : proposeBudget(question)
}
