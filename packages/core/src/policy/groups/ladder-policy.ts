/** The window, the lines drawn in it, and the share of it that each kind of content may take. */
import { count, oneOf, orNull, percent } from '../check.ts'
import { type Fields, field } from '../field.ts'

export interface WindowPolicy {
  /** Tokens. The person's own figure for a model whose window nobody states; null leaves it unknown. */
  readonly givenTokens: number | null
  /** Tokens. The same for the longest answer of a model. */
  readonly givenOutputTokens: number | null
  /** Tokens. Use no more of the window than this, however large it is; null uses all of it. */
  readonly capTokens: number | null
}

/** A distance in tokens that shrinks on small windows to `maximumPercent` of the window. */
export interface OffsetPolicy {
  readonly tokens: number
  readonly maximumPercent: number
}

export interface ReservePolicy extends OffsetPolicy {
  /**
   * Room for the answer: the `smaller` of the model's longest answer and `tokens`, the `larger` of the two,
   * or `none` (lines are then counted from the whole window).
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

export interface AutoCompactLinePolicy extends OffsetPolicy {
  /** Draw the line at this per cent of effective instead, never above the usual place; null draws the usual one. */
  readonly percentOfEffective: number | null
}

export interface LadderPolicy {
  /** Below the window: what is left is `effective`. */
  readonly reserve: ReservePolicy
  /** Below effective: compaction starts by itself. */
  readonly autoCompact: AutoCompactLinePolicy
  /** Below the limit: shown yellow; clearing by budget and background summaries begin. */
  readonly warning: OffsetPolicy
  /** Below the limit: shown red. */
  readonly error: OffsetPolicy
  /** Below effective: a new message is refused where nothing can compact by itself. */
  readonly blocking: OffsetPolicy
  /**
   * Tokens of effective below which a model is refused. Half of the auto-compact line must hold the frame of
   * a summary with its headings (some 300), the message not yet answered, and a few hundred tokens of matter.
   */
  readonly minimumUsableTokens: number
}

/** Per cent of effective that a kind of content may take; larger figures elsewhere shrink to it. */
export interface SharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Messages kept verbatim behind notes, and the conversation's size at which notes begin. */
  readonly keptMessages: number
  /** Results that clearing leaves, and the least that a clearing frees. */
  readonly clearableResults: number
  /** The reminder in front of the conversation. */
  readonly ambient: number
  /** User messages put back into a summary. */
  readonly userMessages: number
  /** Files and names put back into a summary. */
  readonly ledger: number
  /** What one hook adds. */
  readonly hookOutput: number
  /** What one carrier of the host's own brings back. */
  readonly host: number
  /** A text of a tool result, before it is put aside, and a page of history. */
  readonly spill: number
}

const offset = (tokens: number, maximumPercent: number, least = 0): Fields<OffsetPolicy> => ({
  tokens: field(tokens, count(least)),
  maximumPercent: field(maximumPercent, percent()),
})

export const windowFields: Fields<WindowPolicy> = {
  givenTokens: field(null, orNull(count(1))),
  givenOutputTokens: field(null, orNull(count(1))),
  capTokens: field(null, orNull(count(1))),
}

export const ladderFields: Fields<LadderPolicy> = {
  reserve: { rule: field('smaller', oneOf('smaller', 'larger', 'none')), ...offset(20_000, 25, 1) },
  autoCompact: { ...offset(13_000, 6.5, 1), percentOfEffective: field(null, orNull(percent(0.1, 100))) },
  warning: offset(20_000, 10),
  error: offset(20_000, 10),
  blocking: offset(3_000, 1.5, 1),
  minimumUsableTokens: field(2_000, count(100, 1_000_000)),
}

export const shareFields: Fields<SharePolicy> = {
  files: field(25, percent()),
  skills: field(12, percent()),
  notes: field(12, percent()),
  keptMessages: field(20, percent()),
  clearableResults: field(20, percent(0.1, 50)),
  ambient: field(25, percent()),
  userMessages: field(17, percent()),
  ledger: field(5, percent()),
  hookOutput: field(10, percent()),
  host: field(6, percent()),
  spill: field(10, percent()),
}
