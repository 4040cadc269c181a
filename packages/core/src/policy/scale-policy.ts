/**
 * Thresholds and budgets for one model: the policy scaled to the model's context window.
 *
 * Each threshold is computed as an exact number and only then rounded down to a whole token. This way a larger context
 * window never gets a lower threshold.
 */
import { TidemarkError } from '../errors.ts'
import type { Policy } from './policy.ts'
import { formatErrorValue } from './policy-fields.ts'
import { findFeatureStates, NO_SWITCHES, type Switches } from './switches.ts'
import type { ContentSharePolicy, ThresholdPolicy, WindowCappedTokens } from './window-policy.ts'

/** Thresholds of the context size, in tokens. A threshold is reached when the context has at least that many tokens. */
export interface Thresholds {
  readonly window: number
  /** The effective window: the context window minus the tokens reserved for output. */
  readonly effective: number
  readonly autoCompact: number
  /** The limit of the context meter: the auto-compact threshold if automatic compaction is on, otherwise `effective`. */
  readonly limit: number
  readonly warning: number
  readonly error: number
  readonly blocking: number
  /** Size in tokens that the context should have after a compaction. */
  readonly target: number
}

export interface ThresholdInput {
  readonly window: number
  /** Maximum output tokens of the model; null or 0 if unknown. */
  readonly maxOutput: number | null
  readonly autoCompactOn: boolean
  /**
   * Auto-compact threshold as a percentage of `effective`; null uses the default. A percentage can only lower the
   * threshold.
   */
  readonly percentOfEffective: number | null
  /** Size that the context should have after a compaction, as a percentage of the auto-compact threshold. */
  readonly targetPercent: number
}

/** Computes the thresholds for one context window, in whole tokens. Does not check that the window is large enough for them. */
export function computeThresholds(ladder: ThresholdPolicy, question: ThresholdInput): Thresholds {
  const { window, maxOutput, autoCompactOn, percentOfEffective, targetPercent } = question
  const exactEffective = window - computeReserve(ladder, window, maxOutput)
  const effective = roundDownTokens(exactEffective)
  const blocking = roundDownTokens(exactEffective - scaleOffset(ladder.blocking, window))
  const byDefault = exactEffective - scaleOffset(ladder.autoCompact, window)
  const atPercent = (of: number): number => Math.min(byDefault, (of * (percentOfEffective ?? 100)) / 100)
  const autoCompact =
    percentOfEffective === null
      ? roundDownTokens(byDefault)
      : Math.max(1, roundDownTokens(atPercent(effective)))
  const target = roundDownTokens((autoCompact * targetPercent) / 100)
  const exactLimit = autoCompactOn ? atPercent(exactEffective) : exactEffective
  // The warning threshold is never below `target`. Otherwise a context that was just compacted would already be above
  // it.
  const warn = (offset: WindowCappedTokens): number => {
    const exact = exactLimit - scaleOffset(offset, window)
    return Math.min(autoCompactOn ? autoCompact : blocking, Math.max(target, roundDownTokens(exact)))
  }
  const limit = autoCompactOn ? autoCompact : effective
  const [warning, error] = [warn(ladder.warning), warn(ladder.error)]
  return { window, effective, autoCompact, limit, warning, error, blocking, target }
}

/** Largest context window tried when searching for the smallest allowed one. No valid policy needs a larger one. */
const LARGEST_WINDOW = 2 ** 50

/**
 * Returns the smallest context window, in tokens, that is large enough for the thresholds. The model's maximum output
 * counts, because tokens are reserved for it.
 */
export function computeSmallestWindow(ladder: ThresholdPolicy, maxOutput: number | null): number {
  let [tooSmall, enough] = [0, 1]
  while (enough < LARGEST_WINDOW && !isLargeEnough(ladder, enough, maxOutput))
    [tooSmall, enough] = [enough, enough * 2]
  while (enough - tooSmall > 1) {
    const middle = Math.floor((tooSmall + enough) / 2)
    if (isLargeEnough(ladder, middle, maxOutput)) enough = middle
    else tooSmall = middle
  }
  return enough
}

