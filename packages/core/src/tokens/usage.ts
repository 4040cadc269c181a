/**
 * Reads the `usage` of a response: the size of its context, and the tokens that are billed. Also calibrates token
 * estimates by comparing them with reported usage.
 */
import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import type { TokenEstimatePolicy } from '../policy/policy.ts'
import type { CalibrationStart } from './estimator.ts'

type UsageFields = { readonly [field: string]: unknown }

/**
 * Returns the tokens of the context that was sent, including cached tokens, which fill the context window too. Returns
 * 0 if the usage has no measurement.
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
 * Returns the usage that measured the current context. If the provider lists iterations of the model call, that is the
 * last one of type `message`; without one, the usage measured no context.
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

/** Returns a token count as a number; 0 for any value that cannot be a count, since a log may hold any value. */
export function toTokenCount(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// The totals in a response's usage leave out the cost of server-side compaction. If the provider lists iterations, the
// billed tokens are the sum over the iterations and the totals are ignored.

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
    assumed: unsplit === 0 ? [] : [WRITES_AS_5M_ASSUMED],
  }
}

// Calibration learns one scale and one offset by comparing the reported growth of the context from call to call with
// its estimate. Learning more parameters from one session made the estimates worse.

/** A token estimate: `expected` for display and reports, `high` for decisions. Both are integers. */
export interface TokenEstimate {
  readonly expected: number
  readonly high: number
}

/** The size of the context. `source` tells if the provider reported the size, if it was estimated, or both in part. */
export interface ContextTokens extends TokenEstimate {
  readonly source: 'measured' | 'estimated' | 'both'
}

export interface Calibration {
  readonly start: CalibrationStart
  readonly observations: number
  /** Sums of estimated and reported tokens. The starting scale counts as an observation of `start.weight` tokens. */
  readonly estimated: number
  readonly reported: number
  readonly offset: number
  /** Sums over all observations: the absolute errors in tokens, and the reported tokens. */
  readonly errorTokens: number
  readonly observedTokens: number
}

/**
 * The tokens that one model call was estimated to add to the context, uncalibrated, and the tokens that the provider
 * reported.
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
 * Errors larger than this, in tokens or as a share of the estimate, are capped: they come mostly from content that the
 * log does not show.
 */
const CREDIBLE_ERROR = { tokens: 1_000, share: 0.5 }
/**
 * Limits on learning the scale. `share`: the largest error taken from one observation, relative to its estimate,
 * because a small call with a large error contains unlogged content. `least` and `most`: bounds relative to the
 * starting scale.
 */
const SCALE_LIMITS = { share: 1, least: 0.5, most: 2 }
/**
 * Limits on learning the offset. `upTo`: only calls up to this many tokens count, because the error of larger ones
 * belongs to the scale. `weight`: number of calls that the starting offset counts for. `memory`: number of calls
 * averaged over. `error`: the largest error taken from one call.
 */
const OFFSET_LIMITS = { upTo: 1_000, weight: 20, memory: 50, error: 30 }

/**
 * Updates the calibration with one observation. Ignores a model call after which the context did not grow, because
 * content was removed as well.
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
  return toEstimate(readCalibrationScale(calibration) * tokens, computeHighFactor(calibration, policy))
}

/** Returns the calibrated growth of the context by one model call whose blocks have an uncalibrated estimate of `tokens`. */
export function calibrateGrowth(
  calibration: Calibration,
  tokens: number,
  policy: TokenEstimatePolicy,
): TokenEstimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = readCalibrationScale(calibration) * tokens + calibration.offset
  return toEstimate(Math.max(1, grown), computeHighFactor(calibration, policy))
}

/** Tokens that the starting margin counts for, and the number of mean errors that a learned margin covers. */
const MARGIN_LIMITS = { weight: 20_000, errors: 3 }

/**
 * Returns the factor from the expected to the high estimate: `policy.highFactor`, narrowed as far as the observed
 * errors allow.
 */
export function computeHighFactor(calibration: Calibration, policy: TokenEstimatePolicy): number {
  if (!policy.calibrate) return policy.highFactor
  const { errorTokens, observedTokens } = calibration
  const margin =
    (MARGIN_LIMITS.weight * (policy.highFactor - 1) + MARGIN_LIMITS.errors * errorTokens) /
    (MARGIN_LIMITS.weight + observedTokens)
  const narrowest = Math.min(policy.narrowestHighFactor, policy.highFactor)
  return Math.min(policy.highFactor, Math.max(narrowest, 1 + margin))
}

/** Tolerance subtracted before rounding up, so that 3 × 4/3 gives 4 despite binary fractions. */
const ROUNDING_TOLERANCE = 1e-6

function toEstimate(tokens: number, factor: number): TokenEstimate {
  const expected = Math.max(0, Math.round(tokens))
  return { expected, high: Math.max(expected, Math.ceil(expected * factor - ROUNDING_TOLERANCE)) }
}

function clampTo(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value))
}
