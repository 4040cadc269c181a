/**
 * Where the lines of the ladder lie in a given window. Each place is computed exactly and then rounded down to
 * a whole token: a line is never later than its place, and a larger window never has an earlier line. (Rounding
 * the distances instead would move a line back by a token wherever two of them step together.)
 */

import { TidemarkError } from '../errors.ts'
import type { LadderPolicy, OffsetPolicy, Policy, SharePolicy } from './policy.ts'
import { show } from './policy-fields.ts'
import { mechanismStates, NO_SWITCHES, type Switches } from './switches.ts'

export interface Lines {
  readonly window: number
  /** What input can fill: the window less the reserve. */
  readonly effective: number
  readonly autoCompact: number
  /** What the meter counts down to: the auto-compact line while that is on, else effective. */
  readonly limit: number
  readonly warning: number
  readonly error: number
  readonly blocking: number
  /** The size a compaction aims at. */
  readonly target: number
}

export interface LinesQuestion {
  readonly window: number
  /** Tokens of the longest answer; null or 0 where nobody states it. */
  readonly maxOutput: number | null
  readonly autoCompactOn: boolean
  /** Per cent of effective for the auto-compact line, never above its usual place; null for that place. */
  readonly percentOfEffective: number | null
  /** Per cent of the auto-compact line that a compaction aims at. */
  readonly targetPercent: number
}

export function placeLines(ladder: LadderPolicy, question: LinesQuestion): Lines {
  const { window, autoCompactOn } = question
  const exact = exactPlaces(ladder, question)
  const effective = wholeTokens(exact.effective)
  const blocking = wholeTokens(exact.blocking)
  const autoCompact = autoCompactLine(exact.usual, effective, question)
  const target = wholeTokens((autoCompact * question.targetPercent) / 100)
  // A view that was just compacted must not be over the line that prepares the next compaction.
  const limits = { least: target, most: autoCompactOn ? autoCompact : blocking }
  const warn = (offset: OffsetPolicy): number => clamp(exact.limit - distance(offset, window), limits)
  const limit = autoCompactOn ? autoCompact : effective
  const [warning, error] = [warn(ladder.warning), warn(ladder.error)]
  return { window, effective, autoCompact, limit, warning, error, blocking, target }
}

interface Places {
  readonly effective: number
  readonly blocking: number
  /** The auto-compact line without a percentage. */
  readonly usual: number
  readonly limit: number
}

function exactPlaces(ladder: LadderPolicy, question: LinesQuestion): Places {
  const { window, percentOfEffective } = question
  const effective = window - reserve(ladder, question)
  const usual = effective - distance(ladder.autoCompact, window)
  const blocking = effective - distance(ladder.blocking, window)
  const trigger = Math.min(usual, (effective * (percentOfEffective ?? 100)) / 100)
  return { effective, blocking, usual, limit: question.autoCompactOn ? trigger : effective }
}

function autoCompactLine(usual: number, effective: number, question: LinesQuestion): number {
  const { percentOfEffective } = question
  if (percentOfEffective === null) return wholeTokens(usual)
  return Math.max(1, wholeTokens(Math.min(usual, (effective * percentOfEffective) / 100)))
}

/** No ladder that passed its checks needs a larger window. */
const LARGEST = 2 ** 50

/** The same window may fit one model and not another: a longer answer leaves less to work in. */
export function smallestWindow(ladder: LadderPolicy, maxOutput: number | null): number {
  let [tooSmall, enough] = [0, 1]
  while (enough < LARGEST && !works(ladder, enough, maxOutput)) [tooSmall, enough] = [enough, enough * 2]
  while (enough - tooSmall > 1) {
    const middle = Math.floor((tooSmall + enough) / 2)
    if (works(ladder, middle, maxOutput)) enough = middle
    else tooSmall = middle
  }
  return enough
}

