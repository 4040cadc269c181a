/**
 * Decides what to clear before the next API request, or why nothing is cleared. Provider, cache and policy select one of
 * four clearing modes (`cached`, `native`, `idle`, `budget`), never two at a time, so no tool result is cleared twice.
 */

import { formatCount, formatDuration } from '../cost/prices.ts'
import type { ClearMode } from '../log/record.ts'
import { findFeatureStates, NO_SWITCHES, type Switches } from '../policy/switches.ts'
import { proposeCacheDeletion } from './cached-clearing.ts'
import {
  type ClearCandidate,
  type ClearProposal,
  countCandidateTokens,
  createResultPlaceholder,
  findClearCandidates,
  orderCandidates,
  SAMPLE_CALL_ID,
} from './clear-candidates.ts'
import {
  buildClearProposal,
  type ClearProposalInput,
  computeKeptFilesLimit,
  mustClearAtAnyCost,
  type ProposalOutcome,
} from './clear-proposal.ts'
import { type ProviderEditPlan, type ProviderEditsInput, planProviderEdits } from './provider-clearing.ts'

/** What the choice of a clearing mode depends on. */
export interface ClearModeInput extends ClearProposalInput {
  /** Switches of the session, which can turn clearing off whatever the policy says. */
  readonly switches?: Switches
  /** True if thinking is enabled in the API request. */
  readonly thinks: boolean
  /** False if the API request does not name the beta feature that the provider's context edits require. Default: true. */
  readonly canEdit?: boolean
}

/** What a clearing, by the engine or by the provider, is decided from. */
export interface ClearingDecisionInput
  extends ClearModeInput,
    Pick<ProviderEditsInput, 'tools' | 'lastEdits' | 'canStart'> {}

/** What to do about clearing before the next API request, and why. Nothing has been changed yet. */
export interface ClearingDecision {
  /** The clearing mode to use now; null if nothing is to be cleared. */
  readonly way: ClearMode | null
  readonly proposal: ClearProposal | null
  /** For mode `native`: the context edits that the next API request asks the provider to make; otherwise null. */
  readonly native: ProviderEditPlan | null
  readonly why: string
}

const PROPOSE_BY_MODE = {
  idle: proposeIdleClearing,
  budget: proposeBudgetClearing,
  cached: proposeCacheDeletion,
}

/** Chooses the clearing mode, and proposes what it would clear. Changes nothing. */
export function decideClearing(question: ClearingDecisionInput): ClearingDecision {
  const { way, why } = chooseClearMode(question)
  if (way === null) return { way, proposal: null, native: null, why }
  if (way === 'native') return { way, proposal: null, native: planProviderEdits(question), why }
  return { way, native: null, ...PROPOSE_BY_MODE[way](question) }
}

/** Returns the clearing mode to use now, null for none, and the reason for the choice. */
export function chooseClearMode(question: ClearModeInput): Pick<ClearingDecision, 'way' | 'why'> {
  const { policy, profile, cache, target, switches = NO_SWITCHES } = question
  const state = findFeatureStates(policy, switches).clear
  if (!state.on) return { way: null, why: `clearing is switched off by ${state.because}` }
  if (target !== undefined) return { way: 'budget', why: REQUESTED }
  const has = (way: ClearMode): boolean => policy.clear.ways.includes(way)
  if (has('cached') && profile.capabilities.cacheEdits && cache.isWarm) {
    return { way: 'cached', why: 'the provider deletes from its warm cache' }
  }
  if (prefersProviderEdits(question)) {
    const reason = isThinkingBound(question) ? 'which leaves bound thinking valid' : 'as the policy has it'
    return { way: 'native', why: `the provider clears by itself, ${reason}` }
  }
  const busy = has('idle') ? explainNotIdle(question) : null
  if (has('idle') && busy === null) return { way: 'idle', why: 'the cache has expired' }
  if (!has('budget')) return { way: null, why: busy ?? 'the policy allows no way that could act' }
  if (isBudgetClearingDue(question)) return { way: 'budget', why: 'usage is above the warning line' }
  const fill = question.scaled.known ? 'usage is below the warning line' : 'the window is not known'
  return { way: null, why: busy === null ? fill : `${busy}, and ${fill}` }
}

const REQUESTED = 'the user asked for it'

/**
 * Checks whether to let the provider clear by its context edits. This is preferred if a clearing by the engine would
 * invalidate thinking. Otherwise the engine clears, if policy allows, because it clears only when that pays for itself.
 */
function prefersProviderEdits(question: ClearModeInput): boolean {
  const { thinks, canEdit = true, policy } = question
  return canEdit && mayUseProviderEdits(question) && (thinks || !hasClientMode(policy))
}

/**
 * Checks whether the provider's context edits can be needed in this session. If so, every API request must name the
 * beta feature that they require.
 */
export function mayUseProviderEdits(question: Pick<ClearModeInput, 'profile' | 'policy'>): boolean {
  const { profile, policy } = question
  const isOffered = policy.clear.ways.includes('native') && profile.contextEdits.clearToolUses !== null
  return isOffered && (isThinkingBound(question) || !hasClientMode(policy))
}

