/**
 * Measures a compaction draft on a preview of the session, drops optional attachments until it is within its target, and
 * tells how large a summary may be that would fit.
 */

import {
  ABORTED_REWRITE,
  NO_SIDE_CALL_USAGE,
  type RefusedRewrite,
  refuseRewrite,
  STALE_DRAFT_MESSAGE,
} from '../engine/events.ts'
import {
  createCalibratedTokenCounter,
  gatherContextPlanInput,
  measureContext,
} from '../engine/measure-context.ts'
import type { SessionState } from '../engine/session-state.ts'
import { previewAppend, runSlicesUnlessAborted, type TurnContext } from '../engine/session-writer.ts'
import { priceRewrittenContext, type RewrittenContextPrice } from '../planner/plan-input.ts'
import { dropOptionalAttachments } from '../sources/collect-sources.ts'
import type { SourceAttachment } from '../sources/context-source.ts'
import type { SmallerSummaryLimits } from '../summary/attempt-types.ts'
import { type ContextTokens, computeCalibrationScale } from '../tokens/usage.ts'
import {
  type CompactionDraft,
  createDraftReceipt,
  createDraftRecords,
  type UnmeasuredDraft,
} from './draft.ts'
import {
  type CompactionPlan,
  describeSmallGain,
  findLargestWorthwhileSize,
  refuseIrreducibleContext,
} from './plan-compaction.ts'

/** A draft that may be committed, or why there is none. */
export type DraftResult = CompactionDraft | RefusedRewrite

/** A draft as far as it could be made to fit, and how far it is from its target. */
export interface FitResult {
  /** Creates the draft with its receipt, or the refusal. Takes time in a long session, so call it for the final draft only. */
  readonly createOutcome: () => Promise<DraftResult>
  /** Tokens by which the compacted context exceeds its target; 0 if it fits. */
  readonly excessTokens: number
  /** Limits of a smaller summary that should be tried; null if none is needed or none would fit. */
  readonly smallerLimits: SmallerSummaryLimits | null
  /** Tokens of the summary, without the list of names. */
  readonly summaryTokens: number
  /** True if the result is above its limit or saves too little, so that any smaller one is better. */
  readonly isTooLarge: boolean
  /** True if the summary was written without a model. */
  readonly isLocal: boolean
}

/** Measures the compacted context on a preview of the session, and drops optional attachments until it fits. */
export function fitDraft(turn: TurnContext, whole: UnmeasuredDraft): FitResult {
  const measured = measureDraft(turn, whole)
  if (measured === null) {
    const createOutcome = async () => refuseRewrite('superseded', STALE_DRAFT_MESSAGE)
    return {
      createOutcome,
      excessTokens: 0,
      smallerLimits: null,
      summaryTokens: 0,
      isTooLarge: true,
      isLocal: false,
    }
  }
  const fitted = dropSources(turn, measured)
  const { plan } = whole
  const isLocal = whole.summary.summarizer === 'local'
  const tokens = countSummaryTokens(turn, whole)
  const smaller = isLocal
    ? findSmallerLocal(fitted, tokens, whole.summary.userTokens)
    : findSmallerSummary(fitted, tokens)
  return {
    createOutcome: () => createOutcome(turn, fitted),
    excessTokens: countExcessTokens(plan, fitted.after),
    smallerLimits: smaller,
    summaryTokens: tokens,
    isTooLarge: countMissingGain(plan, fitted.after) > 0 || countAboveLimit(plan, fitted.after) > 0,
    isLocal,
  }
}

/**
 * Returns why a result would be refused: it saves too little, or it is above its limit, or above the limit's `most` if it
 * has one. Null if it is accepted.
 */
function findRefusal({ draft, after }: MeasuredDraft): 'not-smaller' | 'above-limit' | null {
  const { plan } = draft
  if (countMissingGain(plan, after) > 0) return 'not-smaller'
  const { limit } = plan
  return limit !== null && after[limit.size] > (limit.most ?? limit.tokens) ? 'above-limit' : null
}

