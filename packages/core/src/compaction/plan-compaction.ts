/** Plans a compaction without changing anything: what it summarizes and keeps, the size now, the target, and the cost. */

import { type ContextEntry, isVisibleToModel } from '../context/context-entry.ts'
import type { ContextRewrite } from '../context/context-view.ts'
import { type IrreduciblePart, type RefusedRewrite, refuseRewrite } from '../engine/events.ts'
import type { CompactionServices, TurnHost } from '../engine/host.ts'
import {
  findInputLimit,
  gatherContextPlanInput,
  measureContext,
  withPlanningState,
} from '../engine/measure-context.ts'
import { countPrefixTokens } from '../engine/next-request.ts'
import type { TokenExcess } from '../engine/reply.ts'
import type { PinnedUuids, SessionState } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import type { AppendList } from '../log/persistent-collections.ts'
import type { CompactCause, CompactTrigger } from '../log/record.ts'
import { assumeTypicalCompactionSizes } from '../planner/context-plan.ts'
import {
  type CompactionBreakEven,
  type CompactionResultSizes,
  type ContextPlanInput,
  findCompactionBreakEven,
} from '../planner/plan-input.ts'
import type { Policy } from '../policy/policy.ts'
import {
  limitBudgetsToRoom,
  limitNotesBudgets,
  type ScaledLimits,
  sumNotesAndLedgerBudgets,
} from '../policy/scale-policy.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import type { CompactionForm } from '../summary/select-span.ts'
import { type CompactionSpan, chooseCompactionSpan, type SpanResult } from '../summary/select-span.ts'
import { computeUserMessageBudget } from '../summary/summary-pieces.ts'
import { measureGrowthPerCall } from '../tokens/context-meter.ts'
import {
  type ContextTokens,
  calibrateSize,
  canFitLimit,
  computeCalibrationScale,
  computeLowerBound,
} from '../tokens/usage.ts'

/** What is asked for: which compaction, why, and with which limits. */
export interface CompactionOptions {
  readonly trigger: CompactTrigger
  readonly cause: CompactCause
  readonly form?: CompactionForm
  /** uuid of the record that the user selected. Form `from` summarizes everything from it on, `up_to` everything before it. */
  readonly pivot?: string
  /** The user's instructions for the summary. */
  readonly instructions?: string
  /** Maximum tokens of the context after the compaction. Default for a full compaction: the policy's target. */
  readonly target?: number
  /** `local`: the summary is written without a model. Default: in the ways that policy allows. */
  readonly summarizer?: 'local' | 'model'
  /**
   * True if the session cannot continue without the compaction. A hook that blocks the compaction is then overruled and reported.
   */
  readonly isForced?: boolean
  /** Why an automatic compaction started: the context reached the auto-compact threshold, or the compaction saves money. */
  readonly firedBy?: 'threshold' | 'price'
  /** What the provider said about the size of a prompt that it refused as too long; missing if there is no such refusal. */
  readonly refused?: TokenExcess
  /** True to give up if the notes of the session cannot be used, instead of writing a summary. */
  readonly notesOnly?: boolean
  /** With `notesOnly`: gives up if more than these tokens would follow system prompt and tools. Default: no such limit. */
  readonly mostTokens?: number
  /** The text of the summary, if the notes of the session are used as the summary. No model is then called. */
  readonly notesText?: string
  /** Who wrote `notesText`: a model, or the engine from the log. */
  readonly notesBy?: 'model' | 'local'
}