/**
 * Returns true if the context window leaves enough tokens for input and no two thresholds are equal. If it is true for
 * one size, it is true for every larger size.
 */
function isLargeEnough(ladder: ThresholdPolicy, window: number, maxOutput: number | null): boolean {
  const blocking = scaleOffset(ladder.blocking, window)
  const usable = roundDownTokens(window - computeReserve(ladder, window, maxOutput))
  const apart = blocking >= 1 && scaleOffset(ladder.autoCompact, window) - blocking >= 1
  return apart && usable >= ladder.minimumUsableTokens
}

function computeReserve(ladder: ThresholdPolicy, window: number, maxOutput: number | null): number {
  return scaleOffset({ ...ladder.reserve, tokens: findWantedReserve(ladder, maxOutput) }, window)
}

/** Returns the reserve before it is limited to its share of the window. */
function findWantedReserve({ reserve }: ThresholdPolicy, maxOutput: number | null): number {
  const { rule, tokens } = reserve
  if (rule === 'none') return 0
  const output = maxOutput || tokens
  return rule === 'larger' ? Math.max(output, tokens) : Math.min(output, tokens)
}

/**
 * Returns a notice for the user if the policy asks for the larger reserve and gets less, because that would take too
 * much of the window; otherwise null. The smaller reserve is made for windows of any size, so it needs no notice.
 */
export function describeCappedReserve(
  { ladder }: Policy,
  scaled: ScaledLimits,
  maxOutput: number | null,
): string | null {
  const wanted = findWantedReserve(ladder, maxOutput)
  if (ladder.reserve.rule !== 'larger' || !scaled.known || scaled.reserve >= wanted) return null
  return `ladder.reserve asks for ${wanted} tokens of the window of ${scaled.lines.window}; ${scaled.reserve} are reserved, because ladder.reserve.maximumPercent is ${ladder.reserve.maximumPercent}. Responses have at most that many tokens.`
}

function scaleOffset({ tokens, maximumPercent }: WindowCappedTokens, window: number): number {
  return Math.min(tokens, (window * maximumPercent) / 100)
}

// All limits of one model, computed from the policy.

/** What is known of a model's window and output. */
export interface ModelLimits {
  /** Size of the model's context window in tokens; null if unknown. */
  readonly window: number | null
  /** Maximum output tokens of the model; null or 0 if unknown. */
  readonly maxOutput: number | null
}

interface CommonLimits {
  readonly budgets: ContentBudgets
  /** Maximum number of images and documents in an API request. */
  readonly images: number
}

export interface KnownWindowLimits extends CommonLimits {
  readonly known: true
  /** The thresholds for this window. */
  readonly lines: Thresholds
  /** Tokens of the context window that are reserved for output. */
  readonly reserve: number
  /** Maximum output tokens of a summary request that does not share the conversation's cache. */
  readonly summaryOutput: number
  /** Number of input tokens at which the provider clears tool results itself (native clearing). */
  readonly nativeTrigger: number
}

/**
 * Limits if the context window is unknown. There are no thresholds, so nothing that depends on one starts
 * automatically. The policy's token budgets apply unchanged.
 */
interface UnknownWindowLimits extends CommonLimits {
  readonly known: false
  /** A sentence for the user that says why there are no thresholds. */
  readonly why: string
}

export type ScaledLimits = KnownWindowLimits | UnknownWindowLimits

const UNKNOWN_WINDOW =
  'The context window of this model is not known, so nothing can be compacted by itself and no warning given. Set window.givenTokens in the policy, or name a model whose window is known.'

/**
 * Scales the policy to a model's context window. Throws `bad-policy` if the window is too small; `details.minimum` is
 * the smallest allowed window.
 */
