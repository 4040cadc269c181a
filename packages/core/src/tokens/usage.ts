/**
 * The usage of a response: the size of the context that was sent, and the tokens that are billed. Also calibrates token
 * estimates by comparing them with reported usage.
 */
import { countStringCharacters } from '../log/json.ts'
import type { ModelRunUsage, TokenCounts, TokenUsage } from '../log/reply-report.ts'
import type { TokenEstimatePolicy } from '../policy/window-policy.ts'
import type { CalibrationStart } from './estimator.ts'

/** Returns the tokens of the context that was sent, cached or not, as the usage reports them; 0 if it does not. */
export function readReportedContextTokens(usage: TokenUsage | null | undefined): number {
  const last = findLastMessage(usage)
  return last === null ? 0 : countPromptTokens(last)
}

/** Returns the reported output tokens of the call's last message; 0 if unknown. */
export function readReportedOutputTokens(usage: TokenUsage | null | undefined): number {
  return findLastMessage(usage)?.output ?? 0
}

/** Counts all tokens of the prompt, cached or not. */
export function countPromptTokens({ input, read, writes }: TokenCounts): number {
  return input + read + writes.short + writes.long
}

/**
 * Returns the part of the usage that reports the size of the context. If the provider lists the runs of the call, that
 * is the last one of kind `message`; if there is none, the size is not reported.
 */
function findLastMessage(usage: TokenUsage | null | undefined): TokenCounts | null {
  if (usage?.parts === undefined) return usage ?? null
  return usage.parts.findLast(({ kind }) => kind === 'message') ?? null
}

/** Returns a token count as a number. Returns 0 for a value that cannot be a count, because a log may contain any value. */
export function toTokenCount(value: unknown): number {
  return typeof value === 'number' && value > 0 && value <= Number.MAX_SAFE_INTEGER ? value : 0
}

// The totals in a response's usage do not include compaction by the provider. If the provider lists the runs of the
// call, the billed tokens are the sum over the runs, and the totals are ignored.

export const PRICE_CLASSES = ['input', 'cacheRead', 'writeShort', 'writeLong', 'output'] as const
export type PriceClass = (typeof PRICE_CLASSES)[number]
export type ByPriceClass<T> = { readonly [Class in PriceClass]: T }
export type TokensByPriceClass = ByPriceClass<number>

/** The tokens billed for one run of a model. */
export interface BilledModelRun {
  readonly tokens: TokensByPriceClass
  /** The model that ran; null if the provider does not name one. */
  readonly model: string | null
  /** True if an advisor or fallback model ran instead of the requested model. */
  readonly isForeign: boolean
  readonly assumed: readonly string[]
}

const ASSUMPTIONS = {
  lifetime: 'cache writes without a lifetime are counted as writes for the shortest one',
  prompt: 'the prompts of responses that broke off before their usage are estimated',
  output: 'the output of responses that broke off is estimated from what arrived',
}

/** Returns what is billed: each run that the provider lists, or the call as one. */
export function listBilledModelRuns(usage: TokenUsage): readonly BilledModelRun[] {
  return (usage.parts ?? [usage]).map(toBilledPart)
}

function toBilledPart(counts: TokenCounts & Partial<ModelRunUsage>): BilledModelRun {
  const { kind, model = null, assumed = [] } = counts
  const texts = assumed.map((name) => ASSUMPTIONS[name])
  return { tokens: toTokensByPriceClass(counts), model, isForeign: kind === 'other-model', assumed: texts }
}

export function toTokensByPriceClass({ input, read, writes, output }: TokenCounts): TokensByPriceClass {
  return { input, cacheRead: read, writeShort: writes.short, writeLong: writes.long, output }
}

/** The lifetime of what a response wrote to the prompt cache, the shorter if there are two; null if the usage does not say. */
export function readCacheLifetime(usage: TokenUsage | null | undefined): 'short' | 'long' | null {
  if (usage === null || usage === undefined || usage.assumed?.includes('lifetime') === true) return null
  const parts = usage.parts ?? [usage]
  if (parts.some(({ writes }) => writes.short > 0)) return 'short'
  return parts.some(({ writes }) => writes.long > 0) ? 'long' : null
}

/** True if a usage bills nothing: that of a response which a client repeats. */
export function isNothingBilled(usage: TokenUsage | undefined): boolean {
  return (
    usage !== undefined &&
    listBilledModelRuns(usage).every(({ tokens }) => PRICE_CLASSES.every((name) => tokens[name] === 0))
  )
}

/**
 * Returns the usage of a response that broke off. The provider bills the output so far but reports it only at the end:
 * the usage reported at the start has the prompt and a placeholder for the output. `output`: estimate of what arrived.
 */
export function withEstimatedOutput(usage: TokenUsage, output: number): TokenUsage {
  if (usage.parts !== undefined || output <= usage.output) return usage
  return { ...usage, output, assumed: [...(usage.assumed ?? []), 'output'] }
}

/**
 * Returns the usage of a response that broke off before it reported any. `prompt`: estimated tokens of the request;
 * `read`: how many of them were expected in the prompt cache; `write`: the price class of the tokens written to the
 * cache, null if none were.
 */
export function estimateLostUsage(
  prompt: number,
  read: number,
  write: 'writeShort' | 'writeLong' | null,
): TokenUsage {
  const cached = Math.min(read, prompt)
  const rest = prompt - cached
  const [short, long] = [write === 'writeShort' ? rest : 0, write === 'writeLong' ? rest : 0]
  const input = write === null ? rest : 0
  return { input, read: cached, writes: { short, long }, output: 0, assumed: ['prompt'] }
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

/** What a session has learned about its estimates. */
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
  /** Sum of the absolute estimation errors of all observations, in tokens. */
  readonly errorTokens: number
  /** Sum of the reported tokens of all observations. */
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
  const scaled = computeCalibrationScale(calibration) * estimated
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

/** Returns the learned ratio of reported to estimated tokens. */
export function computeCalibrationScale({ estimated, reported }: Calibration): number {
  return reported / estimated
}

/** Returns the calibrated size of content whose uncalibrated estimate is `tokens`. */
export function calibrateSize(
  calibration: Calibration,
  tokens: number,
  policy: TokenEstimatePolicy,
): TokenEstimate {
  return toEstimate(computeCalibrationScale(calibration) * tokens, computeSafetyFactor(calibration, policy))
}

/** Returns the lower bound of a size: as far below the expected size as the upper bound is above it. */
export function computeLowerBound({ expected, high }: TokenEstimate): number {
  return 2 * expected - high
}

/** Upper bound of the average characters per token of a prompt, in any language and with any tokenizer. */
const MOST_CHARACTERS_PER_TOKEN = 5

/**
 * True if content of this estimated size may be within `limit` tokens, so that it is worth asking the provider: its answer is
 * exact, and its refusal costs nothing. Estimates of tables, code or base64 may be twice too high, so a text with few enough
 * characters passes too.
 */
export function canFitLimit(size: TokenEstimate, content: unknown, limit: number): boolean {
  return (
    computeLowerBound(size) <= limit || countStringCharacters(content) / MOST_CHARACTERS_PER_TOKEN <= limit
  )
}

/** Returns the calibrated growth of the context by one model call. `tokens` is the uncalibrated estimate for its blocks. */
export function calibrateGrowth(
  calibration: Calibration,
  tokens: number,
  policy: TokenEstimatePolicy,
): TokenEstimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = computeCalibrationScale(calibration) * tokens + calibration.offset
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
