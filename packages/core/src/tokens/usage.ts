/**
 * Reads the `usage` of a response: the size of the context that was sent, and the tokens that are billed. Also
 * calibrates token estimates by comparing them with reported usage.
 */
import { isObject } from '../log/json.ts'
import { isUsage, type Usage } from '../log/record.ts'
import type { TokenEstimatePolicy } from '../policy/window-policy.ts'
import type { CalibrationStart } from './estimator.ts'

type UsageFields = { readonly [field: string]: unknown }

/**
 * Returns the size in tokens of the context that was sent. Cached tokens count, because they fill the context window
 * too. Returns 0 if the usage does not report the size.
 */
export function countContextTokens(usage: Usage | null | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = findLastMessage(usage)
  return (
    toTokenCount(input_tokens) +
    toTokenCount(cache_creation_input_tokens) +
    toTokenCount(cache_read_input_tokens)
  )
}

export function countOutputTokens(usage: Usage | null | undefined): number {
  return toTokenCount(findLastMessage(usage).output_tokens)
}

/**
 * Returns the part of the usage that reports the size of the context. If the provider lists iterations of the model
 * call, that is the last iteration of type `message`; if there is no such iteration, the size is not reported.
 */
function findLastMessage(usage: Usage | null | undefined): UsageFields {
  const listed = usage ? listIterations(usage) : []
  return listed.length === 0 ? (usage ?? {}) : (listed.findLast(({ type }) => type === 'message') ?? {})
}

/** Returns the iterations of the model call that the provider lists; empty if it lists none. */
export function listIterations(usage: Usage): readonly UsageFields[] {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  return listed.filter(isObject)
}

