/** Tier 1: what would be cleared now, by the way that is in force, or why nothing is. */
import type { ClearWay } from '../log/record.ts'
import { mechanismStates, NO_SWITCHES, type Switches } from '../policy/switches.ts'
import { canDelete, proposeCached } from './cached-clearing.ts'
import type { ClearQuestion } from './clear-plan.ts'
import { isOverBudget, notIdle, proposeBudget, proposeIdle } from './clear-triggers.ts'
import { type NativeEdits, nativeEdits } from './provider-clearing.ts'
import type { ClearProposal } from './select-results.ts'

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

// Which of the four ways is in force: by what the provider can do, by the state of the cache, and by policy. One
// at a time, so that no result is cleared twice over.

export interface WayChoice {
  /** Null: none is. */
  readonly way: ClearWay | null
  readonly why: string
}

export interface WayQuestion extends ClearQuestion {
  readonly switches?: Switches
  /** Thinking is on in the request. */
  readonly thinks: boolean
  /** The request names what the provider's own edits take; it does unless told otherwise. */
  readonly canEdit?: boolean
}

export function chooseWay(question: WayQuestion): WayChoice {
  const { policy, profile, cache, target, switches = NO_SWITCHES } = question
  const state = mechanismStates(policy, switches).clear
  if (!state.on) return { way: null, why: `clearing is switched off by ${state.because}` }
  const has = (way: ClearWay): boolean => policy.clear.ways.includes(way)
  if (target !== undefined) return { way: 'budget', why: 'a person asked for it' }
  if (has('cached') && canDelete(profile) && cache.isWarm) {
    return { way: 'cached', why: 'the provider deletes from its warm cache' }
  }
  if (has('native') && prefersNative(question)) return { way: 'native', why: nativeReason(question) }
  if (has('idle') && notIdle(question) === null) return { way: 'idle', why: 'the cache has lapsed' }
  if (has('budget')) return byBudget(question)
  return {
    way: null,
    why: has('idle') ? (notIdle(question) ?? '') : 'the policy allows no way that could act',
  }
}

/** Thinking bound to the prefix survives only the provider's own edits. Elsewhere ours are cheaper: they are priced. */
function prefersNative({ profile, policy, thinks, canEdit = true }: WayQuestion): boolean {
  if (!canEdit || profile.contextEdits.clearToolUses === null) return false
  return (profile.thinking.binding === 'prefix' && thinks) || !hasOwnWay(policy)
}

/** Whether the provider's own edits may ever be chosen: what they take must then be in the request from the start. */
export function mayPreferNative({ profile, policy }: Pick<WayQuestion, 'profile' | 'policy'>): boolean {
  if (!policy.clear.ways.includes('native') || profile.contextEdits.clearToolUses === null) return false
  return profile.thinking.binding === 'prefix' || !hasOwnWay(policy)
}

function hasOwnWay({ clear: { ways } }: WayQuestion['policy']): boolean {
  return ways.includes('budget') || ways.includes('idle')
}

function nativeReason({ profile }: WayQuestion): string {
  return profile.thinking.binding === 'prefix'
    ? 'the provider clears by itself, which leaves bound thinking valid'
    : 'the provider clears by itself, as the policy has it'
}

function byBudget(question: WayQuestion): WayChoice {
  if (isOverBudget(question)) return { way: 'budget', why: 'usage is above the warning line' }
  const idle = question.policy.clear.ways.includes('idle') ? `${notIdle(question) ?? ''}, and ` : ''
  const room = question.scaled.known ? 'usage is below the warning line' : 'the window is not known'
  return { way: null, why: `${idle}${room}` }
}
