/**
 * Tier 1: what to clear now, or why nothing is cleared. One of four modes is in force at a time, depending on what the
 * provider can do, the state of the cache and the policy, so no result is cleared twice.
 */

import type { ClearWay } from '../log/record.ts'
import { mechanismStates, NO_SWITCHES, type Switches } from '../policy/switches.ts'
import { proposeCached } from './cached-clearing.ts'
import {
  buildProposal,
  type ClearOutcome,
  type ClearQuestion,
  counted,
  isNeeded,
  minutes,
} from './clear-plan.ts'
import { type NativeEdits, nativeEdits } from './provider-clearing.ts'
import {
  type Candidate,
  type ClearProposal,
  candidatesOf,
  inOrder,
  SAMPLE_ID,
  sizeOfCandidate,
  stubOf,
} from './select-results.ts'

export interface WayQuestion extends ClearQuestion {
  readonly switches?: Switches
  /** Thinking is on in the request. */
  readonly thinks: boolean
  /** False if the request does not name the beta that the provider's own edits need; true by default. */
  readonly canEdit?: boolean
}

export interface ClearingQuestion extends WayQuestion {
  /** Names of the tools that the request declares. */
  readonly tools: readonly string[]
}

export interface Clearing {
  /** The mode in force; null if none is. */
  readonly way: ClearWay | null
  readonly proposal: ClearProposal | null
  /** Mode `native`: the edits that the next request asks of the provider. */
  readonly native: NativeEdits | null
  readonly why: string
}

const PROPOSE_BY = { idle: proposeIdle, budget: proposeBudget, cached: proposeCached }

export function proposeClearing(question: ClearingQuestion): Clearing {
  const { way, why } = chooseWay(question)
  if (way === null) return { way, proposal: null, native: null, why }
  if (way === 'native') return { way, proposal: null, native: nativeEdits(question), why }
  return { way, native: null, ...PROPOSE_BY[way](question) }
}

export function chooseWay(question: WayQuestion): Pick<Clearing, 'way' | 'why'> {
  const { policy, profile, cache, target, switches = NO_SWITCHES } = question
  const state = mechanismStates(policy, switches).clear
  if (!state.on) return { way: null, why: `clearing is switched off by ${state.because}` }
  if (target !== undefined) return { way: 'budget', why: ASKED_FOR }
  const has = (way: ClearWay): boolean => policy.clear.ways.includes(way)
  if (has('cached') && profile.capabilities.cacheEdits && cache.isWarm) {
    return { way: 'cached', why: 'the provider deletes from its warm cache' }
  }
  if (prefersNative(question)) {
    const reason = isThinkingBound(question) ? 'which leaves bound thinking valid' : 'as the policy has it'
    return { way: 'native', why: `the provider clears by itself, ${reason}` }
  }
  const busy = has('idle') ? notIdle(question) : null
  if (has('idle') && busy === null) return { way: 'idle', why: 'the cache has expired' }
  if (!has('budget')) return { way: null, why: busy ?? 'the policy allows no way that could act' }
  if (isOverBudget(question)) return { way: 'budget', why: 'usage is above the warning line' }
  const fill = question.scaled.known ? 'usage is below the warning line' : 'the window is not known'
  return { way: null, why: busy === null ? fill : `${busy}, and ${fill}` }
}

const ASKED_FOR = 'the user asked for it'

/**
 * Thinking bound to the prefix stays valid only with the provider's own edits. Elsewhere our clearing is cheaper,
 * because it happens only where it pays.
 */
function prefersNative(question: WayQuestion): boolean {
  const { thinks, canEdit = true, policy } = question
  return canEdit && mayPreferNative(question) && (thinks || !hasOwnWay(policy))
}

/** Whether the provider's own edits may be chosen at any time: the beta they need is then in every request. */
export function mayPreferNative(question: Pick<WayQuestion, 'profile' | 'policy'>): boolean {
  const { profile, policy } = question
  const isOffered = policy.clear.ways.includes('native') && profile.contextEdits.clearToolUses !== null
  return isOffered && (isThinkingBound(question) || !hasOwnWay(policy))
}

function isThinkingBound({ profile }: Pick<WayQuestion, 'profile'>): boolean {
  return profile.thinking.binding === 'prefix'
}

