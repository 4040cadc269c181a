/**
 * What to do before the next request: wait, clear or compact, and why. Tier 1 is looked at first; a compaction
 * comes where clearing is not enough, or pays where nothing forces anything. Nothing is done here.
 */

import { type ClearQuestion, counted } from '../clearing/clear-plan.ts'
import { type Clearing, proposeClearing } from '../clearing/propose-clearing.ts'
import type { NativeEdits } from '../clearing/provider-clearing.ts'
import type { ClearProposal } from '../clearing/select-results.ts'
import type { ClearWay, CompactCause } from '../log/record.ts'
import { type LadderState, type ScaledPolicy, standOn } from '../policy/limits.ts'
import { type ContextTokens, scaleOf } from '../tokens/usage.ts'
import { autoHeld, type CompactVerdict, heldByUndo, isSelf, judgeCompaction } from './compact-trigger.ts'
import { contextSize, type PlanContext } from './plan-input.ts'

export interface Plan {
  readonly act: 'wait' | 'clear' | 'compact'
  readonly clear?: ClearProposal
  readonly compact?: { readonly cause: CompactCause; readonly hard: boolean }
  /** A summary may be prepared in the background from here on. */
  readonly prepare: boolean
  /** The way of tier 1 that is in force; null where none is. */
  readonly way: ClearWay | null
  /** `native`: what the next request asks of the provider. */
  readonly native: NativeEdits | null
  /** At the blocking line with nothing that could help: a new message is refused, in these words. */
  readonly refusal: string | null
  readonly context: ContextTokens
  /** Null where the window is not known. */
  readonly ladder: LadderState | null
  /** The figures it was decided by: those who act use the same. */
  readonly scaled: ScaledPolicy
  readonly trace: readonly TraceStep[]
}

export function plan(context: PlanContext): Plan {
  const tokens = contextTokensOf(context)
  const found = isSelf(context.source) ? null : proposeClearing(clearQuestion(context, tokens))
  const clearing = held(context, tokens, found)
  const compaction = judgeCompaction(context, tokens)
  const act = chosenAct(context, tokens, { clearing, compaction })
  const { scaled } = context
  return {
    act,
    ...(act === 'clear' && clearing.proposal !== null ? { clear: clearing.proposal } : {}),
    ...(act === 'compact' ? { compact: { cause: 'threshold', hard: compaction.act === 'hard' } } : {}),
    prepare: prepares(context, tokens),
    way: clearing.way,
    native: clearing.native,
    refusal: refusalOf(context, tokens.high, act),
    context: tokens,
    ladder: scaled.known ? standOn(scaled.lines, tokens.high) : null,
    scaled,
    trace: traceOf(tokens.high, act, { clearing, compaction }),
  }
}

function contextTokensOf(context: PlanContext): ContextTokens {
  const { prefixTokens, deletedTokens: deleted } = context
  return contextSize({ ...context, prefix: () => prefixTokens, deleted })
}

const NOTHING: Clearing = { way: null, proposal: null, native: null, why: '' }

/** What was undone is not done again at once; nothing is rewritten between a call and its answer. */
function held(context: PlanContext, tokens: ContextTokens, clearing: Clearing | null): Clearing {
  const { tracking, source } = context
  if (clearing === null) return { ...NOTHING, why: `${source} carries the whole conversation as it is` }
  if (clearing.proposal === null) return clearing
  const undone = heldByUndo(context, tokens)
  if (undone !== null) return { ...clearing, proposal: null, why: undone }
  if (tracking.openCalls === 0) return clearing
  return { ...clearing, proposal: null, why: 'tool calls are still without their answers' }
}