/** What a compaction will summarize and keep, and the sizes that its result is judged by. Nothing has been changed yet. */
export interface CompactionPlan {
  readonly ok: true
  readonly request: CompactionOptions
  readonly span: CompactionSpan
  /** The context entries when the compaction was planned; `rewrites`: the compactions and clearings in force at that time. */
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
  /** Tokens of the content that the result replaces: everything summarized, and the messages kept after the notes. */
  readonly replacedTokens: number
  /** Estimated tokens of the content that the compaction leaves as it is. */
  readonly stayingTokens: number
  /** Share of `replacedTokens` that the compaction must save; 0 if the session cannot continue without it. */
  readonly leastSavedShare: number
  /**
   * Auto-compact threshold in tokens. A context at or above this size would be compacted again at once. Null if the
   * context window is unknown.
   */
  readonly autoCompactTokens: number | null
  /** The largest result that is accepted; null if any that is smaller than before is. */
  readonly limit: SizeLimit | null
  /**
   * Tokens that the limit leaves for the summary and for what is attached, in addition to what is kept; null if there
   * is no limit, or if the limit is the target itself.
   */
  readonly room: number | null
  /** Cost of the compaction, and the number of model calls after which it has paid for itself; null if unknown. */
  readonly price: CompactionBreakEven | null
  /** When the compaction was planned, in milliseconds since 1970. */
  readonly at: number
}

/**
 * Returns the limit of a provider that refused a prompt as too long, in estimated tokens. The provider's limit and its
 * own count of the prompt show how large the window really is. Infinite if there was no such refusal.
 */
function findRefusedLimit({ refused }: CompactionOptions, { expected }: ContextTokens): number {
  if (refused?.limit === undefined) return Number.POSITIVE_INFINITY
  return (refused.limit * expected) / Math.max(1, refused.actual ?? expected)
}

/** The largest context that a compaction may leave. */
interface SizeLimit {
  readonly tokens: number
  /** A larger limit, accepted as the last resort if no summary is short enough for `tokens`. Default: none. */
  readonly most?: number
  /**
   * Which estimate of the result is compared with the limit. For a target that the user gave, and for the window
   * itself, it is the expected size. For the auto-compact threshold it is the upper bound, because a context above the
   * threshold would be compacted again at once.
   */
  readonly size: 'expected' | 'high'
}

/**
 * Returns the limit of a compaction; null if there is none. Without a target, a partial compaction of the user has
 * none; `willRetrigger` reports a context that stays too large. If the session cannot continue otherwise, the limit is
 * the window: the prompt that fills it is answered next, and the compaction after that can summarize it.
 */
function findSizeLimit(
  request: CompactionOptions,
  form: CompactionForm,
  scaled: ScaledLimits,
  window: number,
): SizeLimit | null {
  const { target, notesText, isForced = false } = request
  if (target !== undefined) return { tokens: target, size: 'expected' }
  if ((form !== 'full' && notesText === undefined) || !scaled.known) return null
  if (notesText === undefined ? isForced : keepsOnlyNewestRound(request))
    return { tokens: Math.floor(window), size: 'expected' }
  return { tokens: scaled.lines.autoCompact - 1, size: 'high' }
}

/**
 * Returns true for a compaction with notes from the log at the auto-compact threshold. Such notes cover everything, so
 * only the newest round is kept. It may fill the window: the model may not have seen it, and a summary would lose it.
 */
export function keepsOnlyNewestRound({ trigger, notesBy, notesOnly }: CompactionOptions): boolean {
  return trigger === 'auto' && notesBy === 'local' && notesOnly !== true
}

interface WindowSizes {
  readonly scaled: ScaledLimits
  readonly before: ContextTokens
  /** The largest prompt that the provider takes, by the catalogue. */
  readonly inputLimit: number
}

/**
 * Returns the largest context, in estimated tokens, that the provider may take. Used if what every compaction keeps (`least`) is
 * expected to exceed `window`, since estimates of some texts are far too high. After a refusal, the provider's count shows the
 * error of the estimate, all of which may be in `least`. Without one, the lower bound of `least` counts: a refusal costs nothing.
 * Returns `window` if that does not help, and for a manual compaction: the error then names what fills the window.
 */
function raiseWindow(
  window: number,
  least: ContextTokens,
  { refused, trigger }: CompactionOptions,
  { before, inputLimit }: Pick<WindowSizes, 'before' | 'inputLimit'>,
): number {
  if (trigger === 'manual' || least.expected <= window) return window
  const actual = refused?.actual
  const limit = Math.min(inputLimit, refused?.limit ?? inputLimit)
  const most =
    actual === undefined
      ? (window * least.expected) / Math.max(1, computeLowerBound(least))
      : limit + before.expected - actual
  return least.expected <= most ? most : window
}

