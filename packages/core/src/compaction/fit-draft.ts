/**
 * Measures a compaction draft on a preview of the session, drops optional attachments until it is within its target, and
 * tells how large a summary may be that would fit.
 */

import { ABORTED_REWRITE, type RefusedRewrite, refuseRewrite, STALE_DRAFT_MESSAGE } from '../engine/events.ts'
import type { CompactionServices } from '../engine/host.ts'
import { createTextCounter, measureContext } from '../engine/measure-context.ts'
import type { SessionState } from '../engine/session-state.ts'
import { previewAppend, runTurnSteps, type TurnContext } from '../engine/session-writer.ts'
import { NO_SUMMARY_USAGE } from '../engine/summary-usage.ts'
import { dropOptionalAttachments } from '../sources/collect-sources.ts'
import type { SourceAttachment } from '../sources/context-source.ts'
import type { ContextTokens } from '../tokens/usage.ts'
import {
  type CompactionDraft,
  createDraftReceipt,
  createDraftRecords,
  type UnmeasuredDraft,
} from './draft.ts'
import { type CompactionPlan, describeSmallGain, refuseIrreducible } from './plan-compaction.ts'

export type DraftResult = CompactionDraft | RefusedRewrite

export interface FitResult {
  /** Creates the draft with its receipt, or the refusal. Takes time in a long session, so only the final draft is created. */
  readonly createOutcome: () => Promise<DraftResult>
  /** Tokens by which the compacted context exceeds its target; 0 if it fits. */
  readonly over: number
  /** Maximum tokens of a smaller summary that should be tried; 0 if none is needed or none would fit. */
  readonly largestSummary: number
  /** True if the compaction would be refused: its result is too large. */
  readonly isRefused: boolean
  readonly isLocal: boolean
  /**
   * Set if attachments were dropped and left more tokens free than needed: a local summary may use them. `sources`: the
   * attachments that remain.
   */
  readonly regrowth: { readonly largestSummary: number; readonly sources: readonly SourceAttachment[] } | null
}

/** Measures the compacted context on a preview of the session, and drops optional attachments until it fits. */
export function fitDraft(
  turn: TurnContext,
  compaction: CompactionServices,
  whole: UnmeasuredDraft,
): FitResult {
  const measured = measureDraft(turn, compaction, whole)
  if (measured === null) {
    const createOutcome = async () => refuseRewrite('superseded', STALE_DRAFT_MESSAGE)
    return { createOutcome, over: 0, largestSummary: 0, isRefused: true, isLocal: false, regrowth: null }
  }
  const fitted = dropSources(turn, compaction, measured)
  const { plan } = whole
  const summary = countSummaryTokens(turn, compaction, whole)
  const sizes = { whole: measured.after, fitted: fitted.after, summary }
  return {
    createOutcome: () => createOutcome(turn, compaction, fitted),
    over: countExcessTokens(plan, fitted.after),
    largestSummary: findLargestSummary(fitted.draft, sizes),
    isRefused: findRefusal(fitted) !== null,
    isLocal: whole.summary.summarizer === 'local',
    regrowth: findRegrowth(fitted, sizes),
  }
}

/** Tells why a result would be refused: nothing is gained, or it is above its limit. Null if it is accepted. */
function findRefusal({ draft, after }: MeasuredDraft): 'not-smaller' | 'above-limit' | null {
  const { plan } = draft
  if (after.expected >= plan.before.expected || countMissingGain(draft, after) > 0) return 'not-smaller'
  return countAboveLimit(plan, after) > 0 ? 'above-limit' : null
}

/**
 * Returns the tokens that a summary saves too little; 0 or less if it saves enough. What is attached again is current
 * state, so it does not count against what the summary saves.
 */
function countMissingGain(draft: UnmeasuredDraft, after: ContextTokens): number {
  const { before, leastGain } = draft.plan
  const attached = listAttachedSources(draft).reduce((sum, { tokens }) => sum + tokens, 0)
  return after.expected - attached - (before.expected - leastGain)
}

async function createOutcome(
  turn: TurnContext,
  compaction: CompactionServices,
  fitted: MeasuredDraft,
): Promise<DraftResult> {
  const { draft, after, before, state } = fitted
  const { plan } = draft
  const refusal = findRefusal(fitted)
  if (refusal === 'not-smaller') {
    const message = describeSmallGain(plan, after.expected)
    return refuseRewrite('not-smaller', message)
  }
  const { limit, request, span } = plan
  if (refusal !== null && limit !== null)
    return refuseIrreducible(span, after, limit, {
      state,
      compaction,
      isTarget: request.target !== undefined,
    })
  const receipt = await runTurnSteps(turn, createDraftReceipt(draft, { before, after: state }))
  if (receipt === null) return ABORTED_REWRITE
  return { ...draft, ok: true, after, preparedText: draft.summary.text, receipt, usage: NO_SUMMARY_USAGE }
}