function clearQuestion(context: PlanContext, tokens: ContextTokens) {
  const { rates, write, calibration, switches, canEdit = true } = context
  const { register, policy, scaled, profile, pins, cache, retrieval, idleMs, thinkingMode, tools, thinks } =
    context
  const question: ClearQuestion = {
    register,
    policy,
    scaled,
    profile,
    pins,
    cache,
    prices: { rates, write },
    retrieval,
    context: tokens,
    scale: scaleOf(calibration),
    idleMs,
    thinkingMode,
  }
  return { ...question, tools, thinks, canEdit, ...(switches === undefined ? {} : { switches }) }
}

interface Considered {
  readonly clearing: Clearing
  readonly compaction: CompactVerdict
}

/**
 * A clearing is taken where it is enough. One that leaves the context above the warning line would be followed by
 * a compaction a few calls later and its rewrite be lost, so where that must start it starts at once. With a cold
 * cache nothing is lost by trying.
 */
function chosenAct(context: PlanContext, tokens: ContextTokens, considered: Considered): Plan['act'] {
  const { clearing, compaction } = considered
  const { proposal } = clearing
  if (proposal === null) return compaction.act === 'none' ? 'wait' : 'compact'
  if (compaction.act !== 'hard' || !context.scaled.known) return 'clear'
  const { warning, autoCompact } = context.scaled.lines
  const line = context.cache.isWarm ? warning : autoCompact
  return leftAfter(proposal.freedTokens, tokens) < line ? 'clear' : 'compact'
}

/** What is freed was as uncertain as the rest: its share of the margin goes with it. */
function leftAfter(freed: number, { expected, high }: ContextTokens): number {
  return expected <= 0 ? 0 : (Math.max(0, expected - freed) * high) / expected
}

/** From the warning line on, so that only the hard line ever waits for a summary. */
function prepares(context: PlanContext, tokens: ContextTokens): boolean {
  const { policy, scaled } = context
  if (!policy.compact.background || !scaled.known || tokens.high < scaled.lines.warning) return false
  return autoHeld(context) === null && heldByUndo(context, tokens) === null
}

/** The sources that compact and take notes are never stopped. */
function refusalOf(context: PlanContext, used: number, act: Plan['act']): string | null {
  const { scaled, source } = context
  if (isSelf(source) || !scaled.known || used < scaled.lines.blocking || act !== 'wait') return null
  const cause = autoHeld(context) ?? 'nothing more can be cleared'
  return `${counted(used)} of ${counted(scaled.lines.effective)} tokens are in use and ${cause}. Compact by hand (/compact) or go back a few messages (/rewind); what you typed is kept.`
}

function traceOf(used: number, act: Plan['act'], { clearing, compaction }: Considered): readonly TraceStep[] {
  const { proposal } = clearing
  const { optimal } = compaction
  return [
    {
      tier: 'clear',
      before: used,
      after: Math.max(0, used - (proposal?.freedTokens ?? 0)),
      price: proposal === null ? 0 : proposal.cost,
      breakEven: proposal?.breakEvenCalls ?? null,
      why: clearing.why,
      chosen: act === 'clear',
    },
    {
      tier: 'compact',
      before: used,
      after: Math.min(used, compaction.after),
      price: optimal?.cost ?? null,
      breakEven: optimal?.breakEvenCalls ?? null,
      why: compaction.why,
      chosen: act === 'compact',
    },
    waitStep(used, act),
  ]
}

function waitStep(used: number, act: Plan['act']): TraceStep {
  const why = act === 'wait' ? 'nothing above is due' : `to ${act} is due`
  return { tier: 'wait', before: used, after: used, price: 0, breakEven: null, why, chosen: act === 'wait' }
}

// What was considered, in order, and why it was or was not done: each step in words that a person can act on.

type Tier = 'clear' | 'compact' | 'wait'

interface TraceStep {
  readonly tier: Tier
  /** Tokens before and, where it were done, after. */
  readonly before: number
  readonly after: number
  /** Dollars; null where prices are not known. */
  readonly price: number | null
  /** Calls after which it has paid for itself; null where it never does, or nobody can tell. */
  readonly breakEven: number | null
  readonly why: string
  readonly chosen: boolean
}