/** Share of the tokens beside `least` that stays free if the size of the window is uncertain. */
const UNCERTAIN_SHARE = 1 / 2

/**
 * Returns the limit of a compaction that keeps at least `least`. The limit is lower if it comes from the provider's own
 * count or from the lower bound of an estimate: the parts of a prompt are not misestimated by the same factor as the
 * whole, so a summary that fills the rest of the window may be refused. If even the shortest summary is above that, the
 * whole window counts (`most`): a request that may fit is sent.
 */
function limitResult(
  request: CompactionOptions,
  form: CompactionForm,
  least: ContextTokens,
  { scaled, before, inputLimit }: WindowSizes,
): SizeLimit | null {
  const expected = Math.min(inputLimit, findRefusedLimit(request, before))
  const window = raiseWindow(expected, least, request, { before, inputLimit })
  const limit = findSizeLimit(request, form, scaled, window)
  if (limit === null || (request.refused?.limit === undefined && window <= expected)) return limit
  const free = Math.max(0, limit.tokens - least[limit.size])
  return { ...limit, tokens: limit.tokens - Math.ceil(free * UNCERTAIN_SHARE), most: limit.tokens }
}

/**
 * Plans a compaction for the session as it is now. Refuses if compaction is switched off, if there is nothing to summarize,
 * or if what must be kept is already too large.
 */
export function planCompaction(
  state: SessionState,
  request: CompactionOptions,
  host: TurnHost,
): CompactionPlan | RefusedRewrite {
  const { compaction } = host
  const { policy, switches = NO_SWITCHES, clock } = host
  const { scaled } = compaction
  const { auto, manual } = findFeatureStates(policy, switches)
  const mechanism = request.trigger === 'manual' ? manual : auto
  if (!mechanism.on)
    return refuseRewrite('off', `Compaction is switched off by ${mechanism.because}. Unset it to compact.`)
  const { form = 'full' } = request
  const choice = selectSpan(state, request, host)
  if (!choice.ok) return refuseRewrite(choice.reason, choice.message)
  const { span } = choice
  const before = measureContext(state, host)
  // At the blocking threshold no new message fits, so no hook may block the compaction.
  const isBlocked = scaled.known && before.expected >= scaled.lines.blocking
  // A partial compaction of the user summarizes only what was selected, so it has no default target size.
  const hasTarget = form === 'full' || request.notesText !== undefined
  const usual = hasTarget && scaled.known ? findTarget(state, request, scaled, host) : null
  const refusedLimit = findRefusedLimit(request, before)
  const { percentOfAutoCompact } = policy.compact.target
  const target =
    usual === null ? null : Math.min(usual, Math.floor((refusedLimit * percentOfAutoCompact) / 100))
  const isForced = request.isForced === true || isBlocked
  const least = measureLeastResult(state, span, host)
  const sizes = { scaled, before, inputLimit: findInputLimit(host, scaled) }
  const limit = limitResult({ ...request, isForced }, form, least, sizes)
  // A target given by the user is judged after the summary is written, so that the refusal can name a target that works.
  if (form === 'full' && request.target === undefined && limit !== null && least[limit.size] > limit.tokens)
    return refuseIrreducibleContext(span, least, limit, { state, compaction, isTarget: false })
  const count = (entries: readonly ContextEntry[]): number => measureEntries(state, entries, host).expected
  const kept = request.notesText === undefined ? 0 : count(span.kept)
  return {
    ok: true,
    request: { ...request, isForced },
    span,
    entries: state.view.entries,
    rewrites: state.view.rewrites,
    pins: state.pins,
    notes: listNotes(span, findPinBudget(policy, scaled)),
    before,
    target: request.target ?? target,
    reservedTokens: request.notesText === undefined ? 0 : findReserve(state, host, span),
    replacedTokens: count(span.summarised) + kept,
    stayingTokens: least.expected - kept,
    leastSavedShare: isForced ? 0 : 1 - policy.compact.maximumPercentOfReplaced / 100,
    autoCompactTokens: scaled.known ? scaled.lines.autoCompact : null,
    limit,
    room: limit === null || request.target !== undefined ? null : measureRoom(least, limit),
    price: estimateCost(state, host, { span, request, tokens: before.expected }),
    at: clock.now(),
  }
}