export function computeScaledLimits(
  policy: Policy,
  model: ModelLimits,
  switches: Switches = NO_SWITCHES,
): ScaledLimits {
  requireTokens('window', model.window, 1)
  requireTokens('maxOutput', model.maxOutput, 0)
  const stated = model.window ?? policy.window.givenTokens
  if (stated === null) {
    const budgets = computeContentBudgets(policy, null)
    return { known: false, why: UNKNOWN_WINDOW, budgets, images: policy.request.imagesInSmallWindow }
  }
  const window = Math.min(stated, policy.window.capTokens ?? stated)
  const maxOutput = model.maxOutput || policy.window.givenOutputTokens
  requireLargeEnough(policy, window, maxOutput)
  const lines = computeThresholds(policy.ladder, {
    window,
    maxOutput,
    autoCompactOn: findFeatureStates(policy, switches).auto.on,
    percentOfEffective: switches.autoCompactPercent ?? policy.ladder.autoCompact.percentOfEffective,
    targetPercent: policy.compact.target.percentOfAutoCompact,
  })
  return scaleToWindow(policy, lines, maxOutput)
}

function scaleToWindow(policy: Policy, lines: Thresholds, maxOutput: number | null): KnownWindowLimits {
  const { request, ladder, compact, clear } = policy
  const answerShare = roundDownTokens((lines.window * ladder.reserve.maximumPercent) / 100)
  return {
    known: true,
    lines,
    reserve: lines.window - lines.effective,
    budgets: computeContentBudgets(policy, lines),
    images: lines.window <= request.smallWindowTokens ? request.imagesInSmallWindow : request.images,
    summaryOutput: Math.min(compact.direct.outputTokens, maxOutput || answerShare, answerShare),
    nativeTrigger: Math.min(clear.native.triggerTokens, lines.warning),
  }
}

function requireTokens(what: 'window' | 'maxOutput', given: number | null, least: number): void {
  if (given === null || (Number.isSafeInteger(given) && given >= least)) return
  const expected = `a whole number of tokens of ${least} or more, or null where it is not known`
  throw new TidemarkError(
    'bad-policy',
    `The model's ${what} is ${formatErrorValue(given)}: expected ${expected}.`,
    {
      details: { path: what, given },
    },
  )
}

function requireLargeEnough({ ladder }: Policy, window: number, maxOutput: number | null): void {
  const minimum = computeSmallestWindow(ladder, maxOutput)
  if (window >= minimum) return
  throw new TidemarkError(
    'bad-policy',
    `A context window of ${window} tokens is too small: the smallest this policy works in is ${minimum}, which leaves ${ladder.minimumUsableTokens} for input. Use a model with a larger window, or lower ladder.minimumUsableTokens.`,
    { details: { path: 'window', given: window, minimum } },
  )
}

// Content budgets: the token budgets of the policy, each limited to a share of the context window.

/** Budget of each kind of content, in tokens unless the field name says otherwise. */
export interface ContentBudgets {
  readonly files: FileBudgets
  readonly skills: { readonly each: number; readonly total: number }
  /** Token budgets of each context source of the host: for one item, and for all items together. */
  readonly host: { readonly each: number; readonly total: number }
  readonly notes: {
    readonly section: number
    readonly decisions: number
    readonly total: number
    readonly start: number
    readonly growth: number
  }
  readonly keptMessages: { readonly minimum: number; readonly maximum: number }
  readonly clear: ClearBudgets
  /** Tokens of the reminder with memory files. */
  readonly ambient: number
  readonly ledger: { readonly files: number; readonly names: number }
  readonly hookOutputCharacters: number
  readonly spill: SpillBudgets
  readonly historyPage: number
  /** Tokens of all that a compaction brings back. Beside notes, system prompt and tools do not count (`limitBudgetsToRoom`). */
  readonly broughtBack: number
}

/** Token budgets of attached files: for one file of the first ranks, of the middle and of the last ones, and for all. */
interface FileBudgets {
  readonly each: number
  readonly middle: number
  readonly last: number
  readonly total: number
}

/**
 * Token budgets for one text of a tool result: the size above which it is stored as a blob, and the size of the head
 * and tail that are still shown.
 */
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

/**
 * Computes the content budgets. `lines` is null if the context window is unknown; the policy's budgets then apply
 * unchanged.
 */
