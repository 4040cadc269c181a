/**
 * What a response's `usage` tells: the size of its context, the tokens it is billed for, and how far our estimates
 * were off (the calibration of a session).
 */
import { isObject } from '../log/json.ts'
import type { Usage } from '../log/record.ts'
import type { EstimatePolicy } from '../policy/policy.ts'
import type { CalibrationStart } from './estimator.ts'

type UsageFields = { readonly [field: string]: unknown }

/** Tokens of the context that was sent, cached ones included, since they fill the window too. 0 if not measured. */
export function countContextTokens(usage: Usage | null | undefined): number {
  const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens } = findLastMessage(usage)
  return toCount(input_tokens) + toCount(cache_creation_input_tokens) + toCount(cache_read_input_tokens)
}

export function countOutputTokens(usage: Usage | null | undefined): number {
  return toCount(findLastMessage(usage).output_tokens)
}

/**
 * A call that ran in several iterations lists them; the last one of type `message` had the current context. A list
 * without one measured no context of ours.
 */
function findLastMessage(usage: Usage | null | undefined): UsageFields {
  const listed = usage ? listIterations(usage) : []
  return listed.length === 0 ? (usage ?? {}) : (listed.findLast(({ type }) => type === 'message') ?? {})
}

/** The iterations that the provider lists; empty if it lists none. */
export function listIterations(usage: Usage): readonly UsageFields[] {
  const listed: readonly unknown[] = Array.isArray(usage.iterations) ? usage.iterations : []
  return listed.filter(isObject)
}

/** A figure of a usage: 0 for anything that is not a possible count, since a log may hold any value. */
export function toCount(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// Billed tokens. The totals of a response leave out what a server-side compaction cost, so if the provider lists
// iterations, the bill is their sum and the totals are ignored.

export const PRICE_CLASSES = ['input', 'cacheRead', 'write5m', 'write1h', 'output'] as const
export type PriceClass = (typeof PRICE_CLASSES)[number]
export type ByPriceClass<T> = { readonly [Class in PriceClass]: T }
export type TokensByClass = ByPriceClass<number>

export function mapPriceClasses<T>(value: (name: PriceClass) => T): ByPriceClass<T> {
  return {
    input: value('input'),
    cacheRead: value('cacheRead'),
    write5m: value('write5m'),
    write1h: value('write1h'),
    output: value('output'),
  }
}

/** One iteration of a call. */
export interface BilledPart {
  readonly tokens: TokensByClass
  /** The model that ran it, if the provider names one. */
  readonly model: string | null
  /** Run by an advisor or fallback model instead of the requested one. */
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
  const write5m = toCount(split.ephemeral_5m_input_tokens)
  const write1h = toCount(split.ephemeral_1h_input_tokens)
  const unsplit = Math.max(0, toCount(fields.cache_creation_input_tokens) - write5m - write1h)
  return {
    tokens: {
      input: toCount(fields.input_tokens),
      cacheRead: toCount(fields.cache_read_input_tokens),
      write5m: write5m + unsplit,
      write1h,
      output: toCount(fields.output_tokens),
    },
    model: typeof model === 'string' ? model : null,
    isForeign: typeof type === 'string' && type !== 'message' && type !== 'compaction',
    assumed: unsplit === 0 ? [] : [WRITES_AS_5M_ASSUMED],
  }
}

// Calibration: one scale and one offset, learned by comparing how much the context grew from call to call with what
// was estimated. Learning more parameters from one session made the estimates worse.

/** `expected` is for display and reports, `high` for decisions. Both are whole numbers. */
export interface TokenEstimate {
  readonly expected: number
  readonly high: number
}

/** Size of the context. `source`: reported by the provider, estimated, or the one plus the other. */
export interface ContextTokens extends TokenEstimate {
  readonly source: 'measured' | 'estimated' | 'both'
}

export interface Calibration {
  readonly start: CalibrationStart
  readonly observations: number
  /** Sums of estimated and reported tokens; the start counts as `start.weight` tokens. */
  readonly estimated: number
  readonly reported: number
  readonly offset: number
  /** Sums over the observations: the error of each, and its size. */
  readonly errorTokens: number
  readonly observedTokens: number
}

/** What a call was estimated to add to the context, uncalibrated, and what the provider reported. */
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

/** A larger error, in tokens or as a share of the estimate, comes mostly from content that the log does not show. */
const CREDIBLE_ERROR = { tokens: 1_000, share: 0.5 }
/**
 * The scale takes at most this share of the estimate from one error, so that no call counts for more than twice its
 * estimate: a small call with a large error contains something else. The scale stays within these factors of its start.
 */
const SCALE_LIMITS = { share: 1, least: 0.5, most: 2 }
/**
 * The offset is learned from small calls only (`upTo` tokens); the error of large ones belongs to the scale. `weight`:
 * calls that the start counts for; `memory`: calls it averages over; `error`: the largest error taken from one call.
 */
const OFFSET_LIMITS = { upTo: 1_000, weight: 20, memory: 50, error: 30 }

/** Ignores a call after which the context did not grow: something was removed as well. */
export function withObservation(
  calibration: Calibration,
  { estimated, reported }: GrowthObservation,
): Calibration {
  if (!isPositive(estimated) || !isPositive(reported)) return calibration
  const { start, offset, observations } = calibration
  const scaled = readScale(calibration) * estimated
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

export function readScale({ estimated, reported }: Calibration): number {
  return reported / estimated
}

/** The calibrated size of content with an uncalibrated estimate of `tokens`. */
export function calibrateSize(
  calibration: Calibration,
  tokens: number,
  policy: EstimatePolicy,
): TokenEstimate {
  return toEstimate(readScale(calibration) * tokens, computeHighFactor(calibration, policy))
}

/** What a call adds to the context whose blocks have an uncalibrated estimate of `tokens` together. */
export function calibrateGrowth(
  calibration: Calibration,
  tokens: number,
  policy: EstimatePolicy,
): TokenEstimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = readScale(calibration) * tokens + calibration.offset
  return toEstimate(Math.max(1, grown), computeHighFactor(calibration, policy))
}

/** Weight of the starting margin in tokens, and how many mean errors a learned margin covers. */
const MARGIN_LIMITS = { weight: 20_000, errors: 3 }

/** `policy.highFactor`, narrowed as far as the observed errors allow. */
export function computeHighFactor(calibration: Calibration, policy: EstimatePolicy): number {
  if (!policy.calibrate) return policy.highFactor
  const { errorTokens, observedTokens } = calibration
  const margin =
    (MARGIN_LIMITS.weight * (policy.highFactor - 1) + MARGIN_LIMITS.errors * errorTokens) /
    (MARGIN_LIMITS.weight + observedTokens)
  const narrowest = Math.min(policy.narrowestHighFactor, policy.highFactor)
  return Math.min(policy.highFactor, Math.max(narrowest, 1 + margin))
}

/** Subtracted before rounding up, so that 3 × 4/3 is 4 despite binary fractions. */
const ROUNDING_TOLERANCE = 1e-6

function toEstimate(tokens: number, factor: number): TokenEstimate {
  const expected = Math.max(0, Math.round(tokens))
  return { expected, high: Math.max(expected, Math.ceil(expected * factor - ROUNDING_TOLERANCE)) }
}

function clampTo(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value))
}