/** Chooses what a compaction summarizes and keeps. Returns a refusal if there is nothing to summarize. */
export function selectSpan(
  state: SessionState,
  { form = 'full', pivot, notesText }: Pick<CompactionOptions, 'form' | 'pivot' | 'notesText'>,
  host: TurnHost,
): SpanResult {
  const { compaction } = host
  const options = {
    form,
    ...(pivot === undefined ? {} : { pivot }),
    pins: {
      targets: [...state.pins],
      budgetTokens: findPinBudget(host.policy, compaction.scaled),
      countTokens: compaction.estimator.entry,
    },
    betweenRoles: host.profile.thinking.binding === 'prefix' && notesText === undefined,
  }
  return chooseCompactionSpan(state.view, options, state.flat)
}

/** Measures what every full compaction leaves, however short its summary: system prompt, tools, and what it keeps. */
function measureLeastResult(
  state: SessionState,
  { kept, pinned, unanswered }: CompactionSpan,
  host: TurnHost,
): ContextTokens {
  const prefix = countPrefixTokens(state, host)
  return measureEntries(state, [...pinned, ...kept, ...unanswered], host, prefix)
}

/**
 * Returns true if the provider may take the context as it is, by the lower bound of the estimate. With `isLeast`: if it may
 * take what every compaction keeps. The caller then sends the whole context although it may be refused, because a refusal
 * tells its size.
 */
export function mayFitWindow(state: SessionState, host: TurnHost, isLeast: boolean): boolean {
  const choice = isLeast ? selectSpan(state, {}, host) : null
  const span = choice?.ok === true ? choice.span : null
  const size = span === null ? measureContext(state, host) : measureLeastResult(state, span, host)
  const entries = span === null ? state.view.entries.toArray() : [...span.pinned, ...span.unanswered]
  const texts = entries.flatMap(({ record }) => ('message' in record ? [record.message.content] : []))
  return canFitLimit(size, texts, findInputLimit(host, host.compaction.scaled))
}

/** Estimates the tokens of system prompt and tools, corrected by the usage that the provider reported. */
export function estimatePrefixTokens(state: SessionState, host: TurnHost): ContextTokens {
  return measureEntries(state, [], host, countPrefixTokens(state, host))
}

function measureEntries(
  state: SessionState,
  entries: readonly ContextEntry[],
  host: TurnHost,
  prefix = 0,
): ContextTokens {
  const shown = entries.filter(isVisibleToModel)
  const tokens = shown.reduce((sum, entry) => sum + host.compaction.estimator.entry(entry), prefix)
  const { calibration } = withPlanningState(state, host).context.meter
  return { ...calibrateSize(calibration, tokens, host.policy.estimate), source: 'estimated' }
}

/** Returns the tokens, of the expected size, that the limit leaves beside what is kept. */
function measureRoom(least: ContextTokens, { tokens, size }: SizeLimit): number {
  const ratio = least[size] > 0 ? least.expected / least[size] : 1
  return Math.max(0, Math.floor((tokens - least[size]) * ratio))
}

/** How many of the largest parts of the context a refusal names. */
const MAX_PARTS = 5

/**
 * Refuses a compaction whose result stays over the limit even without optional attachments, and names what fills the
 * context. `state`: the session with the compacted context, or the unchanged session if no summary was written.
 */