/** Returns a token count as a number. Returns 0 for a value that cannot be a count, because a log may contain any value. */
export function toTokenCount(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// The totals in a response's usage do not include server-side compaction. If the provider lists the iterations of the
// model call, the billed tokens are the sum over the iterations, and the totals are ignored.

export const PRICE_CLASSES = ['input', 'cacheRead', 'write5m', 'write1h', 'output'] as const
export type PriceClass = (typeof PRICE_CLASSES)[number]
export type ByPriceClass<T> = { readonly [Class in PriceClass]: T }
export type TokensByClass = ByPriceClass<number>

/** The tokens billed for one iteration of a model call. */
export interface BilledPart {
  readonly tokens: TokensByClass
  /** The model that ran the iteration; null if the provider does not name one. */
  readonly model: string | null
  /** True if an advisor or fallback model ran the iteration instead of the requested model. */
  readonly isForeign: boolean
  readonly assumed: readonly string[]
}

const WRITES_AS_5M_ASSUMED = 'cache writes without a lifetime are counted as 5-minute writes'
const OUTPUT_ASSUMED = 'the output of responses that broke off is estimated from what arrived'

export function listBilledParts(usage: Usage): readonly BilledPart[] {
  const iterations = listIterations(usage)
  return iterations.length === 0 ? [toBilledPart(usage)] : iterations.map(toBilledPart)
}

function toBilledPart(fields: UsageFields): BilledPart {
  const { model, type } = fields
  const split = isObject(fields.cache_creation) ? fields.cache_creation : {}
  const write5m = toTokenCount(split.ephemeral_5m_input_tokens)
  const write1h = toTokenCount(split.ephemeral_1h_input_tokens)
  const unsplit = Math.max(0, toTokenCount(fields.cache_creation_input_tokens) - write5m - write1h)
  return {
    tokens: {
      input: toTokenCount(fields.input_tokens),
      cacheRead: toTokenCount(fields.cache_read_input_tokens),
      write5m: write5m + unsplit,
      write1h,
      output: toTokenCount(fields.output_tokens),
    },
    model: typeof model === 'string' ? model : null,
    isForeign: typeof type === 'string' && type !== 'message' && type !== 'compaction',
    assumed: [
      ...(unsplit === 0 ? [] : [WRITES_AS_5M_ASSUMED]),
      ...(fields.output_tokens_estimated === true ? [OUTPUT_ASSUMED] : []),
    ],
  }
}

/** True if a usage bills nothing: that of a response which a client repeats. */
export function isNothingBilled(usage: unknown): boolean {
  return (
    isUsage(usage) &&
    listBilledParts(usage).every(({ tokens }) => PRICE_CLASSES.every((name) => tokens[name] === 0))
  )
}

/**
 * Returns the usage of a response that broke off. The provider bills the output up to there, but reports it only at the
 * end: at the start, the usage has the prompt and a placeholder for the output. `output`: estimate of what arrived.
 */
export function withEstimatedOutput(usage: Usage, output: number): Usage {
  if (listIterations(usage).length > 0 || output <= usage.output_tokens) return usage
  return { ...usage, output_tokens: output, output_tokens_estimated: true }
}

// Calibration learns one scale and one offset. It compares the growth of the context that the provider reports after
// each model call with the estimated growth. Learning more parameters made the estimates worse.

/**
 * A token estimate. `expected` is shown to the user and reported; `high` adds a safety margin for decisions. Both are
 * integers.
 */
export interface TokenEstimate {
  readonly expected: number
  readonly high: number
}

/**
 * The size of the context. `source` says if the size was reported by the provider, estimated, or partly reported and
 * partly estimated.
 */
export interface ContextTokens extends TokenEstimate {
  readonly source: 'measured' | 'estimated' | 'both'
}

export interface Calibration {
  readonly start: CalibrationStart
  readonly observations: number
  /**
   * Sums of estimated and of reported tokens; their ratio is the scale. Both begin as if `start.weight` tokens had
   * already been observed at the starting scale.
   */
  readonly estimated: number
  readonly reported: number
  readonly offset: number
  /** Sum of the absolute estimation errors in tokens, and sum of the reported tokens, over all observations. */
  readonly errorTokens: number
  readonly observedTokens: number
}

/**
 * The growth of the context by one model call, in tokens: as estimated before calibration, and as the provider reported
 * it.
 */
export interface GrowthObservation {
  readonly estimated: number
  readonly reported: number
}

export function startCalibration(start: CalibrationStart): Calibration {
  const { scale, offset, weight } = start
  return {
    start,
    observations: 0,
    estimated: weight,
    reported: weight * scale,
    offset,
    errorTokens: 0,
    observedTokens: 0,
  }
}

/**
 * Converts a calibration to another model, whose calibration starts at `start`. The scale keeps its ratio to the
 * starting scale, because the content of a session differs from the average in much the same way for every tokenizer.
 */
export function convertCalibration(calibration: Calibration, start: CalibrationStart): Calibration {
  const before = calibration.start
  return {
    ...calibration,
    start,
    reported: (calibration.reported * start.scale) / before.scale,
    offset: calibration.offset - before.offset + start.offset,
  }
}

/**
 * Largest error of one observation that counts for the safety margin: the larger of `tokens` and `share` of the
 * estimate. Larger errors mostly come from content that is not in the log.
 */
const CREDIBLE_ERROR = { tokens: 1_000, share: 0.5 }
/**
 * Limits on learning the scale. `share`: the largest error taken from one observation, as a share of its estimate; a
 * larger one comes from content that is not in the log. `least`, `most`: bounds of the learned scale, as multiples of
 * the starting scale.
 */
const SCALE_LIMITS = { share: 1, least: 0.5, most: 2 }
/**
 * Limits on learning the offset. `upTo`: observations with more estimated tokens are not used, because their error is
 * due to the scale. `weight`: number of observations that the starting offset counts as. `memory`: number of newest
 * observations averaged over. `error`: largest error, in tokens, taken from one observation.
 */
const OFFSET_LIMITS = { upTo: 1_000, weight: 20, memory: 50, error: 30 }

/**
 * Updates the calibration with one observation. If the context did not grow, content was also removed, so the
 * observation is ignored.
 */
export function addGrowthObservation(
  calibration: Calibration,
  { estimated, reported }: GrowthObservation,
): Calibration {
  if (!isPositive(estimated) || !isPositive(reported)) return calibration
  const { start, offset, observations } = calibration
  const scaled = readCalibrationScale(calibration) * estimated
  const error = reported - scaled - offset
  const credible = Math.max(CREDIBLE_ERROR.tokens, CREDIBLE_ERROR.share * estimated)
  const sum = calibration.estimated + estimated
  const asStarted = start.scale * sum
  const learned = calibration.reported + (scaled + clampTo(error, SCALE_LIMITS.share * estimated))
  const step =
    clampTo(error, OFFSET_LIMITS.error) /
    Math.min(OFFSET_LIMITS.weight + observations + 1, OFFSET_LIMITS.memory)
  return {
    start,
    estimated: sum,
    reported: Math.min(SCALE_LIMITS.most * asStarted, Math.max(SCALE_LIMITS.least * asStarted, learned)),
    observations: observations + 1,
    offset: estimated > OFFSET_LIMITS.upTo ? offset : offset + step,
    errorTokens: calibration.errorTokens + Math.abs(clampTo(error, credible)),
    observedTokens: calibration.observedTokens + reported,
  }
}

function isPositive(value: number): boolean {
  return value > 0 && Number.isFinite(value)
}

export function readCalibrationScale({ estimated, reported }: Calibration): number {
  return reported / estimated
}

/** Returns the calibrated size of content whose uncalibrated estimate is `tokens`. */
export function calibrateSize(
  calibration: Calibration,
  tokens: number,
  policy: TokenEstimatePolicy,
): TokenEstimate {
  return toEstimate(readCalibrationScale(calibration) * tokens, computeSafetyFactor(calibration, policy))
}

/** Returns the lower bound of a size: as far below the expected size as the upper bound is above it. */
export function readLowerBound({ expected, high }: TokenEstimate): number {
  return 2 * expected - high
}

/** Returns the calibrated growth of the context by one model call. `tokens` is the uncalibrated estimate for its blocks. */
export function calibrateGrowth(
  calibration: Calibration,
  tokens: number,
  policy: TokenEstimatePolicy,
): TokenEstimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = readCalibrationScale(calibration) * tokens + calibration.offset
  return toEstimate(Math.max(1, grown), computeSafetyFactor(calibration, policy))
}

