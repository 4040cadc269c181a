/**
 * Which of the four ways is in force: by what the provider can do, by the state of the cache, and by policy. One
 * at a time, so that no result is cleared twice over.
 */
import type { ClearWay } from '../conversation/metadata.ts'
import { mechanismStates } from '../policy/mechanisms.ts'
import { NO_SWITCHES, type Switches } from '../policy/switches.ts'
import { isOverBudget } from './budget.ts'
import { canDelete } from './cached.ts'
import { notIdle } from './idle.ts'
import type { ClearQuestion } from './question.ts'

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