export function refuseIrreducibleContext(
  span: CompactionSpan,
  after: ContextTokens,
  limit: SizeLimit,
  {
    state,
    compaction: { estimator },
    isTarget,
  }: { readonly state: SessionState; readonly compaction: CompactionServices; readonly isTarget: boolean },
): RefusedRewrite {
  const unanswered = new Set(span.unanswered.map(({ record }) => record.uuid))
  const gone = new Set(span.summarised.map(({ record }) => record.uuid))
  const entries = state.view.entries
    .toArray()
    .filter((entry) => isVisibleToModel(entry) && !gone.has(entry.record.uuid))
  const parts = entries.map((entry): IrreduciblePart => {
    const { record } = entry
    const what =
      record.isCompactSummary === true
        ? 'the summary'
        : record.type === 'attachment'
          ? `attachment ${record.attachment.type ?? 'unknown'}`
          : `${unanswered.has(record.uuid) ? 'message not yet answered' : 'kept message'} ${record.uuid}`
    return { what, tokens: estimator.entry(entry) }
  })
  const messages = parts.reduce((sum, { tokens }) => sum + tokens, 0)
  const prefix = { what: 'system prompt and tools', tokens: Math.max(0, after.expected - messages) }
  const all = state.prefix.current === null ? parts : [...parts, prefix]
  const floor = all.toSorted((a, b) => b.tokens - a.tokens).slice(0, MAX_PARTS)
  const listed = floor.map(({ what, tokens }) => `${what} (${tokens})`).join(', ')
  const size =
    limit.size === 'expected' ? `has ${after.expected} tokens` : `may have up to ${after.high} tokens`
  const allowed = isTarget
    ? `the target is ${limit.tokens}`
    : limit.size === 'expected'
      ? `${limit.tokens} fit the window`
      : `automatic compaction starts at ${limit.tokens + 1}`
  const advice = isTarget
    ? `The smallest target that works here is ${after.expected}.`
    : 'Shorten or rewind what fills it, or use a model with a larger window.'
  return refuseRewrite(
    'floor',
    `What cannot be left out still ${size}, and ${allowed}: ${listed}. ${advice}`,
    { floor, tokens: after[limit.size] },
  )
}

/** Returns the largest size, in tokens, of a context that is worth the compaction. */
export function findLargestWorthwhileSize(plan: CompactionPlan): number {
  const { before, replacedTokens, stayingTokens, leastSavedShare } = plan
  const worth = Math.round(stayingTokens + replacedTokens * (1 - leastSavedShare))
  return Math.min(worth, before.expected - 1)
}

/**
 * Describes why a compaction that would leave `after` tokens is refused: it saves less than it must. `words`: tokens of
 * the user's messages in the summary, which are not cut to save more.
 */
export function describeSmallGain(plan: CompactionPlan, after: number, words: number): string {
  const figures = `A compaction is not worth it: ${plan.before.expected} tokens would become ${after}`
  const kept = words > after / 2 ? `, of which ${words} are the user's own words` : ''
  return `${figures}${kept}. At most ${findLargestWorthwhileSize(plan)} are accepted (compact.maximumPercentOfReplaced).`
}

