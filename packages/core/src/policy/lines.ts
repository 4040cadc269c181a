/**
 * Where the lines of the ladder lie in a given window. Each place is computed exactly and then rounded down to
 * a whole token: a line is never later than its place, and a larger window never has an earlier line. (Rounding
 * the distances instead would move a line back by a token wherever two of them step together.)
 */
import type { LadderPolicy, OffsetPolicy } from './groups/ladder-policy.ts'
import { wholeTokens } from './whole-tokens.ts'

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
