/** Settings of the context window, of token estimates and of the size of requests: types, defaults and checks. */
import {
  booleanCheck,
  choiceCheck,
  decimalNumberCheck,
  type FieldSpecs,
  fieldSpec,
  nullableCheck,
  percentageCheck,
  wholeNumberCheck,
} from './policy-fields.ts'

// Settings of the context window: its size, its thresholds, and the share that each kind of content may take.

export interface WindowPolicy {
  /** Context window, in tokens, for a model that is not in the catalogue; null if it is unknown. */
  readonly givenTokens: number | null
  /** Maximum output tokens for a model that is not in the catalogue; null if unknown. */
  readonly givenOutputTokens: number | null
  /** Maximum tokens of the context window to use; null uses the whole window. */
  readonly capTokens: number | null
}

/** A number of tokens that is never more than `maximumPercent` of the context window. */
export interface WindowCappedTokens {
  readonly tokens: number
  readonly maximumPercent: number
}

interface ReservePolicy extends WindowCappedTokens {
  /**
   * Tokens to reserve for the output: the `smaller` or the `larger` of the model's maximum output and `tokens`. `none`
   * reserves nothing.
   */
  readonly rule: 'smaller' | 'larger' | 'none'
}

interface AutoCompactLinePolicy extends WindowCappedTokens {
  /**
   * Auto-compact threshold as a percentage of the effective window. Null uses the default threshold, and a percentage
   * can only lower it.
   */
  readonly percentOfEffective: number | null
}

export interface ThresholdPolicy {
  /** Tokens reserved for output. The context window minus this reserve is the effective window. */
  readonly reserve: ReservePolicy
  /** Automatic compaction starts when the context is within this many tokens of the effective window. */
  readonly autoCompact: AutoCompactLinePolicy
  /**
   * The warning threshold is this many tokens below the limit of the context meter. There the meter turns yellow, and
   * budget clearing and background summaries begin.
   */
  readonly warning: WindowCappedTokens
  /** The error threshold is this many tokens below the limit of the context meter. There the meter turns red. */
  readonly error: WindowCappedTokens
  /**
   * Without automatic compaction, a new prompt is refused when the context is within this many tokens of the effective
   * window.
   */
  readonly blocking: WindowCappedTokens
  /**
   * Minimum effective window in tokens. A model with a smaller one is refused, because a compacted context would not
   * fit: the headings of a summary (about 300 tokens), the unanswered message, and a few hundred tokens of content.
   */
  readonly minimumUsableTokens: number
}

/**
 * Maximum share of the effective window for each kind of content, as a percentage. A token budget elsewhere in the
 * policy is reduced to this share if it is larger.
 */
export interface ContentSharePolicy {
  readonly files: number
  readonly skills: number
  readonly notes: number
  /** Share for messages kept unchanged after session notes. Also limits the conversation size at which notes begin. */
  readonly keptMessages: number
  /** Share for the tool results that clearing keeps. Also limits the minimum number of tokens that a clearing must free. */
  readonly clearableResults: number
  /** Share for the reminder with memory files at the start of the conversation. */
  readonly ambient: number
  /** Share for the lists of files and identifiers that are added to a summary. */
  readonly ledger: number
  /** Share for the output of one hook. */
  readonly hookOutput: number
  /** Share for the content that one context source of the host re-attaches after a compaction. */
  readonly host: number
  /** Share for one text of a tool result; a longer text is stored as a blob. Also the share for one page of history. */
  readonly spill: number
}

const offsetFields = (tokens: number, maximumPercent: number, least = 0): FieldSpecs<WindowCappedTokens> => ({
  tokens: fieldSpec(tokens, wholeNumberCheck(least)),
  maximumPercent: fieldSpec(maximumPercent, percentageCheck()),
})

export const windowFields: FieldSpecs<WindowPolicy> = {
  givenTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  givenOutputTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
  capTokens: fieldSpec(null, nullableCheck(wholeNumberCheck(1))),
}

