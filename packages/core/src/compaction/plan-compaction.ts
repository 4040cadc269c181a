/**
 * Plans a compaction without changing anything: what it summarizes and keeps, the size now, the target, and the cost.
 */

import type { ContextEntry } from '../context/context-entry.ts'
import type { ContextRewrite } from '../context/context-view.ts'
import { type RefusedRewrite, refuseRewrite } from '../engine/events.ts'
import type { CompactionServices, TurnHost } from '../engine/host.ts'
import { gatherPlanContext, measureContext } from '../engine/measure-context.ts'
import type { TokenExcess } from '../engine/reply.ts'
import type { PinnedUuids, SessionState } from '../engine/session-state.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { CompactCause, CompactTrigger } from '../log/record.ts'
import {
  type ExpectedCompactionResult,
  estimateCompactionResult,
  findOptimalCompactionSize,
  type OptimalCompactionSize,
  type PlanContext,
} from '../planner/plan-input.ts'
import type { Policy } from '../policy/policy.ts'
import type { ScaledPolicy } from '../policy/scale-policy.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { type CompactionSpan, chooseCompactionSpan } from '../summary/select-span.ts'
import type { CompactionForm } from '../summary/summary-prompt.ts'
import { measureGrowthPerCall } from '../tokens/read-meter.ts'
import { type ContextTokens, readCalibrationScale } from '../tokens/usage.ts'

export interface CompactionOptions {
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly form?: CompactionForm
  /**
   * uuid of the record that the user selected. Form `from` summarizes everything from it on, `up_to` everything before
   * it.
   */
  readonly pivot?: string
  readonly instructions?: string
  /** Maximum tokens of the context after the compaction. Default for a full compaction: the policy's target. */
  readonly target?: number
  /** `local`: the summary is written without a model. Default: in the ways that policy allows. */
  readonly summarizer?: 'local' | 'model'
  /**
   * True if the session cannot continue without the compaction. A hook that blocks the compaction is then overruled and
   * reported.
   */
  readonly isForced?: boolean
  /**
   * Why an automatic compaction started: the context reached the auto-compact threshold, or the compaction saves money.
   */
  readonly firedBy?: 'threshold' | 'price'
  /** What the provider said about the size of a prompt that it refused as too long; missing if there is no such refusal. */
  readonly refused?: TokenExcess
  /** True to give up if the notes of the session cannot be used, instead of writing a summary. */
  readonly notesOnly?: boolean
  /** The text of the summary, if it exists already as the notes of the session. No model is then asked for one. */
  readonly notesText?: string
}

export interface CompactionPlan {
  readonly ok: true
  readonly request: CompactionOptions
  readonly span: CompactionSpan
  /**
   * The context entries when the compaction was planned; `rewrites`: the compactions and clearings in force at that
   * time.
   */
  readonly entries: AppendList<ContextEntry>
  readonly rewrites: readonly ContextRewrite[]
  /** uuids of the records that were pinned when the compaction was planned. */
  readonly pins: PinnedUuids
  /** Sentences for the user, for example that the cut between summarized and kept messages was moved. */
  readonly notes: readonly string[]
  readonly before: ContextTokens
  /** Maximum tokens of the context after the compaction; null if the context only has to become smaller. */
  readonly target: number | null
  /** Tokens below the target that optional attachments do not fill, so that the next compaction comes later. */
  readonly reservedTokens: number
  /** Tokens that the compaction must save: a share of what it summarizes. 1 if the session cannot continue without it. */
  readonly leastGain: number
  /**
   * Auto-compact threshold in tokens. A context at or above this size would be compacted again at once. Null if the
   * context window is unknown.
   */
  readonly autoCompactTokens: number | null
  /** Cost of the compaction, and the number of model calls after which it has paid for itself; null if unknown. */
  readonly price: OptimalCompactionSize | null
  /** When the compaction was planned, in milliseconds since 1970. */
  readonly at: number
}

/**
 * Returns the target for a prompt that the provider refused as too long, in tokens as the engine estimates them: the
 * provider's limit and its own count show how large the window really is.
 */
