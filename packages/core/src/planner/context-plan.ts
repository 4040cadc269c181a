/**
 * Plans what to do before the next API request: wait, clear or compact, and why. Clearing is considered first;
 * compaction is chosen if clearing is not enough. Where a compaction would only save money, the plan advises it; with
 * policy `compact.economy` and a prepared summary, it compacts. The engine carries out the plan.
 */

import type { CacheTemperature } from '../cache/cache-model.ts'
import type { ClearProposal } from '../clearing/clear-candidates.ts'
import { type ClearingDecision, decideClearing } from '../clearing/propose-clearing.ts'
import type { ProviderEditPlan } from '../clearing/provider-clearing.ts'
import { countShownTokens } from '../clearing/tool-result-index.ts'
import { formatCount, formatDollars } from '../cost/prices.ts'
import type { ClearMode, CompactCause } from '../log/record.ts'
import { findReachedThresholds, type ReachedThresholds, type ScaledLimits } from '../policy/scale-policy.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import { measureGrowthPerCall } from '../tokens/context-meter.ts'
import { type ContextTokens, computeCalibrationScale, computeLowerBound } from '../tokens/usage.ts'
import {
  type CompactionBreakEven,
  type CompactionResultSizes,
  type ContextPlanInput,
  computeContextSize,
  findCompactionBreakEven,
} from './plan-input.ts'

/** What to do before the next API request, and why. */
export interface ContextPlan {
  readonly act: 'wait' | 'clear' | 'compact'
  /** The clearing to append; given if `act` is `clear`. */
  readonly clear?: ClearProposal
  /** The compaction to make; given if `act` is `compact`. */
  readonly compact?: {
    readonly cause: CompactCause
    /** True at the auto-compact threshold: a summary is written if needed. Else only a prepared one, or the notes, is used. */
    readonly hard: boolean
    /** The compaction is made only if it leaves at most this many tokens after system prompt and tools. Default: no limit. */
    readonly mostTokens?: number
  }
  /** True if a summary for a later compaction may now be prepared in the background. */
  readonly prepare: boolean
  /** The clearing mode for the current policy, provider and cache; null if nothing is to be cleared. */
  readonly way: ClearMode | null
  /** Context edits that the next API request asks the provider to make; null if there are none. */
  readonly native: ProviderEditPlan | null
  /**
   * Why a new user message is refused: the context is full (blocking threshold) and can be neither cleared nor
   * compacted. Null if it is accepted.
   */
  readonly refusal: string | null
  /** What compacting now would save and drop; null if it would not pay. */
  readonly advice: CompactionSavings | null
  readonly context: ContextTokens
  /** The thresholds that the context has reached; null if the context window is unknown. */
  readonly ladder: ReachedThresholds | null
  /** Thresholds and budgets with which the plan was made. A clearing or compaction of this plan must use the same ones. */
  readonly scaled: ScaledLimits
  readonly trace: readonly TraceStep[]
}

/** One option that the planner considered, and why it was or was not chosen, in a sentence for users. */
interface TraceStep {
  readonly tier: 'clear' | 'compact' | 'wait'
  /** Tokens of the context now (`before`), and after carrying out the option (`after`). */
  readonly before: number
  readonly after: number
  /** Cost of the option in dollars; null if prices are unknown. */
  readonly price: number | null
  /** Model calls until the option has paid for itself; null if unknown or never. */
  readonly breakEven: number | null
  readonly why: string
  readonly chosen: boolean
}

/** What compacting now would save, if that costs less than continuing without. */
export interface CompactionSavings {
  /** Dollars that the next 100 calls would cost less, the compaction itself included. */
  readonly savedPer100Calls: number
  /** Tokens of the conversation that a summary would replace. */
  readonly droppedTokens: number
  /** Both figures in words, for the user. */
  readonly sentence: string
}

/** Makes the plan for the next API request. Pure: nothing is sent or appended. */
export function makeContextPlan(context: ContextPlanInput): ContextPlan {
  const { scaled, prefixTokens } = context
  const tokens = computeContextSize({ ...context, prefix: () => prefixTokens })
  const clearing = considerClearing(context, tokens)
  const compaction = judgeCompaction(context, tokens)
  const act = chooseAct(context, tokens, clearing, compaction)
  const trace = listTraceSteps(tokens.high, act, clearing, compaction)
  return {
    act,
    ...(act === 'clear' && clearing.proposal !== null ? { clear: clearing.proposal } : {}),
    ...(act === 'compact' ? { compact: toCompactOrder(compaction) } : {}),
    prepare: canPrepare(context, tokens, compaction) && !willProviderClear(context, tokens, clearing),
    way: clearing.way,
    native: clearing.native,
    refusal: fitsClientLimit(context, tokens) ? null : describeRefusal(context, tokens.expected, act),
    advice: act === 'compact' ? null : compaction.advice,
    context: tokens,
    ladder: scaled.known ? findReachedThresholds(scaled.lines, tokens.high) : null,
    scaled,
    trace,
  }
}

