/** The figures in force for one model: the policy seen through its window. */
import { TidemarkError } from '../errors.ts'
import { type Budgets, budgetsFor } from './budgets.ts'
import { type Lines, placeLines, smallestWindow } from './lines.ts'
import { mechanismStates } from './mechanisms.ts'
import type { Policy } from './policy.ts'
import { show } from './show.ts'
import { NO_SWITCHES, type Switches } from './switches.ts'
import { wholeTokens } from './whole-tokens.ts'

export interface ModelSize {
  /** Tokens; null where nobody states it. */
  readonly window: number | null
  /** Tokens of the longest answer; null or 0 where nobody states it. */
  readonly maxOutput: number | null
}

/** Distances in tokens between the lines. */
export interface Offsets {
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
export interface UnknownWindow extends Figures {
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