function findTargetAfterRefusal(
  { refused }: CompactionOptions,
  { expected }: ContextTokens,
  { compact }: Policy,
): number {
  if (refused?.limit === undefined) return Number.POSITIVE_INFINITY
  const estimated = expected / Math.max(1, refused.actual ?? expected)
  return Math.floor((refused.limit * estimated * compact.target.percentOfAutoCompact) / 100)
}

export function planCompaction(
  state: SessionState,
  request: CompactionOptions,
  { host, compaction }: { readonly host: TurnHost; readonly compaction: CompactionServices },
): CompactionPlan | RefusedRewrite {
  const { policy, profile, switches = NO_SWITCHES, clock } = host
  const { scaled, estimator } = compaction
  const { auto, manual } = findMechanismStates(policy, switches)
  const mechanism = request.trigger === 'manual' ? manual : auto
  if (!mechanism.on)
    return refuseRewrite('off', `Compaction is switched off by ${mechanism.because}. Unset it to compact.`)
  const { form = 'full', pivot } = request
  const pinTokens = findPinBudget(policy, scaled)
  const options = {
    form,
    ...(pivot === undefined ? {} : { pivot }),
    pins: {
      targets: [...state.pins],
      budgetTokens: pinTokens,
      countTokens: estimator.entry,
    },
    betweenRoles: profile.thinking.binding === 'prefix' && request.notesText === undefined,
  }
  const choice = chooseCompactionSpan(state.view, options, state.flat)
  if (!choice.ok) return refuseRewrite(choice.reason, choice.message)
  const { span } = choice
  const before = measureContext(state, host, compaction)
  // At the blocking threshold no new message fits, so no hook may block the compaction.
  const isBlocked = scaled.known && before.high >= scaled.lines.blocking
  // A partial compaction of the user summarizes only what was selected, so it has no default target size.
  const hasTarget = form === 'full' || request.notesText !== undefined
  const usual = hasTarget && scaled.known ? scaled.lines.target : null
  const target = usual === null ? null : Math.min(usual, findTargetAfterRefusal(request, before, policy))
  const isForced = request.isForced === true || isBlocked
  const summarized = span.summarised.reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const share = 1 - policy.compact.maximumPercentOfReplaced / 100
  return {
    ok: true,
    request: { ...request, isForced },
    span,
    entries: state.view.entries,
    rewrites: state.view.rewrites,
    pins: state.pins,
    notes: listNotes(span, pinTokens),
    before,
    target: request.target ?? target,
    reservedTokens: request.notesText === undefined ? 0 : findReserve(state, host, compaction, span),
    leastGain: isForced ? 1 : Math.max(1, Math.round(summarized * share)),
    autoCompactTokens: scaled.known ? scaled.lines.autoCompact : null,
    price: estimateCost(state, host, compaction, { span, request, tokens: before.expected }),
    at: clock.now(),
  }
}

/** Says why a compaction that would leave `after` tokens is refused: it saves less than it must. */
export function describeSmallGain({ before, leastGain }: CompactionPlan, after: number): string {
  const figures = `The context has ${before.expected} tokens now and would have ${after} after a compaction`
  return after >= before.expected
    ? `${figures}: nothing is gained.`
    : `${figures}. That is too little: at least ${leastGain} must be saved (compact.maximumPercentOfReplaced).`
}

/** Returns how many tokens pinned records may have together. In a small window they must leave room to go on. */
function findPinBudget({ compact }: Policy, scaled: ScaledPolicy): number {
  return scaled.known
    ? Math.min(compact.pinTokens, Math.floor(scaled.lines.autoCompact / 2))
    : compact.pinTokens
}

function listNotes({ note, unpinned }: CompactionSpan, pinTokens: number): readonly string[] {
  const count = unpinned.length
  const which = unpinned.map(({ record }) => record.uuid).join(', ')
  const pins = `Pinned records may have at most ${pinTokens} tokens together. ${count === 1 ? 'One does' : `${count} do`} not fit and will be summarized: ${which}. To keep ${count === 1 ? 'it' : 'them'}, unpin others or raise compact.pinTokens, which counts up to half of the auto-compact threshold.`
  return [...(note === null ? [] : [note]), ...(count === 0 ? [] : [pins])]
}