function toCompactOrder({ act, mostTokens }: CompactionVerdict): NonNullable<ContextPlan['compact']> {
  if (mostTokens !== null) return { cause: 'price', hard: false, mostTokens }
  return { cause: act === 'soft' ? 'price' : 'threshold', hard: act === 'hard' }
}

/**
 * Query sources (labels of callers) of the calls that write summaries or notes. They need the whole conversation, so
 * nothing is cleared or compacted for them.
 */
export const SUMMARY_AND_NOTES_CALLERS: ReadonlySet<string> = new Set(['compact', 'session_memory'])

/**
 * Proposes a clearing. Proposes none if a rewrite was just undone, if the request of a client still fits, while tool calls are
 * still waiting for their results, or if a summary is prepared or being prepared: the clearing would make the summary stale, and
 * the summary will soon replace the results. The provider then clears no further results either: messages after the summary would
 * lose theirs, and the context would not reach the threshold at which the summary is used.
 */
function considerClearing(context: ContextPlanInput, tokens: ContextTokens): ClearingDecision {
  const { source, tracking, rates, write, calibration, canEdit = true } = context
  if (SUMMARY_AND_NOTES_CALLERS.has(source)) {
    return {
      way: null,
      proposal: null,
      native: null,
      why: `${source} carries the whole conversation as it is`,
    }
  }
  const early = findReasonToWait(context, tokens)
  const awaitsSummary = context.hasPreparedSummary === true || context.isPreparing === true
  const clearing = decideClearing({
    ...context,
    canEdit,
    canStart: early === null && !awaitsSummary,
    prices: { rates, write },
    context: tokens,
    scale: computeCalibrationScale(calibration),
    // A compaction that needs a model call is worth postponing by a clearing; a compaction with notes is not.
    growthPerCall: context.hasNotes === true ? findGrowthPerCall(context) : null,
  })
  if (clearing.proposal === null) return clearing
  if (early !== null) return { ...clearing, proposal: null, why: early }
  if (awaitsSummary)
    return { ...clearing, proposal: null, why: 'a prepared summary will replace the results' }
  if (tracking.openCalls === 0) return clearing
  return { ...clearing, proposal: null, why: 'tool calls are still without their answers' }
}

/**
 * Chooses between waiting, clearing and compacting. If the context would still be above the warning threshold after a
 * clearing, a due compaction is chosen instead, because it would soon follow anyway. If the cache has expired, a
 * clearing costs nothing and only has to get below the auto-compact threshold. A due compaction with the notes, also one
 * that is due only from this threshold on, is preferred to a clearing: it leaves a smaller context and keeps more of its content.
 */
function chooseAct(
  { scaled, cache, clientLimit }: ContextPlanInput,
  { expected, high }: ContextTokens,
  { proposal }: ClearingDecision,
  compaction: CompactionVerdict,
): ContextPlan['act'] {
  if (proposal === null) return compaction.act === 'none' ? 'wait' : 'compact'
  if (compaction.act === 'notes') return 'compact'
  if (compaction.act !== 'hard' || !scaled.known) return 'clear'
  const { notesLine } = compaction
  const isNotesDue =
    notesLine !== null && (clientLimit !== undefined || notesLine === scaled.lines.autoCompact)
  if (isNotesDue) return 'compact'
  const left = estimateLeft({ expected, high }, proposal.freedTokens)
  return left < (cache.isWarm ? scaled.lines.warning : scaled.lines.autoCompact) ? 'clear' : 'compact'
}

/**
 * Returns the upper bound of the context size after `freed` tokens have left it. It is scaled by `high / expected`,
 * because the estimate of the rest is as uncertain as that of the whole context.
 */
function estimateLeft({ expected, high }: Pick<ContextTokens, 'expected' | 'high'>, freed: number): number {
  return expected <= 0 ? 0 : (Math.max(0, expected - freed) * high) / expected
}