/** Enough room to work in, and no two lines on the same token. Once true it is true of every larger window. */
function works(ladder: LadderPolicy, window: number, maxOutput: number | null): boolean {
  const blocking = distance(ladder.blocking, window)
  const usable = wholeTokens(window - reserve(ladder, { window, maxOutput }))
  const apart = blocking >= 1 && distance(ladder.autoCompact, window) - blocking >= 1
  return apart && usable >= ladder.minimumUsableTokens
}

function reserve(
  ladder: LadderPolicy,
  { window, maxOutput }: Pick<LinesQuestion, 'window' | 'maxOutput'>,
): number {
  const { rule, tokens } = ladder.reserve
  if (rule === 'none') return 0
  const output = maxOutput || tokens
  const wanted = rule === 'larger' ? Math.max(output, tokens) : Math.min(output, tokens)
  return distance({ ...ladder.reserve, tokens: wanted }, window)
}

function distance({ tokens, maximumPercent }: OffsetPolicy, window: number): number {
  return Math.min(tokens, (window * maximumPercent) / 100)
}

function clamp(place: number, { least, most }: { readonly least: number; readonly most: number }): number {
  return Math.min(most, Math.max(least, wholeTokens(place)))
}

// The figures in force for one model: the policy seen through its window.

export interface ModelSize {
  /** Tokens; null where nobody states it. */
  readonly window: number | null
  /** Tokens of the longest answer; null or 0 where nobody states it. */
  readonly maxOutput: number | null
}

/** Distances in tokens between the lines. */
interface Offsets {
  /** From effective to the window. */
  readonly reserve: number
  /** From the auto-compact line to effective. */
  readonly autoCompact: number
  /** From the warning line to the limit. */
  readonly warning: number
  /** From the error line to the limit. */
  readonly error: number
  /** From the blocking line to effective. */
  readonly blocking: number
}

interface Figures {
  readonly budgets: Budgets
  /** Images and documents in a request. */
  readonly images: number
}

export interface KnownWindow extends Figures {
  readonly known: true
  readonly lines: Lines
  readonly offsets: Offsets
  /** Tokens a summary may take when asked for directly. */
  readonly summaryOutput: number
  /** Input tokens at which the provider is told to clear. */
  readonly nativeTrigger: number
}

/** No line can be drawn, and none is guessed: nothing that needs one starts by itself. Budgets are unscaled. */
interface UnknownWindow extends Figures {
  readonly known: false
  /** A sentence for the person. */
  readonly why: string
}

export type ScaledPolicy = KnownWindow | UnknownWindow

const UNKNOWN =
  'The context window of this model is not known, so nothing can be compacted by itself and no warning given. Set window.givenTokens in the policy, or name a model whose window is known.'

/** Throws `bad-policy` for a window too small to work in, with the smallest one as `details.minimum`. */
export function scalePolicy(
  policy: Policy,
  model: ModelSize,
  switches: Switches = NO_SWITCHES,
): ScaledPolicy {
  requireTokens('window', model.window, 1)
  requireTokens('maxOutput', model.maxOutput, 0)
  const stated = model.window ?? policy.window.givenTokens
  if (stated === null) return unknownWindow(policy)
  const window = Math.min(stated, policy.window.capTokens ?? stated)
  const maxOutput = model.maxOutput || policy.window.givenOutputTokens
  requireRoom(policy, window, maxOutput)
  return knownWindow(policy, linesOf(policy, { window, maxOutput }, switches), maxOutput)
}

function unknownWindow(policy: Policy): UnknownWindow {
  const budgets = budgetsFor(policy, null)
  return { known: false, why: UNKNOWN, budgets, images: policy.request.imagesInSmallWindow }
}

function linesOf(
  policy: Policy,
  model: { readonly window: number; readonly maxOutput: number | null },
  switches: Switches,
): Lines {
  return placeLines(policy.ladder, {
    ...model,
    autoCompactOn: mechanismStates(policy, switches).auto.on,
    percentOfEffective: switches.autoCompactPercent ?? policy.ladder.autoCompact.percentOfEffective,
    targetPercent: policy.compact.target.percentOfAutoCompact,
  })
}