export const thresholdFields: FieldSpecs<ThresholdPolicy> = {
  reserve: {
    rule: fieldSpec('smaller', choiceCheck('smaller', 'larger', 'none')),
    ...offsetFields(20_000, 25, 1),
  },
  autoCompact: {
    ...offsetFields(13_000, 6.5, 1),
    percentOfEffective: fieldSpec(null, nullableCheck(percentageCheck(0.1, 100))),
  },
  warning: offsetFields(20_000, 10),
  error: offsetFields(20_000, 10),
  blocking: offsetFields(3_000, 1.5, 1),
  minimumUsableTokens: fieldSpec(2_000, wholeNumberCheck(100, 1_000_000)),
}

export const contentShareFields: FieldSpecs<ContentSharePolicy> = {
  files: fieldSpec(28, percentageCheck()),
  skills: fieldSpec(14, percentageCheck()),
  notes: fieldSpec(12, percentageCheck()),
  keptMessages: fieldSpec(23, percentageCheck()),
  clearableResults: fieldSpec(23, percentageCheck(0.1, 50)),
  ambient: fieldSpec(25, percentageCheck()),
  ledger: fieldSpec(5, percentageCheck()),
  hookOutput: fieldSpec(10, percentageCheck()),
  host: fieldSpec(6, percentageCheck()),
  spill: fieldSpec(10, percentageCheck()),
}

// Settings of token estimates, and limits of an API request in bytes and images.

export interface TokenEstimatePolicy {
  /**
   * Characters per token for a model without tokenizer weights in the catalogue. Used until calibration has measured
   * the ratio.
   */
  readonly charactersPerToken: number
  /** Estimated tokens of an image with unknown dimensions. */
  readonly imageTokens: number
  /** Minimum estimated tokens of a document. */
  readonly documentTokens: number
  /**
   * Safety factor: decisions use the expected tokens times this factor, rounded up, so that the context window is not
   * exceeded.
   */
  readonly highFactor: number
  /**
   * Calibrate estimates with the usage that responses report, and lower `highFactor` as the estimates become more
   * accurate.
   */
  readonly calibrate: boolean
  /** Smallest value to which calibration may lower `highFactor`. */
  readonly narrowestHighFactor: number
  /** For thinking whose text is hidden: estimated tokens per character of its signature. */
  readonly signatureTokensPerCharacter: number
  /** For thinking whose text is hidden: tokens to subtract from the estimate that is based on the signature length. */
  readonly signatureLessTokens: number
}

export interface RequestLimitsPolicy {
  /** Maximum bytes of an API request body. If it is larger, the oldest images are replaced by placeholders. */
  readonly bodyBytes: number
  /** Maximum number of images and documents in an API request. */
  readonly images: number
  /**
   * Maximum number of images and documents in an API request if the context window has at most `smallWindowTokens`, or
   * an unknown size.
   */
  readonly imagesInSmallWindow: number
  /** A context window of at most this many tokens counts as small. */
  readonly smallWindowTokens: number
}

export const tokenEstimateFields: FieldSpecs<TokenEstimatePolicy> = {
  charactersPerToken: fieldSpec(4, decimalNumberCheck(0.5, 20)),
  imageTokens: fieldSpec(2_000, wholeNumberCheck()),
  documentTokens: fieldSpec(2_000, wholeNumberCheck()),
  highFactor: fieldSpec(4 / 3, decimalNumberCheck(1, 10)),
  calibrate: fieldSpec(true, booleanCheck()),
  narrowestHighFactor: fieldSpec(1.05, decimalNumberCheck(1, 10)),
  signatureTokensPerCharacter: fieldSpec(0.205, decimalNumberCheck(0, 10)),
  signatureLessTokens: fieldSpec(38, wholeNumberCheck()),
}

export const requestLimitFields: FieldSpecs<RequestLimitsPolicy> = {
  bodyBytes: fieldSpec(32_000_000, wholeNumberCheck(1_000)),
  images: fieldSpec(600, wholeNumberCheck()),
  imagesInSmallWindow: fieldSpec(100, wholeNumberCheck()),
  smallWindowTokens: fieldSpec(200_000, wholeNumberCheck()),
}