/**
 * Returns true if the next request lets the provider clear results and the context is then below the warning threshold,
 * so that no summary need be prepared yet. A provider that cleared nothing of a request above its trigger is not relied on.
 */
function willProviderClear(
  { scaled, lastEdits, register, meter }: ContextPlanInput,
  tokens: ContextTokens,
  { native }: ClearingDecision,
): boolean {
  if (native?.price == null || !scaled.known) return false
  const wasAsked = lastEdits?.edits.some(({ act }) => act === 'clear-results') === true
  const wasAbove = (meter.measuredResponse?.context ?? 0) >= scaled.nativeTrigger
  if (wasAsked && wasAbove && register.native === null) return false
  return estimateLeft(tokens, native.price.freedTokens) < scaled.lines.warning
}

/**
 * Checks whether a summary may be prepared in the background. This starts at the warning threshold, so that the summary
 * is usually ready at the auto-compact threshold, or before it if only the summary is missing for one that saves money.
 */
function canPrepare(
  context: ContextPlanInput,
  tokens: ContextTokens,
  { lacksSummary }: CompactionVerdict,
): boolean {
  const { policy, scaled } = context
  if (!policy.compact.background || !scaled.known) return false
  if (tokens.high < scaled.lines.warning && !lacksSummary) return false
  return findReasonAgainstAuto(context) === null && findReasonToWait(context, tokens) === null
}