/**
 * Returns the part of the share of kept messages that a compaction with notes leaves free, if files should not fill it.
 * That is so if the context grows from its target to the threshold in so few calls that writing it to the cache costs more
 * than reading it in all of them: what is attached would soon be replaced, and each compaction would write it again.
 */
function findReserve(
  state: SessionState,
  host: TurnHost,
  compaction: CompactionServices,
  { kept }: CompactionSpan,
): number {
  const { rates, write, meter, calibration, scaled } = gatherPlanContext(
    state,
    host,
    compaction,
    'call',
  ).context
  const growth = measureGrowthPerCall(meter)
  const [read, written] = [rates?.cacheRead ?? null, rates?.[write] ?? null]
  if (!scaled.known || growth === null || read === null || written === null) return 0
  const { autoCompact, target } = scaled.lines
  if ((autoCompact - target) * read >= growth * written) return 0
  const tokens = kept.reduce((sum, entry) => sum + compaction.estimator.entry(entry), 0)
  return Math.max(
    0,
    scaled.budgets.keptMessages.maximum - Math.round(readCalibrationScale(calibration) * tokens),
  )
}

/**
 * Estimates the cost of a compaction from the messages it summarizes and the state of the cache. Returns null if the
 * prices or the growth of the context per call are unknown.
 */
function estimateCost(
  state: SessionState,
  host: TurnHost,
  compaction: CompactionServices,
  planned: { readonly span: CompactionSpan; readonly request: CompactionOptions; readonly tokens: number },
): OptimalCompactionSize | null {
  const { context } = gatherPlanContext(state, host, compaction, 'call')
  const { rates, cache, write, meter } = context
  const growth = measureGrowthPerCall(meter)
  if (rates === null || growth === null) return null
  const { chain } = host.policy.compact
  return findOptimalCompactionSize({
    context: planned.tokens,
    expectedResult: estimateResult(context, compaction, planned.span),
    growthPerCall: growth,
    rates,
    write,
    isWarm: cache.isWarm && state.lastRequest !== null && chain.fork,
    usesModel:
      compaction.writeSummary === undefined &&
      planned.request.notesText === undefined &&
      planned.request.summarizer !== 'local' &&
      chain.local !== 'only',
  })
}

/**
 * Expected size of a summary: 15 % of the summarized tokens, but not more than the last summary had. Before the first
 * summary, not more than `max` tokens.
 */
const SUMMARY_SIZE = { share: 0.15, max: 3_000 }

/**
 * Estimates the sizes after a compaction. Messages kept before the summary stay cached; those kept after it are written
 * to the cache again.
 */
function estimateResult(
  context: PlanContext,
  compaction: CompactionServices,
  span: CompactionSpan,
): ExpectedCompactionResult {
  const { sources: carriers = [], scaled, estimator } = compaction
  const last = context.expectedResult
  const sizeOf = (entries: readonly ContextEntry[]): number =>
    readCalibrationScale(context.calibration) *
    entries.reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const summary = Math.min(last?.summary ?? SUMMARY_SIZE.max, SUMMARY_SIZE.share * sizeOf(span.summarised))
  const kept = sizeOf(span.kept)
  const others = sizeOf([...span.pinned, ...span.unanswered])
  const typical = estimateCompactionResult(context.prefixTokens, scaled.known ? scaled.lines.target : null)
  // A short session has few files: what comes back is at most about half of what is summarized.
  const reattached = last?.reattached ?? Math.min(typical.reattached, sizeOf(span.summarised) / 2)
  const sources = carriers.length === 0 ? 0 : reattached
  const before = span.form === 'from' ? kept : 0
  const after = others + (span.form === 'from' ? 0 : kept) + sources
  return {
    after: Math.round(context.prefixTokens + before + summary + after),
    summary: Math.round(summary),
    reattached: Math.round(after),
  }
}