function knownWindow(policy: Policy, lines: Lines, maxOutput: number | null): KnownWindow {
  const { request, ladder, compact, clear } = policy
  const answerShare = wholeTokens((lines.window * ladder.reserve.maximumPercent) / 100)
  return {
    known: true,
    lines,
    offsets: offsetsOf(lines),
    budgets: budgetsFor(policy, lines),
    images: lines.window <= request.smallWindowTokens ? request.imagesInSmallWindow : request.images,
    summaryOutput: Math.min(compact.direct.outputTokens, maxOutput || answerShare, answerShare),
    nativeTrigger: Math.min(clear.native.triggerTokens, lines.warning),
  }
}

function offsetsOf({ window, effective, autoCompact, limit, warning, error, blocking }: Lines): Offsets {
  return {
    reserve: window - effective,
    autoCompact: effective - autoCompact,
    warning: limit - warning,
    error: limit - error,
    blocking: effective - blocking,
  }
}

function requireTokens(what: 'window' | 'maxOutput', given: number | null, least: number): void {
  if (given === null || (Number.isSafeInteger(given) && given >= least)) return
  const expected = `a whole number of tokens of ${least} or more, or null where it is not known`
  throw new TidemarkError('bad-policy', `The model's ${what} is ${show(given)}: expected ${expected}.`, {
    details: { path: what, given },
  })
}

function requireRoom({ ladder }: Policy, window: number, maxOutput: number | null): void {
  const minimum = smallestWindow(ladder, maxOutput)
  if (window >= minimum) return
  throw new TidemarkError(
    'bad-policy',
    `A context window of ${window} tokens is too small: the smallest this policy works in is ${minimum}, which leaves ${ladder.minimumUsableTokens} for input. Use a model with a larger window, or lower ladder.minimumUsableTokens.`,
    { details: { path: 'window', given: window, minimum } },
  )
}

// How much of each kind of content a model's window bears: the policy's figures, shrunk to their shares.

/** In tokens, unless the name says otherwise. */
export interface Budgets {
  readonly files: { readonly each: number; readonly total: number }
  readonly skills: { readonly each: number; readonly total: number }
  /** Of one carrier of the host's own. */
  readonly host: { readonly each: number; readonly total: number }
  readonly notes: {
    readonly section: number
    readonly total: number
    readonly start: number
    readonly growth: number
  }
  readonly keptMessages: { readonly minimum: number; readonly maximum: number }
  readonly clear: ClearBudgets
  readonly ambient: number
  readonly userMessages: { readonly each: number; readonly total: number }
  readonly ledger: { readonly files: number; readonly names: number }
  readonly hookOutputCharacters: number
  readonly spill: SpillBudgets
  readonly historyPage: number
}

/** Of one text of a tool result: where it is put aside, and how much of it is then shown. */
export interface SpillBudgets {
  readonly threshold: number
  readonly head: number
  readonly tail: number
}

interface ClearBudgets {
  readonly idleMinimumFreed: number
  readonly target: number
  readonly minimumFreed: number
  readonly nativeKeep: number
  readonly nativeClearAtLeast: number
  readonly largeInput: number
}

/** `lines` is null where the window is not known: the policy's figures then stand as they are. */
export function budgetsFor(policy: Policy, lines: Lines | null): Budgets {
  const share = shares(policy.shares, lines)
  const { rehydrate, ledger, memoryFiles, turn, estimate } = policy
  return {
    files: capped(rehydrate.files, share('files')),
    skills: capped(rehydrate.skills, share('skills')),
    host: capped(rehydrate.host, share('host')),
    notes: notes(policy, share),
    keptMessages: kept(policy, share('keptMessages')),
    clear: clear(policy, Math.min(share('clearableResults'), lowWater(lines))),
    ambient: Math.min(memoryFiles.reminderTokens, share('ambient')),
    userMessages: capped(
      { eachTokens: ledger.userMessageTokens, totalTokens: ledger.userMessagesTokens },
      share('userMessages'),
    ),
    ledger: {
      files: Math.min(ledger.filesTokens, share('ledger')),
      names: Math.min(ledger.namesTokens, share('ledger')),
    },
    hookOutputCharacters: Math.min(
      turn.hooks.outputCharacters,
      wholeTokens(share('hookOutput') * estimate.charactersPerToken),
    ),
    spill: spill(policy, share('spill')),
    historyPage: Math.min(policy.history.pageTokens, share('spill')),
  }
}