/** Explains why a new user message must be refused; null if it is accepted. Calls that write summaries or notes always are. */
function describeRefusal(context: ContextPlanInput, used: number, act: ContextPlan['act']): string | null {
  const { scaled, source } = context
  if (act !== 'wait' || !scaled.known || used < scaled.lines.blocking) return null
  if (SUMMARY_AND_NOTES_CALLERS.has(source)) return null
  const cause = findReasonAgainstAuto(context) ?? 'nothing more can be cleared'
  const { manual } = findFeatureStates(context.policy, context.switches ?? NO_SWITCHES)
  const remedy = manual.on
    ? 'Compact the conversation (session.compact)'
    : `Switch compaction on again (${manual.because})`
  return `${formatCount(used)} of ${formatCount(scaled.lines.effective)} tokens are in use and ${cause}. ${remedy} or go back to an earlier message (session.rewind). What was appended is kept.`
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

/** Whether a compaction is due, and why or why not. */
interface CompactionVerdict {
  /**
   * `hard`: the auto-compact threshold is reached. `notes`: `notesLine` is reached, from which a compaction with the
   * notes is due. `soft`: a compaction saves money, and policy lets it start now.
   */
  readonly act: 'none' | 'soft' | 'notes' | 'hard'
  readonly optimalTrigger: CompactionBreakEven | null
  readonly advice: CompactionSavings | null
  /** True if a compaction would start to save money once a summary is prepared. */
  readonly lacksSummary: boolean
  /** Tokens of the first API request after the compaction. */
  readonly after: number
  /** Context size from which a compaction with the notes is due; null if there is no such line. */
  readonly notesLine: number | null
  /** Most tokens that a compaction may leave that is made only if it costs nothing; null if it may cost. */
  readonly mostTokens: number | null
  readonly why: string
}

/** Returns how many tokens a model call adds to the context: as given, else as measured; null if neither is known. */
function findGrowthPerCall({ growthPerCall, meter }: ContextPlanInput): number | null {
  return growthPerCall ?? measureGrowthPerCall(meter)
}

/**
 * Decides whether a compaction is due. The upper bound of the context size is compared with thresholds, and the
 * expected size is used to compute costs.
 */
export function judgeCompaction(context: ContextPlanInput, tokens: ContextTokens): CompactionVerdict {
  const { scaled, prefixTokens } = context
  const growth = findGrowthPerCall(context)
  const outlook =
    context.expectedResult ??
    assumeTypicalCompactionSizes(prefixTokens, scaled.known ? scaled.lines.target : null)
  const optimal = findOptimal(context, tokens.expected, outlook, growth)
  const notesLine = findNotesCompactionThreshold(context, outlook.after, growth)
  const verdict = (
    act: CompactionVerdict['act'],
    why: string,
    advice: CompactionSavings | null = null,
    lacksSummary = false,
  ): CompactionVerdict => ({
    act,
    mostTokens: null,
    optimalTrigger: optimal,
    advice,
    lacksSummary,
    after: outlook.after,
    notesLine,
    why,
  })
  const against = findReasonAgainstAuto(context) ?? findReasonAfterUndo(context, tokens)
  if (against !== null) return verdict('none', against)
  if (!scaled.known) return verdict('none', scaled.why)
  const { autoCompact } = scaled.lines
  const isDue = notesLine !== null && tokens.expected >= notesLine && !isReadingFiles(context)
  if (fitsClientLimit(context, tokens) && !(isDue && context.clientLimit?.isPassed === true)) {
    const mostTokens = isDue ? findFreeLimit(context, tokens.expected, autoCompact) : null
    if (mostTokens === null) return verdict('none', STILL_FITS_REASON)
    return { ...verdict('notes', FREE_REASON), mostTokens }
  }
  if (tokens.high >= autoCompact) {
    const why = `${formatCount(tokens.high)} tokens are in use, and compaction starts at ${formatCount(autoCompact)}`
    return verdict('hard', why)
  }
  if (isDue) {
    const why = `${formatCount(tokens.expected)} tokens are in use, and a compaction with the notes is due from ${formatCount(notesLine)} on`
    return verdict('notes', why)
  }
  const left = `${formatCount(autoCompact - tokens.expected)} tokens are left before compaction must start`
  if (optimal === null) return verdict('none', `${left}, and what it would save is not known yet`)
  const unpaid = explainNotPaying(context, tokens.expected, optimal)
  if (unpaid !== null) return verdict('none', `${left}, and ${unpaid}`)
  const advice = describeAdvice(tokens.expected - outlook.after, optimal)
  const waiting = findReasonAgainstEconomy(context, tokens.expected, autoCompact)
  return waiting === null
    ? verdict(
        'soft',
        `from ${formatCount(optimal.tokens)} tokens on a compaction costs less than going on`,
        advice,
      )
    : verdict(
        'none',
        `${left}; to compact now would pay, but ${waiting}`,
        advice,
        waiting === NO_SUMMARY_REASON,
      )
}

/** Average tokens in real compactions, used until this session has had its first one. `carried`: what is attached again. */
const TYPICAL_TOKENS = { summary: 3_000, carried: 20_000 }

/**
 * Returns the token counts to expect after a compaction. `target`: context size that the compaction aims at, in tokens;
 * null if the context window is unknown.
 */
export function assumeTypicalCompactionSizes(
  prefixTokens: number,
  target: number | null = null,
): CompactionResultSizes {
  const available = target === null ? Number.POSITIVE_INFINITY : Math.max(0, target - prefixTokens)
  const summary = Math.min(TYPICAL_TOKENS.summary, available)
  const carried = Math.min(TYPICAL_TOKENS.carried, available - summary)
  return { after: prefixTokens + summary + carried, summary, reattached: carried }
}

/** Context window for which the tokens of `compact.notesLine` are given. */
const LINE_WINDOW = 200_000

/**
 * Returns the context size, in tokens, from which a compaction with the notes is due: the largest of the sizes that
 * policy `compact.notesLine` gives, at most the auto-compact threshold. With A tokens after a compaction, C at this
 * size, growth g per call, and prices r (read) and w (write), the cost per call is r·(A + C)/2 + (w − r)·(A −
 * prefix)·g/(C − A), which is least at C − A = √(2·g·(w − r)·(A − prefix)/r). If reads are free, there is nothing to
 * save, and it is the auto-compact threshold. Null if notes cannot be used or the window is unknown.
 */
export function findNotesCompactionThreshold(
  context: ContextPlanInput,
  after: number,
  growth: number | null,
): number | null {
  const { policy, clientLimit, scaled, prefixTokens, rates, write, cache, hasNotes = false } = context
  const { enabled, conversationTokens, growthTokens, rootFactor, coldTokens } = {
    ...policy.compact.notesLine,
    ...(clientLimit === undefined ? {} : policy.dropIn.notesLine),
  }
  if (!hasNotes || !enabled || !scaled.known) return null
  const { window, autoCompact } = scaled.lines
  const scale = window / LINE_WINDOW
  const [read, written] = [rates?.cacheRead ?? null, rates?.[write] ?? null]
  const isExpired = hasCacheExpired(cache)
  // Below the threshold, a compaction saves what the next calls read from the cache, or write if the cache has expired.
  if ((isExpired ? written : read) === 0) return autoCompact
  if (isExpired) return Math.min(autoCompact, Math.round(after + coldTokens * scale))
  const rewritten = Math.max(0, after - prefixTokens)
  const root =
    growth === null || read === null || written === null
      ? 0
      : Math.sqrt((2 * growth * Math.max(0, written - read) * rewritten) / read)
  const line = Math.max(
    prefixTokens + conversationTokens * scale,
    after + growthTokens * scale,
    after + rootFactor * root,
  )
  return Math.round(Math.min(autoCompact, line))
}

/**
 * Returns true while the model reads before it edits: the files that it read in its last responses and has not edited
 * since have more tokens than policy allows, so a compaction would bring back only parts of them. Returns false once
 * the cache has expired: to wait would write all of them to the cache again.
 */
function isReadingFiles({ register, calibration, policy, scaled, cache }: ContextPlanInput): boolean {
  if (hasCacheExpired(cache)) return false
  const { readingTokens, readingResponses } = policy.compact.notesLine
  const { results, responses } = register
  const edited = new Set<string>()
  let tokens = 0
  for (let index = results.length - 1; index >= 0; index -= 1) {
    const result = results.at(index)
    const isRecent = result !== undefined && result.call.response >= responses.length - readingResponses
    if (result === undefined || (!isRecent && edited.size > 0)) break
    const { kind, path } = result.call
    if (path === null) continue
    if (kind === 'read') tokens += edited.has(path) ? 0 : countShownTokens(result)
    else edited.add(path)
  }
  const scale = scaled.known ? scaled.lines.window / LINE_WINDOW : 1
  return computeCalibrationScale(calibration) * tokens > readingTokens * scale
}

/**
 * Returns true if the request of a client that is rewritten only when necessary may still be accepted. Before the first
 * rewrite, the lower bound of its size counts: a refusal costs nothing, a rewrite without need does. As long as no
 * response has reported the size, only the provider knows. After a rewrite, the client's own list is no longer sent,
 * and the upper bound counts, to avoid refusals.
 */
function fitsClientLimit({ clientLimit }: ContextPlanInput, context: ContextTokens): boolean {
  if (clientLimit === undefined) return false
  if (!clientLimit.isPassed && context.source === 'estimated') return true
  return (clientLimit.isPassed ? context.high : computeLowerBound(context)) <= clientLimit.tokens
}

/**
 * Share of the conversation's cost so far that a compaction for free may cost. A client that ends with the next request
 * has then paid at most this much more than without the compaction; a few requests later it has paid less.
 */
const FREE_SHARE = 0.005

/**
 * Returns the most tokens that a compaction may leave after system prompt and tools (A − P) so that the next request
 * costs no more than without the compaction, plus half a percent of the bill so far (B). Of C tokens now, the N since
 * the last response are written in any case, and the P tokens of system prompt and tools stay cached: w·(A − P) + r·P ≤
 * w·N + r·(C − N) + 0.005·B. Null if a price is unknown, or if reads cost nothing.
 */
function findFreeTokens(
  { rates, write, cache, meter, prefixTokens, clientLimit }: ContextPlanInput,
  used: number,
): number | null {
  const [read, written] = [rates?.cacheRead ?? null, rates?.[write] ?? null]
  if (read === null || written === null || read <= 0 || meter.measuredResponse === null) return null
  if (hasCacheExpired(cache) || written <= read) return Math.max(0, used - prefixTokens)
  const cached = Math.min(used, meter.measuredResponse.context)
  const saved = Math.max(0, cached - prefixTokens) * read
  const allowed = FREE_SHARE * (clientLimit?.spent ?? 0) * 1_000_000
  return Math.floor(used - cached + (saved + allowed) / written)
}

const FREE_REASON = 'a compaction with the notes may make the next request cost no more'

/**
 * For a client whose request still fits: returns the most tokens that a compaction without cost may leave; null if none
 * may be tried yet.
 */
function findFreeLimit(context: ContextPlanInput, used: number, autoCompact: number): number | null {
  const { policy, clientLimit } = context
  if (!policy.dropIn.freeRewrites || used < Math.max(autoCompact, clientLimit?.freeFrom ?? 0)) return null
  return findFreeTokens(context, used)
}

/** Returns the size from which a compaction saves money; null if prices or growth are unknown. */
function findOptimal(
  { rates, write, cache: { isWarm } }: ContextPlanInput,
  used: number,
  expectedResult: CompactionResultSizes,
  growthPerCall: number | null,
): CompactionBreakEven | null {
  if (rates === null || growthPerCall === null) return null
  return findCompactionBreakEven({ context: used, expectedResult, growthPerCall, rates, write, isWarm })
}

/** Explains why a compaction would not save money yet; null if it would. */
function explainNotPaying(
  { cache }: ContextPlanInput,
  used: number,
  optimal: CompactionBreakEven,
): string | null {
  if (used < optimal.tokens) return `it would pay from ${formatCount(optimal.tokens)} on`
  return optimal.breakEvenCalls === null || cache.expectedCalls <= optimal.breakEvenCalls
    ? `it would not pay before the ${formatCount(cache.expectedCalls)} calls expected are over`
    : null
}

const NO_SUMMARY_REASON = 'no summary is prepared'

/** Explains why a compaction that only saves money does not start now; null if it starts. */
function findReasonAgainstEconomy(
  { policy, tracking, moment, hasPreparedSummary = false, hasNotes = false }: ContextPlanInput,
  used: number,
  autoCompact: number,
): string | null {
  if (!policy.compact.economy) return 'price alone compacts nothing'
  const floor = Math.round((autoCompact * policy.compact.economyFloorPercent) / 100)
  if (used < floor) return `price alone compacts nothing below ${formatCount(floor)} tokens`
  if (tracking.priceCompactedAt !== null && used < tracking.priceCompactedAt)
    return 'less has come since the last compaction that saved money than it replaced'
  if (!hasPreparedSummary && !hasNotes) return NO_SUMMARY_REASON
  return moment === 'call' ? 'it waits for the end of the turn' : null
}

function describeAdvice(
  droppedTokens: number,
  { savedPerCall, cost }: CompactionBreakEven,
): CompactionSavings {
  const savedPer100Calls = 100 * savedPerCall - cost
  const sentence = `Compacting now would save ${formatDollars(savedPer100Calls)} over the next 100 calls. A summary would replace ${formatCount(droppedTokens)} tokens of the conversation.`
  return { savedPer100Calls, droppedTokens, sentence }
}

/** Explains why no automatic compaction may start, for example after repeated failures; null if it may. */
function findReasonAgainstAuto(context: ContextPlanInput): string | null {
  const { policy, source, tracking, switches = NO_SWITCHES } = context
  const state = findFeatureStates(policy, switches).auto
  if (SUMMARY_AND_NOTES_CALLERS.has(source))
    return `${source} carries the whole conversation and must not wait for itself`
  if (!state.on) return `compacting by itself is switched off by ${state.because}`
  if (tracking.failures >= policy.turn.auto.breakerFailures)
    return `${formatCount(tracking.failures)} compactions in a row have failed; compact by hand, or rewind`
  if (mustWaitForPrompt(context)) return WAITS_FOR_PROMPT_REASON
  if (tracking.openCalls > 0) return 'tool calls are still without their answers'
  return tracking.justCompacted ? 'nothing has come since the last compaction' : null
}

const WAITS_FOR_PROMPT_REASON = 'an act was undone, so this waits for the next prompt'

function mustWaitForPrompt({ tracking, moment }: ContextPlanInput): boolean {
  return tracking.waitsForPrompt && moment !== 'prompt'
}

/** Explains why no rewrite may start yet; null if it may. */
function findReasonToWait(context: ContextPlanInput, tokens: ContextTokens): string | null {
  return findReasonAfterUndo(context, tokens) ?? (fitsClientLimit(context, tokens) ? STILL_FITS_REASON : null)
}

const STILL_FITS_REASON = "the client's request still fits the window"

/**
 * Explains why no rewrite may start after the user undid one; null if it may. No rewrite starts before the next user
 * prompt. After that, until the model has answered, a rewrite starts only if the context is nearly full: the expected
 * size reaches the auto-compact threshold, or the upper bound reaches the blocking threshold.
 */
function findReasonAfterUndo(context: ContextPlanInput, { expected, high }: ContextTokens): string | null {
  if (mustWaitForPrompt(context)) return WAITS_FOR_PROMPT_REASON
  const { tracking, scaled } = context
  if (!tracking.justUndone) return null
  const must = scaled.known && (expected >= scaled.lines.autoCompact || high >= scaled.lines.blocking)
  return must ? null : 'an act was undone, and nothing has been answered since'
}

/** Returns true if something was cached and has expired, so that the next request writes it again. */
export function hasCacheExpired({ expiresAt, isWarm }: CacheTemperature): boolean {
  return expiresAt !== null && !isWarm
}
