/**
 * What to do before the next request: wait, clear or compact, and why. Clearing is considered first; compaction starts
 * where clearing is not enough, or where it saves money. Only decides; the engine carries the plan out.
 */

import { formatCount } from '../cache/cache-break.ts'
import { type ClearingDecision, proposeClearing } from '../clearing/propose-clearing.ts'
import type { ProviderEditPlan } from '../clearing/provider-clearing.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import type { ClearMode, CompactCause } from '../log/record.ts'
import { type ScaledPolicy, type ThresholdState, thresholdState } from '../policy/limits.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { measureGrowthPerCall } from '../tokens/context-meter.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import { readScale } from '../tokens/usage.ts'
import {
  findOptimalTrigger,
  type OptimalTrigger,
  type PlanContext,
  readContextSize,
  typicalResult,
} from './plan-input.ts'

export interface ContextPlan {
  readonly act: 'wait' | 'clear' | 'compact'
  readonly clear?: ClearProposal
  readonly compact?: { readonly cause: CompactCause; readonly hard: boolean }
  /** A summary may be prepared in the background from here on. */
  readonly prepare: boolean
  /** How tool results are cleared under the present policy and provider; null if clearing is off. */
  readonly way: ClearMode | null
  /** The clearing that the next request asks the provider to do. */
  readonly native: ProviderEditPlan | null
  /** Why a new message is refused: the context is at the blocking threshold and nothing would help. */
  readonly refusal: string | null
  readonly context: ContextTokens
  /** Null if the context window is unknown. */
  readonly ladder: ThresholdState | null
  /** The thresholds of the decision; its execution uses the same. */
  readonly scaled: ScaledPolicy
  readonly trace: readonly TraceStep[]
}

/** One option that was considered, and why it was or was not chosen, in a sentence a user can act on. */
interface TraceStep {
  readonly tier: 'clear' | 'compact' | 'wait'
  /** Tokens now, and after the step. */
  readonly before: number
  readonly after: number
  /** Dollars; null if prices are unknown. */
  readonly price: number | null
  /** Calls until it has paid for itself; null if it never does or that is unknown. */
  readonly breakEven: number | null
  readonly why: string
  readonly chosen: boolean
}

export function makePlan(context: PlanContext): ContextPlan {
  const { scaled, prefixTokens } = context
  const tokens = readContextSize({ ...context, prefix: () => prefixTokens, deleted: context.deletedTokens })
  const clearing = considerClearing(context, tokens)
  const compaction = judgeCompaction(context, tokens)
  const act = chooseAct(context, tokens, clearing, compaction)
  const trace = listTraceSteps(tokens.high, act, clearing, compaction)
  return {
    act,
    ...(act === 'clear' && clearing.proposal !== null ? { clear: clearing.proposal } : {}),
    ...(act === 'compact' ? { compact: { cause: 'threshold', hard: compaction.act === 'hard' } } : {}),
    prepare: canPrepare(context, tokens),
    way: clearing.way,
    native: clearing.native,
    refusal: describeRefusal(context, tokens.high, act),
    context: tokens,
    ladder: scaled.known ? thresholdState(scaled.lines, tokens.high) : null,
    scaled,
    trace,
  }
}

/** Sources whose requests carry the whole conversation on purpose: nothing is rewritten for them. */
const WHOLE_CONVERSATION_SOURCES = new Set(['compact', 'session_memory'])

/** An undone clearing is not repeated at once, and nothing is rewritten between a tool call and its result. */
function considerClearing(context: PlanContext, tokens: ContextTokens): ClearingDecision {
  const { source, tracking, rates, write, calibration, canEdit = true } = context
  if (WHOLE_CONVERSATION_SOURCES.has(source)) {
    return {
      way: null,
      proposal: null,
      native: null,
      why: `${source} carries the whole conversation as it is`,
    }
  }
  const clearing = proposeClearing({
    ...context,
    canEdit,
    prices: { rates, write },
    context: tokens,
    scale: readScale(calibration),
  })
  if (clearing.proposal === null) return clearing
  const undone = findReasonAfterUndo(context, tokens)
  if (undone !== null) return { ...clearing, proposal: null, why: undone }
  if (tracking.openCalls === 0) return clearing
  return { ...clearing, proposal: null, why: 'tool calls are still without their answers' }
}