export function computeContentBudgets(policy: Policy, lines: Thresholds | null): ContentBudgets {
  const share = createShareLookup(policy.shares, lines)
  const { rehydrate, ledger, memoryFiles, turn, estimate } = policy
  return {
    files: scaleFiles(rehydrate.files, share('files')),
    skills: limitBudget(rehydrate.skills, share('skills')),
    host: limitBudget(rehydrate.host, share('host')),
    notes: scaleNotes(policy, share),
    keptMessages: {
      minimum: Math.min(policy.notes.kept.minimumTokens, share('keptMessages')),
      maximum: Math.min(policy.notes.kept.maximumTokens, share('keptMessages')),
    },
    clear: scaleClearing(policy, Math.min(share('clearableResults'), computeLowWaterMark(lines))),
    ambient: Math.min(memoryFiles.reminderTokens, share('ambient')),
    ledger: {
      files: Math.min(ledger.filesTokens, share('ledger')),
      names: Math.min(ledger.namesTokens, share('ledger')),
    },
    hookOutputCharacters: Math.min(
      turn.hooks.outputCharacters,
      roundDownTokens(share('hookOutput') * estimate.charactersPerToken),
    ),
    spill: scaleSpill(policy, share('spill')),
    historyPage: Math.min(policy.history.pageTokens, share('spill')),
    broughtBack: lines?.target ?? Number.POSITIVE_INFINITY,
  }
}

type ShareLookup = (kind: keyof ContentSharePolicy) => number

/**
 * Creates a function that returns the maximum tokens for a kind of content. This is its percentage of the effective
 * window, limited to the size that the context should have after a compaction.
 */
function createShareLookup(policy: ContentSharePolicy, lines: Thresholds | null): ShareLookup {
  if (lines === null) return () => Number.POSITIVE_INFINITY
  return (kind) => Math.min(roundDownTokens((lines.effective * policy[kind]) / 100), lines.target)
}

/**
 * Returns half of the warning threshold. Clearing starts at the warning threshold and must end well below it; otherwise
 * it would soon start again.
 */
function computeLowWaterMark(lines: Thresholds | null): number {
  return lines === null ? Number.POSITIVE_INFINITY : roundDownTokens(lines.warning / 2)
}

function limitBudget(
  { eachTokens, totalTokens }: { readonly eachTokens: number; readonly totalTokens: number },
  share: number,
): { readonly each: number; readonly total: number } {
  const total = Math.min(totalTokens, share)
  return { each: Math.min(eachTokens, total), total }
}

/** Limits the budgets of attached files. No rank has more than the first ones, and none of the last more than the middle. */
function scaleFiles(files: Policy['rehydrate']['files'], share: number): FileBudgets {
  const total = Math.min(files.totalTokens, share)
  const each = Math.min(files.eachTokens, total)
  const middle = Math.min(files.middleTokens, each)
  return { each, middle, last: Math.min(files.lastTokens, middle), total }
}

/** Multiplies all budgets by `scale` and rounds them down. */
function shrinkTokens<Budgets extends { readonly [Name in keyof Budgets]: number }>(
  budgets: Budgets,
  scale: number,
): Budgets {
  const entries = Object.entries(budgets).map(([name, tokens]) => [
    name,
    roundDownTokens(Number(tokens) * scale),
  ])
  return Object.fromEntries(entries) as Budgets
}

/**
 * Parts of the tokens between system prompt and auto-compact threshold: for notes with the lists that are added to them
 * (`notes`), and for everything that a compaction brings back (`all`).
 */
const ROOM_SHARES = { notes: 1 / 6, all: 1 / 2 }

/**
 * Limits what a compaction brings back to half of the tokens between the prefix (system prompt and tools) and the
 * auto-compact threshold; the other half stays free for the work that follows. Notes come first, with the lists added to
 * them; kept messages and files share the rest in proportion to their budgets. The user's messages have their own share of
 * that half. Skills and what a host attaches are rare: they take nothing from files, and shrink in the same proportion.
 */