function isThinkingBound({ profile }: Pick<ClearModeInput, 'profile'>): boolean {
  return profile.thinking.binding === 'prefix'
}

function hasClientMode({ clear: { ways } }: ClearModeInput['policy']): boolean {
  return ways.includes('budget') || ways.includes('idle')
}

// Idle mode: after a long pause the cache has expired, so a rewrite costs nothing extra. All but the newest tool
// results are cleared.

/** Explains why the session is not idle: the pause is too short, or the cache is still warm. Returns null if it is idle. */
export function explainNotIdle({ idleMs, cache, policy }: ClearProposalInput): string | null {
  const { afterMinutes } = policy.clear.idle
  const after = afterMinutes === 'ttl' ? cache.ttlMs : afterMinutes * 60_000
  if (idleMs === null) return 'there is no response yet'
  if (idleMs < after)
    return `the newest response is ${formatDuration(idleMs)} old, and idle begins after ${formatDuration(after)}`
  return cache.isWarm ? 'the cache is still warm' : null
}

/** Proposes to clear all but the newest results. Declines if that would free less than the policy's minimum. */
export function proposeIdleClearing(question: ClearProposalInput): ProposalOutcome<ClearProposal> {
  const { register, policy, scaled, scale } = question
  const minimum = scaled.budgets.clear.idleMinimumFreed
  const because = `the newest response is ${formatDuration(question.idleMs ?? 0)} old and the cache has expired`
  if (register.clearable.tokens * scale < minimum) {
    return { proposal: null, why: `${because}, but too little is there to clear` }
  }
  const candidates = findOldCandidates(question, policy.clear.idle.keep)
  return buildClearProposal(question, { way: 'idle', candidates, minimum, isNeeded: true, because })
}

/** Returns the candidates for a clearing by the engine, oldest first, without the `keep` newest results. */
export function findOldCandidates(question: ClearProposalInput, keep: number): readonly ClearCandidate[] {
  const { register, pins, retrieval } = question
  return findClearCandidates({
    register,
    pins,
    keep,
    keptFiles: computeKeptFilesLimit(question),
    placeholder: createResultPlaceholder(SAMPLE_CALL_ID, retrieval),
  })
}

// Budget mode: the context is above the warning threshold. Superseded tool results are cleared first, then the
// oldest. Enough is cleared to get far below the threshold, so that the cached prefix is rewritten only once in many
// turns.

/** Checks whether the context is above the warning threshold. Always true if the user asked for a clearing. */
export function isBudgetClearingDue({ scaled, context, target }: ClearProposalInput): boolean {
  return target !== undefined || (scaled.known && context.high >= scaled.lines.warning)
}

/** Proposes to clear results until those left fit the target. Declines if too little would be freed, or it would not pay. */
export function proposeBudgetClearing(question: ClearProposalInput): ProposalOutcome<ClearProposal> {
  const { policy, context, scaled, target } = question
  const line = scaled.known ? ` of ${formatCount(scaled.lines.limit)}` : ''
  const because =
    target === undefined
      ? `${formatCount(context.high)}${line} tokens are in use, above the warning line`
      : REQUESTED
  const refusal = explainTooLittle(question)
  if (refusal !== null) return { proposal: null, why: `${because}, but ${refusal}` }
  const candidates = orderCandidates(
    findOldCandidates(question, policy.clear.budget.keep),
    policy.clear.supersededFirst,
  )
  return buildClearProposal(question, {
    way: 'budget',
    candidates: takeUntilTarget(candidates, question),
    minimum: scaled.budgets.clear.minimumFreed,
    isNeeded: mustClearAtAnyCost(question),
    because,
  })
}

/** Explains why too few tokens can be freed, judged by totals before any result is selected; null if enough can be. */
function explainTooLittle(question: ClearProposalInput): string | null {
  const { register, scale, scaled } = question
  const total = register.clearable.tokens * scale
  const minimum = scaled.budgets.clear.minimumFreed
  const target = question.target ?? scaled.budgets.clear.target
  if (total <= target) {
    return `the ${formatCount(total)} tokens of clearable results are within the target of ${formatCount(target)}`
  }
  if (total < minimum)
    return `only ${formatCount(total)} tokens could be freed, and a rewrite must free ${formatCount(minimum)}`
  const isFirst = register.clearableSinceLast.count === register.clearable.count
  if (isFirst || mustClearAtAnyCost(question) || register.clearableSinceLast.tokens * scale >= minimum)
    return null
  return `only ${formatCount(register.clearableSinceLast.tokens * scale)} tokens were added since the last clearing`
}

/** Takes candidates in order until the clearable tokens that remain in the context are within the target. */
function takeUntilTarget(
  candidates: readonly ClearCandidate[],
  question: ClearProposalInput,
): readonly ClearCandidate[] {
  const { register, scale, scaled } = question
  const target = (question.target ?? scaled.budgets.clear.target) / scale
  let left = register.clearable.tokens
  const chosen: ClearCandidate[] = []
  for (const candidate of candidates) {
    if (left <= target) break
    chosen.push(candidate)
    left -= countCandidateTokens(candidate)
  }
  return chosen
}