/**
 * Clearing is chosen if it is enough. If it left the context above the warning threshold, a compaction would follow a
 * few calls later and the cost of the clearing would be lost, so a compaction that is due starts at once. With a cold
 * cache clearing costs nothing, so it only has to get below the auto-compact threshold.
 */
function chooseAct(
  { scaled, cache }: PlanContext,
  { expected, high }: ContextTokens,
  { proposal }: ClearingDecision,
  compaction: CompactionVerdict,
): ContextPlan['act'] {
  if (proposal === null) return compaction.act === 'none' ? 'wait' : 'compact'
  if (compaction.act !== 'hard' || !scaled.known) return 'clear'
  const freed = proposal.freedTokens
  // The freed tokens were as uncertain as the rest: their share of the safety margin goes with them.
  const left = expected <= 0 ? 0 : (Math.max(0, expected - freed) * high) / expected
  return left < (cache.isWarm ? scaled.lines.warning : scaled.lines.autoCompact) ? 'clear' : 'compact'
}

/** From the warning threshold on, so that only the auto-compact threshold ever has to wait for a summary. */
function canPrepare(context: PlanContext, tokens: ContextTokens): boolean {
  const { policy, scaled } = context
  if (!policy.compact.background || !scaled.known || tokens.high < scaled.lines.warning) return false
  return findReasonAgainstAuto(context) === null && findReasonAfterUndo(context, tokens) === null
}

/** Never refuses the sources that write summaries and notes. */
function describeRefusal(context: PlanContext, used: number, act: ContextPlan['act']): string | null {
  const { scaled, source } = context
  if (act !== 'wait' || !scaled.known || used < scaled.lines.blocking) return null
  if (WHOLE_CONVERSATION_SOURCES.has(source)) return null
  const cause = findReasonAgainstAuto(context) ?? 'nothing more can be cleared'
  return `${formatCount(used)} of ${formatCount(scaled.lines.effective)} tokens are in use and ${cause}. Compact by hand (/compact) or go back a few messages (/rewind); what you typed is kept.`
}

function listTraceSteps(
  used: number,
  act: ContextPlan['act'],
  { proposal, why }: ClearingDecision,
  compaction: CompactionVerdict,
): readonly TraceStep[] {
  const { optimalTrigger } = compaction
  return [
    {
      tier: 'clear',
      before: used,
      after: Math.max(0, used - (proposal?.freedTokens ?? 0)),
      price: proposal === null ? 0 : proposal.cost,
      breakEven: proposal?.breakEvenCalls ?? null,
      why,
      chosen: act === 'clear',
    },
    {
      tier: 'compact',
      before: used,
      after: Math.min(used, compaction.after),
      price: optimalTrigger?.cost ?? null,
      breakEven: optimalTrigger?.breakEvenCalls ?? null,
      why: compaction.why,
      chosen: act === 'compact',
    },
    {
      tier: 'wait',
      before: used,
      after: used,
      price: 0,
      breakEven: null,
      why: act === 'wait' ? 'nothing above is due' : `to ${act} is due`,
      chosen: act === 'wait',
    },
  ]
}

interface CompactionVerdict {
  /** `hard`: the auto-compact threshold is reached. `soft`: it saves money, and the moment is a good one. */
  readonly act: 'none' | 'soft' | 'hard'
  readonly optimalTrigger: OptimalTrigger | null
  /** Tokens of a request after the compaction. */
  readonly after: number
  readonly why: string
}