/**
 * Returns by how many tokens a compaction saves less than it must; 0 or less if it saves enough. What is attached again
 * counts as part of the result.
 */
function countMissingGain(plan: CompactionPlan, after: ContextTokens): number {
  return after.expected - findLargestWorthwhileSize(plan)
}

async function createOutcome(turn: TurnContext, fitted: MeasuredDraft): Promise<DraftResult> {
  const { compaction } = turn.host
  const { draft, after, before, state } = fitted
  const { plan } = draft
  const refusal = findRefusal(fitted)
  if (refusal === 'not-smaller') {
    const message = describeSmallGain(plan, after.expected, draft.summary.userTokens)
    return refuseRewrite('not-smaller', message)
  }
  const { limit, request, span } = plan
  if (refusal !== null && limit !== null)
    return refuseIrreducibleContext(span, after, limit, {
      state,
      compaction,
      isTarget: request.target !== undefined,
    })
  const receipt = await runSlicesUnlessAborted(turn, createDraftReceipt(draft, { before, after: state }))
  if (receipt === null) return ABORTED_REWRITE
  const price = priceDraft(turn, fitted)
  const preparedText = draft.summary.text
  return { ...draft, ok: true, after, preparedText, receipt, price, usage: NO_SIDE_CALL_USAGE }
}

/** Prices a draft by its own sizes. System prompt and tools, and messages kept before the summary, stay cached. */
function priceDraft(turn: TurnContext, { draft, after }: MeasuredDraft): RewrittenContextPrice | null {
  const { plan, snapshot } = draft
  const { context } = gatherContextPlanInput(turn.state, turn.host, 'call')
  const { rates, write, cache, prefixTokens, calibration } = context
  const kept = plan.span.form === 'from' ? plan.span.kept : []
  const before = kept.reduce((sum, entry) => sum + turn.host.compaction.estimator.entry(entry), 0)
  const unchanged = snapshot === null ? prefixTokens + computeCalibrationScale(calibration) * before : 0
  const sizes = { before: plan.before.expected, after: after.expected, unchanged }
  return rates === null ? null : priceRewrittenContext({ ...sizes, rates, write, isWarm: cache.isWarm })
}

// Limits of a smaller summary, after a summary with which the draft is too large. `tokens`: the tokens of that summary,
// without the list of names.

function findSmallerSummary({ draft, after }: MeasuredDraft, tokens: number): SmallerSummaryLimits | null {
  const { plan } = draft
  const over = countExcessTokens(plan, after)
  // If no summary can reach the target because a long prompt is kept, a summary within the limit is enough.
  const refused = Math.max(countAboveLimit(plan, after), countMissingGain(plan, after))
  const excess = tokens > over ? over : refused
  return excess <= 0 || tokens <= excess ? null : { tokens: tokens - excess }
}

/** A local summary above the target of the policy becomes smaller down to this share of that target, and no further. */
const SHARE_OF_TARGET = 1 / 3
/** In one step, a local summary shrinks at most to this share of its tokens, since the list of names shrinks with it. */
const SMALLEST_STEP = 0.25

/**
 * If the draft is above target or limit, the whole local summary becomes smaller, the user's messages included. If it
 * only saves too little, the user's messages stay whole: the window does not need those few tokens.
 */
function findSmallerLocal(
  { draft, after }: MeasuredDraft,
  tokens: number,
  userTokens: number,
): SmallerSummaryLimits | null {
  const { plan } = draft
  const aboveTarget = -countTokensBelowTarget(plan, after)
  const least = Math.floor((plan.target ?? 0) * SHARE_OF_TARGET)
  if (aboveTarget > 0 && tokens > least) return { tokens: Math.max(tokens - aboveTarget, least) }
  const aboveLimit = countAboveLimit(plan, after)
  if (aboveLimit > 0) return { tokens: Math.max(tokens - aboveLimit, Math.floor(tokens * SMALLEST_STEP)) }
  const missing = countMissingGain(plan, after)
  const rest = missing <= 0 ? 0 : tokens - userTokens
  return rest <= 0 ? null : { restTokens: Math.max(0, Math.floor(rest - missing)) }
}