export function limitBudgetsToRoom(
  budgets: ContentBudgets,
  { autoCompact }: Thresholds,
  prefixTokens: number,
): ContentBudgets {
  const room = Math.max(0, autoCompact - prefixTokens)
  const { keptMessages, files, skills, host, notes } = budgets
  const text = sumNotesAndLedgerBudgets(budgets)
  const fitted = limitNotesBudgets(budgets, (notes.total * room * ROOM_SHARES.notes) / Math.max(1, text))
  const broughtBack = Math.min(budgets.broughtBack, roundDownTokens(room * ROOM_SHARES.all))
  const limited = { ...fitted, broughtBack }
  const rest = room * ROOM_SHARES.all - sumNotesAndLedgerBudgets(limited)
  const scale = Math.min(1, rest / Math.max(1, keptMessages.maximum + files.total))
  if (scale === 1) return limited
  return {
    ...limited,
    keptMessages: shrinkTokens(keptMessages, scale),
    files: shrinkTokens(files, scale),
    skills: shrinkTokens(skills, scale),
    host: shrinkTokens(host, scale),
  }
}

/** Returns the most tokens of notes together with the lists of files and names that are added to them. */
export function sumNotesAndLedgerBudgets({ notes, ledger }: ContentBudgets): number {
  return notes.total + ledger.files + ledger.names
}

/**
 * Limits the notes to so many tokens. The budgets of their parts, and of files and names that are added to them from the
 * log, shrink in proportion.
 */
export function limitNotesBudgets(budgets: ContentBudgets, tokens: number): ContentBudgets {
  const { notes, ledger } = budgets
  const { section, decisions, total } = notes
  if (total <= tokens) return budgets
  const scale = tokens / total
  const limited = shrinkTokens({ section, decisions, total }, scale)
  return {
    ...budgets,
    notes: { ...notes, ...limited },
    ledger: { ...ledger, ...shrinkTokens(ledger, scale) },
  }
}

/** Scales the budgets of session notes. Those of a section and of decisions shrink in proportion to that of the whole file. */
function scaleNotes({ notes }: Policy, share: ShareLookup): ContentBudgets['notes'] {
  const total = Math.min(notes.totalTokens, share('notes'))
  return {
    section: roundDownTokens((notes.sectionTokens * total) / notes.totalTokens),
    decisions: roundDownTokens((notes.decisionTokens * total) / notes.totalTokens),
    total,
    start: Math.min(notes.startTokens, share('keptMessages')),
    growth: Math.min(notes.growthTokens, share('keptMessages')),
  }
}

/** Scales the budgets of spilled tool results. The head and tail shrink in proportion to the threshold. */
function scaleSpill({ spill }: Policy, share: number): SpillBudgets {
  const threshold = Math.min(spill.thresholdTokens, share)
  const scale = (tokens: number): number => roundDownTokens((tokens * threshold) / spill.thresholdTokens)
  return { threshold, head: scale(spill.headTokens), tail: scale(spill.tailTokens) }
}

function scaleClearing(
  { clear: { idle, budget, native, largeInputTokens } }: Policy,
  share: number,
): ClearBudgets {
  return {
    idleMinimumFreed: Math.min(idle.minimumFreedTokens, share),
    target: Math.min(budget.targetTokens, share),
    minimumFreed: Math.min(budget.minimumFreedTokens, share),
    nativeKeep: Math.min(native.keepTokens, share),
    nativeClearAtLeast: Math.min(native.clearAtLeastTokens, share),
    largeInput: Math.min(largeInputTokens, share),
  }
}

/** Rounds down to whole tokens. A small tolerance corrects floating-point errors: 59,939.9999999 becomes 59,940. */
function roundDownTokens(exact: number): number {
  return Math.floor(exact + 1e-6)
}

/** The size of the context, and the thresholds that it has reached. */
export interface ReachedThresholds {
  readonly used: number
  /** Percentage of the context meter's limit that is still free: a whole number, at least 0. */
  readonly percentLeft: number
  readonly isAboveWarningThreshold: boolean
  readonly isAboveErrorThreshold: boolean
  /** True if automatic compaction is on and the context has reached the auto-compact threshold. */
  readonly isAboveAutoCompactThreshold: boolean
  readonly isAtBlockingLimit: boolean
}

/** Compares a context of `used` tokens with the thresholds. */
export function findReachedThresholds(lines: Thresholds, used: number): ReachedThresholds {
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