type Share = (kind: keyof SharePolicy) => number

/** Its share of effective, and never more than a whole compaction aims at (a low auto-compact line sees to that). */
function shares(policy: SharePolicy, lines: Lines | null): Share {
  if (lines === null) return () => Number.POSITIVE_INFINITY
  return (kind) => Math.min(wholeTokens((lines.effective * policy[kind]) / 100), lines.target)
}

/** Clearing starts at the warning line and must end well below it, or it would start again at once. */
function lowWater(lines: Lines | null): number {
  return lines === null ? Number.POSITIVE_INFINITY : wholeTokens(lines.warning / 2)
}

function capped(
  { eachTokens, totalTokens }: { readonly eachTokens: number; readonly totalTokens: number },
  share: number,
): { readonly each: number; readonly total: number } {
  const total = Math.min(totalTokens, share)
  return { each: Math.min(eachTokens, total), total }
}

/** A section shrinks as the whole does: ten sections that may each fill the file would be ten times too much. */
function notes({ notes: policy }: Policy, share: Share): Budgets['notes'] {
  const total = Math.min(policy.totalTokens, share('notes'))
  return {
    section: wholeTokens((policy.sectionTokens * total) / policy.totalTokens),
    total,
    start: Math.min(policy.startTokens, share('keptMessages')),
    growth: Math.min(policy.growthTokens, share('keptMessages')),
  }
}

function kept({ notes: { kept: policy } }: Policy, share: number): Budgets['keptMessages'] {
  return { minimum: Math.min(policy.minimumTokens, share), maximum: Math.min(policy.maximumTokens, share) }
}

/** What is shown shrinks as the threshold does. */
function spill({ spill: policy }: Policy, share: number): SpillBudgets {
  const threshold = Math.min(policy.thresholdTokens, share)
  const shown = (tokens: number): number => wholeTokens((tokens * threshold) / policy.thresholdTokens)
  return { threshold, head: shown(policy.headTokens), tail: shown(policy.tailTokens) }
}

function clear({ clear: { idle, budget, native, largeInputTokens } }: Policy, share: number): ClearBudgets {
  return {
    idleMinimumFreed: Math.min(idle.minimumFreedTokens, share),
    target: Math.min(budget.targetTokens, share),
    minimumFreed: Math.min(budget.minimumFreedTokens, share),
    nativeKeep: Math.min(native.keepTokens, share),
    nativeClearAtLeast: Math.min(native.clearAtLeastTokens, share),
    largeInput: Math.min(largeInputTokens, share),
  }
}

/** Rounds down, but not past the noise of binary fractions: 180,000 × 33.3% is 59,940 and not 59,939.999… */
function wholeTokens(exact: number): number {
  return Math.floor(exact + 1e-6)
}

// Where a conversation stands on the ladder of lines. A line is reached at, not above, its place.

export interface LadderState {
  readonly used: number
  /** Per cent of the limit that is left, whole, never below 0. */
  readonly percentLeft: number
  readonly isAboveWarningThreshold: boolean
  readonly isAboveErrorThreshold: boolean
  /** Only where auto-compaction is on. */
  readonly isAboveAutoCompactThreshold: boolean
  readonly isAtBlockingLimit: boolean
}

export function standOn(lines: Lines, used: number): LadderState {
  const autoCompactOn = lines.limit === lines.autoCompact
  return {
    used,
    percentLeft: Math.max(0, Math.round(((lines.limit - used) / lines.limit) * 100)),
    isAboveWarningThreshold: used >= lines.warning,
    isAboveErrorThreshold: used >= lines.error,
    isAboveAutoCompactThreshold: autoCompactOn && used >= lines.autoCompact,
    isAtBlockingLimit: used >= lines.blocking,
  }
}
