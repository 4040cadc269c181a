/**
 * What a session teaches about its own estimates: one scale, one offset, and how far wrong they still are.
 * Every response tells how much the context grew since the call before; that against what was estimated is an
 * observation. Learning more than these two from one session was tried and made it worse.
 */
import type { EstimatePolicy } from '../policy/policy.ts'
import type { CalibrationStart } from './estimator-weights.ts'

/** `expected` is for the meter and reports, `high` for decisions. Both are whole. */
export interface Estimate {
  readonly expected: number
  readonly high: number
}

export interface Calibration {
  readonly start: CalibrationStart
  readonly observations: number
  /** Tokens estimated, and tokens that they came to; the start counts as `start.weight` of them. */
  readonly estimated: number
  readonly reported: number
  readonly offset: number
  /** Sums over the observations: how far off each one was, and how large. */
  readonly missed: number
  readonly seen: number
}

/** What one call was estimated to add to the context, uncalibrated, and what the provider says it added. */
export interface Observation {
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
    missed: 0,
    seen: 0,
  }
}

/** An error beyond this, in tokens or as a share of the estimate, is mostly what the log does not show. */
const CREDIBLE_ERROR = { tokens: 1_000, share: 0.5 }
/**
 * Of an error, the scale takes no more than this share of the estimate, so that no call counts for more than
 * twice what it was estimated at: a small one that is far out has something beside it, and says nothing of text. Nor does a session leave its start by more than
 * these factors.
 */
const SCALE = { share: 1, least: 0.5, most: 2 }
/**
 * The offset is learnt from small calls alone: what large ones are out by is the scale's. Calls that its start
 * weighs as much as, the most calls it remembers, and the largest error that one call is taken to show.
 */
const OFFSET = { upTo: 1_000, weight: 20, memory: 50, error: 30 }

/** Growth that is none teaches nothing: something left the context as well. */
export function observe(calibration: Calibration, { estimated, reported }: Observation): Calibration {
  if (!isCount(estimated) || !isCount(reported)) return calibration
  const { offset, observations } = calibration
  const scaled = scaleOf(calibration) * estimated
  const error = reported - scaled - offset
  const credible = Math.max(CREDIBLE_ERROR.tokens, CREDIBLE_ERROR.share * estimated)
  return {
    ...calibration,
    ...scaleLearnt(calibration, estimated, scaled + within(error, SCALE.share * estimated)),
    observations: observations + 1,
    offset: estimated > OFFSET.upTo ? offset : offset + offsetStep(calibration, error),
    missed: calibration.missed + Math.abs(within(error, credible)),
    seen: calibration.seen + reported,
  }
}

/** The sums of the scale with one call more, held to what a scale may be. */
function scaleLearnt(
  calibration: Calibration,
  tokens: number,
  came: number,
): Pick<Calibration, 'estimated' | 'reported'> {
  const estimated = calibration.estimated + tokens
  const asStarted = calibration.start.scale * estimated
  const reported = Math.max(SCALE.least * asStarted, calibration.reported + came)
  return { estimated, reported: Math.min(SCALE.most * asStarted, reported) }
}

function isCount(value: number): boolean {
  return value > 0 && Number.isFinite(value)
}

function offsetStep({ observations }: Calibration, error: number): number {
  return within(error, OFFSET.error) / Math.min(OFFSET.weight + observations + 1, OFFSET.memory)
}

export function scaleOf({ estimated, reported }: Calibration): number {
  return reported / estimated
}

/** How large a thing is that was estimated at `tokens`. */
export function sizeOf(calibration: Calibration, tokens: number, policy: EstimatePolicy): Estimate {
  return estimateOf(scaleOf(calibration) * tokens, highFactor(calibration, policy))
}

/** What a call adds to the context whose blocks were estimated at `tokens` together. */
export function growthOf(calibration: Calibration, tokens: number, policy: EstimatePolicy): Estimate {
  if (tokens <= 0) return { expected: 0, high: 0 }
  const grown = scaleOf(calibration) * tokens + calibration.offset
  return estimateOf(Math.max(1, grown), highFactor(calibration, policy))
}

/** Weight of the starting margin, in tokens, and how many mean errors a learnt margin holds. */
const MARGIN = { weight: 20_000, errors: 3 }

/** `policy.highFactor` until the errors seen have earned a narrower one. */
export function highFactor(calibration: Calibration, policy: EstimatePolicy): number {
  if (!policy.calibrate) return policy.highFactor
  const { missed, seen } = calibration
  const margin = (MARGIN.weight * (policy.highFactor - 1) + MARGIN.errors * missed) / (MARGIN.weight + seen)
  const narrowest = Math.min(policy.narrowestHighFactor, policy.highFactor)
  return Math.min(policy.highFactor, Math.max(narrowest, 1 + margin))
}

function estimateOf(tokens: number, factor: number): Estimate {
  const expected = Math.max(0, Math.round(tokens))
  return { expected, high: Math.max(expected, Math.ceil(expected * factor - ROUNDING)) }
}

/** So that 3 × 4/3 is 4 whatever the last bit of the product says. */
const ROUNDING = 1e-6

function within(value: number, limit: number): number {
  return Math.min(limit, Math.max(-limit, value))
}