/**
 * `weight`: number of observed tokens that the starting safety margin counts as. `errors`: the learned margin is this
 * many times the mean error.
 */
const MARGIN_LIMITS = { weight: 20_000, errors: 3 }

/**
 * Returns the factor by which the high estimate exceeds the expected one. It starts at `policy.highFactor` and gets
 * smaller if the observed errors are small.
 */
export function computeSafetyFactor(calibration: Calibration, policy: TokenEstimatePolicy): number {
  if (!policy.calibrate) return policy.highFactor
  const { errorTokens, observedTokens } = calibration
  const margin =
    (MARGIN_LIMITS.weight * (policy.highFactor - 1) + MARGIN_LIMITS.errors * errorTokens) /
    (MARGIN_LIMITS.weight + observedTokens)
  const narrowest = Math.min(policy.narrowestHighFactor, policy.highFactor)
  return Math.min(policy.highFactor, Math.max(narrowest, 1 + margin))
}

/** Tolerance for floating-point errors, subtracted before rounding up: 4.0000000001 becomes 4, not 5. */
const ROUNDING_TOLERANCE = 1e-6

function toEstimate(tokens: number, factor: number): TokenEstimate {
  const expected = Math.max(0, Math.round(tokens))
  return { expected, high: Math.max(expected, Math.ceil(expected * factor - ROUNDING_TOLERANCE)) }
}

function clampTo(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value))
}