/** Safety is judged by the high estimate, money by the expected one. */
export function judgeCompaction(context: PlanContext, tokens: ContextTokens): CompactionVerdict {
  const { scaled, rates, write, cache, prefixTokens } = context
  const growth = context.growthPerCall ?? measureGrowthPerCall(context.meter)
  const outlook =
    context.expectedResult ?? typicalResult(prefixTokens, scaled.known ? scaled.lines.target : null)
  const optimal =
    rates === null || growth === null
      ? null
      : findOptimalTrigger({
          context: tokens.expected,
          expectedResult: outlook,
          growthPerCall: growth,
          rates,
          write,
          isWarm: cache.isWarm,
        })
  const verdict = (act: CompactionVerdict['act'], why: string): CompactionVerdict => ({
    act,
    optimalTrigger: optimal,
    after: outlook.after,
    why,
  })
  const against = findReasonAgainstAuto(context) ?? findReasonAfterUndo(context, tokens)
  if (against !== null) return verdict('none', against)
  if (!scaled.known) return verdict('none', scaled.why)
  const { autoCompact } = scaled.lines
  if (tokens.high >= autoCompact) {
    const why = `${formatCount(tokens.high)} tokens are in use, and compaction starts at ${formatCount(autoCompact)}`
    return verdict('hard', why)
  }
  const left = `${formatCount(autoCompact - tokens.expected)} tokens are left before compaction must start`
  const waiting = findReasonAgainstSaving(context, tokens.expected, optimal)
  if (waiting !== null || optimal === null) return verdict('none', `${left}${waiting ?? ''}`)
  return verdict(
    'soft',
    `from ${formatCount(optimal.tokens)} tokens on a compaction costs less than going on, and this is a good place for it`,
  )
}

/** Why a compaction that only saves money does not start now, as the end of a sentence; null if it starts. */
function findReasonAgainstSaving(
  { policy, cache, moment }: PlanContext,
  used: number,
  optimal: OptimalTrigger | null,
): string | null {
  if (!policy.compact.priceDecides) return ''
  if (optimal === null) return ', and what it would save cannot be told yet'
  if (used < optimal.tokens) return `, and it would pay from ${formatCount(optimal.tokens)} on`
  if (optimal.breakEvenCalls === null || cache.expectedCalls <= optimal.breakEvenCalls)
    return `, and it would not pay before the ${formatCount(cache.expectedCalls)} calls expected are over`
  return moment === 'call' ? '; it would pay, and waits for the end of the turn' : null
}

/** Why no automatic compaction may start: it would wait for itself, fail again or repeat what was undone. */
function findReasonAgainstAuto(context: PlanContext): string | null {
  const { policy, source, tracking, switches = NO_SWITCHES } = context
  const state = findMechanismStates(policy, switches).auto
  if (WHOLE_CONVERSATION_SOURCES.has(source))
    return `${source} carries the whole conversation and must not wait for itself`
  if (!state.on) return `compacting by itself is switched off by ${state.because}`
  if (tracking.failures >= policy.turn.auto.breakerFailures)
    return `${formatCount(tracking.failures)} compactions in a row have failed; compact by hand, or rewind`
  if (mustWaitForPrompt(context)) return WAITS_FOR_PROMPT_REASON
  if (tracking.openCalls > 0) return 'tool calls are still without their answers'
  return tracking.justCompacted ? 'nothing has come since the last compaction' : null
}

const WAITS_FOR_PROMPT_REASON = 'an act was undone, so this waits for the next prompt'

function mustWaitForPrompt({ tracking, moment }: PlanContext): boolean {
  return tracking.waitsForPrompt && moment !== 'prompt'
}

/**
 * After an undo no rewrite starts before the user's next prompt. Until the model has answered that prompt, one starts
 * only if the expected size reaches the auto-compact threshold or the high estimate the blocking one.
 */
function findReasonAfterUndo(context: PlanContext, { expected, high }: ContextTokens): string | null {
  if (mustWaitForPrompt(context)) return WAITS_FOR_PROMPT_REASON
  const { tracking, scaled } = context
  if (!tracking.justUndone) return null
  const must = scaled.known && (expected >= scaled.lines.autoCompact || high >= scaled.lines.blocking)
  return must ? null : 'an act was undone, and nothing has been answered since'
}