function hasOwnWay({ clear: { ways } }: WayQuestion['policy']): boolean {
  return ways.includes('budget') || ways.includes('idle')
}

// Idle: the cache has expired, so rewriting is free. All results but the newest are cleared.

/** Why the session is not idle; null if it is. */
export function notIdle({ idleMs, cache, policy }: ClearQuestion): string | null {
  const { afterMinutes } = policy.clear.idle
  const after = afterMinutes === 'ttl' ? cache.ttlMs : afterMinutes * 60_000
  if (idleMs === null) return 'there is no response yet'
  if (idleMs < after)
    return `the newest response is ${minutes(idleMs)} old, and idle begins after ${minutes(after)}`
  return cache.isWarm ? 'the cache is still warm' : null
}

export function proposeIdle(question: ClearQuestion): ClearOutcome<ClearProposal> {
  const { register, policy, scaled, scale } = question
  const minimum = scaled.budgets.clear.idleMinimumFreed
  const because = `the newest response is ${minutes(question.idleMs ?? 0)} old and the cache has expired`
  if (register.clearable.tokens * scale < minimum) {
    return { proposal: null, why: `${because}, but too little is there to clear` }
  }
  const candidates = oldResults(question, policy.clear.idle.keep)
  return buildProposal(question, { way: 'idle', candidates, minimum, isNeeded: true, because })
}

function oldResults({ register, pins, retrieval }: ClearQuestion, keep: number): readonly Candidate[] {
  return candidatesOf({ register, pins, keep, placeholder: stubOf(SAMPLE_ID, retrieval) })
}

// Budget: usage is above the warning line. Superseded results and then the oldest are cleared, until the rest fits the
// target. The target is well below the trigger, so the prefix is rewritten once in many turns.

/** Whether usage is above the warning line. A clearing with a given target needs no threshold. */
export function isOverBudget({ scaled, context, target }: ClearQuestion): boolean {
  return target !== undefined || (scaled.known && context.high >= scaled.lines.warning)
}

export function proposeBudget(question: ClearQuestion): ClearOutcome<ClearProposal> {
  const { policy, context, scaled, target } = question
  const line = scaled.known ? ` of ${counted(scaled.lines.limit)}` : ''
  const because =
    target === undefined
      ? `${counted(context.high)}${line} tokens are in use, above the warning line`
      : ASKED_FOR
  const refusal = tooLittle(question)
  if (refusal !== null) return { proposal: null, why: `${because}, but ${refusal}` }
  const candidates = inOrder(oldResults(question, policy.clear.budget.keep), policy.clear.supersededFirst)
  return buildProposal(question, {
    way: 'budget',
    candidates: untilTarget(candidates, question),
    minimum: scaled.budgets.clear.minimumFreed,
    isNeeded: isNeeded(question),
    because,
  })
}

/** Why a clearing cannot be worth it, from totals alone; null if it may be. */
function tooLittle(question: ClearQuestion): string | null {
  const { register, scale, scaled } = question
  const total = register.clearable.tokens * scale
  const minimum = scaled.budgets.clear.minimumFreed
  const target = question.target ?? scaled.budgets.clear.target
  if (total <= target) {
    return `the ${counted(total)} tokens of clearable results are within the target of ${counted(target)}`
  }
  if (total < minimum)
    return `only ${counted(total)} tokens could be freed, and a rewrite must free ${counted(minimum)}`
  const isFirst = register.clearableSinceLast.count === register.clearable.count
  if (isFirst || isNeeded(question) || register.clearableSinceLast.tokens * scale >= minimum) return null
  return `only ${counted(register.clearableSinceLast.tokens * scale)} tokens were added since the last clearing`
}

/** The first candidates, as many as it takes to come within the target. */
function untilTarget(candidates: readonly Candidate[], question: ClearQuestion): readonly Candidate[] {
  const { register, scale, scaled } = question
  const target = (question.target ?? scaled.budgets.clear.target) / scale
  let left = register.clearable.tokens
  const chosen: Candidate[] = []
  for (const candidate of candidates) {
    if (left <= target) break
    chosen.push(candidate)
    left -= sizeOfCandidate(candidate)
  }
  return chosen
}