/** Returns how many tokens pinned records may have together. In a small window, they must leave enough free to continue. */
function findPinBudget({ compact }: Policy, scaled: ScaledLimits): number {
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

/** Largest part of the tokens between system prompt and auto-compact threshold that a compaction with notes may use. */
const LARGEST_RESULT = 0.85

/** The policy of one context window that is known. */
type KnownPolicy = Extract<ScaledLimits, { readonly known: true }>

/**
 * Returns the size that the context should have after a compaction. Unless policy `compact.target.countsPrefix` says so, a
 * compaction with notes does not count system prompt and tools: notes, kept messages and files have budgets of their own.
 */
function findTarget(
  state: SessionState,
  { notesText }: CompactionOptions,
  { lines, budgets }: KnownPolicy,
  host: TurnHost,
): number {
  if (notesText === undefined || host.policy.compact.target.countsPrefix) return lines.target
  const prefix = estimatePrefixTokens(state, host)
  const { broughtBack, keptMessages, files, skills } = budgets
  const messages = computeUserMessageBudget(host.policy.ledger, broughtBack).total
  const text = sumNotesAndLedgerBudgets(budgets) + messages
  const whole = text + keptMessages.maximum + files.total + skills.total
  const most = Math.max(0, lines.autoCompact - prefix.expected) * LARGEST_RESULT
  return Math.max(lines.target, Math.floor(prefix.expected + Math.min(most, whole)))
}

/**
 * Returns the host with budgets for attached state that fit beside system prompt and tools. If system prompt and
 * tools count against the target (policy `compact.target.countsPrefix`), the budgets stay as they are. Clients for
 * which `dropIn.notesLine` applies have their own limit of the notes, too.
 */
export function withFittedBudgets(state: SessionState, host: TurnHost): TurnHost {
  const { scaled } = host.compaction
  const { compact, dropIn } = host.policy
  if (!scaled.known || compact.target.countsPrefix) return host
  const prefix = estimatePrefixTokens(state, host)
  const isOften = host.client !== undefined && dropIn.rewrite === 'when-full' && dropIn.notesLine.enabled
  const given = isOften ? limitNotesBudgets(scaled.budgets, dropIn.notesTokens) : scaled.budgets
  return withBudgets(host, limitBudgetsToRoom(given, scaled.lines, prefix.expected))
}

/** Returns the same turn with another host. Its state, signal and write lock are those of `turn`. */
export function withHost(turn: TurnContext, host: TurnHost): TurnContext {
  return {
    ...turn,
    host,
    get state() {
      return turn.state
    },
    set state(next) {
      turn.state = next
    },
  }
}

/** Returns the host with other budgets for what a compaction keeps and attaches. */
export function withBudgets(host: TurnHost, budgets: ScaledLimits['budgets']): TurnHost {
  const { compaction } = host
  return { ...host, compaction: { ...compaction, scaled: { ...compaction.scaled, budgets } } }
}

/**
 * Returns the tokens of the kept-messages budget that a compaction with notes leaves free instead of filling them with
 * files. It does so if the context grows from target to threshold in so few calls that writing a token to the cache
 * costs more than reading it in all of them: files would soon be replaced, and each compaction would write them again.
 */
function findReserve(state: SessionState, host: TurnHost, { kept }: CompactionSpan): number {
  if (!host.policy.compact.target.countsPrefix) return 0
  const { rates, write, meter, calibration, scaled } = gatherContextPlanInput(state, host, 'call').context
  const growth = measureGrowthPerCall(meter)
  const [read, written] = [rates?.cacheRead ?? null, rates?.[write] ?? null]
  if (!scaled.known || growth === null || read === null || written === null) return 0
  const { autoCompact, target } = scaled.lines
  if ((autoCompact - target) * read >= growth * written) return 0
  const tokens = kept.reduce((sum, entry) => sum + host.compaction.estimator.entry(entry), 0)
  return Math.max(
    0,
    scaled.budgets.keptMessages.maximum - Math.round(computeCalibrationScale(calibration) * tokens),
  )
}

/**
 * Estimates the cost of a compaction from the messages it summarizes and the state of the cache. Returns null if the
 * prices or the growth of the context per call are unknown.
 */
function estimateCost(
  state: SessionState,
  host: TurnHost,
  planned: { readonly span: CompactionSpan; readonly request: CompactionOptions; readonly tokens: number },
): CompactionBreakEven | null {
  const { compaction } = host
  const { context } = gatherContextPlanInput(state, host, 'call')
  const { rates, cache, write, meter } = context
  const growth = measureGrowthPerCall(meter)
  if (rates === null || growth === null) return null
  const { chain } = host.policy.compact
  return findCompactionBreakEven({
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
  context: ContextPlanInput,
  compaction: CompactionServices,
  span: CompactionSpan,
): CompactionResultSizes {
  const { sources: carriers = [], scaled, estimator } = compaction
  const last = context.expectedResult
  const sizeOf = (entries: readonly ContextEntry[]): number =>
    computeCalibrationScale(context.calibration) *
    entries.reduce((sum, entry) => sum + estimator.entry(entry), 0)
  const summary = Math.min(last?.summary ?? SUMMARY_SIZE.max, SUMMARY_SIZE.share * sizeOf(span.summarised))
  const kept = sizeOf(span.kept)
  const others = sizeOf([...span.pinned, ...span.unanswered])
  const typical = assumeTypicalCompactionSizes(
    context.prefixTokens,
    scaled.known ? scaled.lines.target : null,
  )
  // In a short session few files come back: at most about half as many tokens as are summarized.
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