/** Counts the tokens of the summary without its list of names. */
function countSummaryTokens({ state, host }: TurnContext, { summary }: UnmeasuredDraft): number {
  const count = createCalibratedTokenCounter(state, host)
  return Math.max(0, count(summary.text) - count(summary.ledger.join('\n')))
}

/** Measures the context as it would be with the draft. Returns null if the draft is stale. */
function measureDraft(turn: TurnContext, drafted: UnmeasuredDraft): MeasuredDraft | null {
  const records = createDraftRecords(turn, drafted)
  if (records === null) return null
  const before = turn.state
  const state = previewAppend(before, records)
  return { draft: drafted, after: measureContext(state, turn.host), before, state }
}

/** Returns the tokens to remove until the compacted context is within target and limit, and saves enough. */
function countExcessTokens(plan: CompactionPlan, after: ContextTokens): number {
  const aboveTarget = -countTokensBelowTarget(plan, after)
  const aboveLimit = countAboveLimit(plan, after)
  return Math.max(0, aboveTarget, aboveLimit, countMissingGain(plan, after))
}

/**
 * Returns the tokens that are free below the target; negative above it. Compares the expected size: by the upper bound,
 * files that fit would be left out. After a refusal by the provider it compares the upper bound, because the context
 * was larger, or the window smaller, than expected.
 */
function countTokensBelowTarget(
  { target, request }: CompactionPlan,
  { expected, high }: ContextTokens,
): number {
  if (target === null) return 0
  const most = request.cause === 'reactive' ? Math.floor((target * expected) / Math.max(1, high)) : target
  return most - expected
}

/** Returns how many tokens of the expected size to remove until the compacted context is within its limit. */
function countAboveLimit({ limit }: CompactionPlan, after: ContextTokens): number {
  const size = limit === null ? 0 : after[limit.size]
  return limit === null || size <= limit.tokens
    ? 0
    : Math.ceil(((size - limit.tokens) * after.expected) / size)
}

/** Lists the sources that a draft attaches, in the order in which they would be dropped. */
function listAttachedSources({
  allSources,
  sourcesBefore,
  sourcesAfter,
}: UnmeasuredDraft): readonly SourceAttachment[] {
  return allSources.filter((one) => sourcesBefore.includes(one) || sourcesAfter.includes(one))
}

/** Maximum number of times that attachments are dropped and the result is measured, since their sizes are estimates. */
const MAX_ROUNDS = 3

/** Drops optional attachments until the draft fits, in up to `MAX_ROUNDS` measured steps. Returns the smallest draft measured. */
function dropSources(turn: TurnContext, whole: MeasuredDraft): MeasuredDraft {
  const { sourcesBefore, sourcesAfter } = whole.draft
  const { target, reservedTokens } = whole.draft.plan
  const plan = { ...whole.draft.plan, target: target === null ? null : target - reservedTokens }
  const candidates = listAttachedSources(whole.draft)
  let best = whole
  let wanted = 0
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const over = countExcessTokens(plan, best.after)
    if (over === 0) break
    wanted += over
    const kept = dropOptionalAttachments(candidates, wanted, turn.host.policy.compact.target)
    const keep = (list: readonly SourceAttachment[]) => list.filter((one) => kept.includes(one))
    const shorter: UnmeasuredDraft = {
      ...whole.draft,
      sourcesBefore: keep(sourcesBefore),
      sourcesAfter: keep(sourcesAfter),
    }
    best = measureDraft(turn, shorter) ?? best
  }
  return best
}

interface MeasuredDraft {
  readonly draft: UnmeasuredDraft
  readonly after: ContextTokens
  /** The session state in which the draft was measured. */
  readonly before: SessionState
  /** The same session as it would be after committing the draft. */
  readonly state: SessionState
}