// A local summary fills the target that it was given, so it must also give way again: down to a third of the target,
// before attached files are dropped; and as far as it can where the compaction would be refused otherwise.

const SHARE_OF_TARGET = 1 / 3
/** A local summary is tried with at least this share of its tokens, since the list of names becomes smaller with it. */
const SMALLEST_STEP = 0.25

interface DraftSizes {
  /** The compacted context with all attachments, and after optional ones were dropped. */
  readonly whole: ContextTokens
  readonly fitted: ContextTokens
  /** Tokens of the summary without the list of names that is added to it. */
  readonly summary: number
}

function findLargestSummary(draft: UnmeasuredDraft, sizes: DraftSizes): number {
  const { plan, summary } = draft
  const { whole, fitted, summary: tokens } = sizes
  const missingGain = countMissingGain(draft, fitted)
  const over = Math.max(countExcessTokens(plan, fitted), missingGain)
  const notSmaller = fitted.expected - plan.before.expected + 1
  const refused = Math.max(countAboveLimit(plan, fitted), notSmaller, missingGain)
  // Where no summary reaches the target, because of a long prompt that is kept, one within the limit will do.
  const excessTokens = tokens > over ? over : refused
  if (summary.summarizer !== 'local') return excessTokens <= 0 ? 0 : Math.max(0, tokens - excessTokens)
  const least = Math.floor((plan.target ?? 0) * SHARE_OF_TARGET)
  const excess = countExcessTokens(plan, whole)
  if (excess > 0 && tokens > least) return Math.max(tokens - excess, least)
  return refused <= 0 ? 0 : Math.max(tokens - refused, Math.floor(tokens * SMALLEST_STEP))
}

function findRegrowth({ draft }: MeasuredDraft, sizes: DraftSizes): FitResult['regrowth'] {
  const { plan, summary, allSources } = draft
  const sources = listAttachedSources(draft)
  if (summary.summarizer !== 'local' || plan.target === null || sources.length === allSources.length)
    return null
  const free = countTokensBelowTarget(plan, sizes.fitted)
  return free <= 0 ? null : { largestSummary: sizes.summary + free, sources }
}

function countSummaryTokens(
  { state, host }: TurnContext,
  compaction: CompactionServices,
  { summary }: UnmeasuredDraft,
): number {
  const count = createTextCounter(state, host, compaction)
  return Math.max(0, count(summary.text) - count(summary.ledger.join('\n')))
}

function measureDraft(
  turn: TurnContext,
  compaction: CompactionServices,
  drafted: UnmeasuredDraft,
): MeasuredDraft | null {
  const records = createDraftRecords(turn, compaction, drafted)
  if (records === null) return null
  const before = turn.state
  const state = previewAppend(before, records)
  return { draft: drafted, after: measureContext(state, turn.host, compaction), before, state }
}

/** Returns the tokens to remove until the compacted context is within target and limit and smaller than before. */
function countExcessTokens(plan: CompactionPlan, after: ContextTokens): number {
  const aboveTarget = -countTokensBelowTarget(plan, after)
  const aboveLimit = countAboveLimit(plan, after)
  return Math.max(0, aboveTarget, aboveLimit, after.expected - plan.before.expected + 1)
}

/**
 * Returns the tokens, as expected, that are free below the target; negative above it. The target is compared with the
 * expected size: by the upper bound of the estimate, files that fit would be left out. Only after a refusal by the
 * provider it is the upper bound, because the context was then larger, or the window smaller, than expected.
 */
function countTokensBelowTarget(
  { target, request }: CompactionPlan,
  { expected, high }: ContextTokens,
): number {
  if (target === null) return 0
  const most = request.cause === 'reactive' ? Math.floor((target * expected) / Math.max(1, high)) : target
  return most - expected
}

/** Returns the tokens, as expected, to remove until the compacted context is within its limit. */
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

function dropSources(turn: TurnContext, compaction: CompactionServices, whole: MeasuredDraft): MeasuredDraft {
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
    const { kept } = dropOptionalAttachments(candidates, wanted, turn.host.policy.compact.target)
    const keep = (list: readonly SourceAttachment[]) => list.filter((one) => kept.includes(one))
    const shorter: UnmeasuredDraft = {
      ...whole.draft,
      sourcesBefore: keep(sourcesBefore),
      sourcesAfter: keep(sourcesAfter),
    }
    best = measureDraft(turn, compaction, shorter) ?? best
  }
  return best
}

interface MeasuredDraft {
  readonly draft: UnmeasuredDraft
  readonly after: ContextTokens
  /** The session state in which the draft was measured, and the one that committing it there would produce. */
  readonly before: SessionState
  readonly state: SessionState
}
