/** Computes from the meter how large the context is now, how fast it grows, and how long answers usually are. */

import type { TokenEstimatePolicy } from '../policy/window-policy.ts'
import type { ContextMeter, MeasuredRun } from './context-meter.ts'
import {
  type Calibration,
  type ContextTokens,
  calibrateGrowth,
  calibrateSize,
  readCalibrationScale,
} from './usage.ts'

export interface ReadMeterOptions {
  readonly calibration: Calibration
  readonly policy: TokenEstimatePolicy
  /** True if the provider drops the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimates the tokens of system prompt and tools. Called only if no response has reported the size of the context. */
  readonly prefix: () => number
  /**
   * Estimated tokens of content that is still in the context but that the provider was asked to delete from its cache
   * since the newest response.
   */
  readonly deleted: number
}

export function measureContextTokens(meter: ContextMeter, reading: ReadMeterOptions): ContextTokens {
  return meter.measuredResponse === null
    ? estimateAll(meter, reading)
    : estimateSinceMeasured(meter, meter.measuredResponse, reading)
}

function estimateAll(meter: ContextMeter, reading: ReadMeterOptions): ContextTokens {
  const { calibration, policy, stripsThinking, prefix, deleted } = reading
  const stripped = stripsThinking ? (meter.thinkingBefore.at(meter.turnStart) ?? 0) : 0
  const tokens = Math.max(0, prefix() + (meter.tokensBefore.last ?? 0) - stripped - deleted)
  return { ...calibrateSize(calibration, tokens, policy), source: 'estimated' }
}

/**
 * Estimates the context size: the size that the response reported, plus its output and the entries after it. The logged
 * output tokens are often too low (from the start of the stream), so the estimate is used for the output if it is
 * larger.
 */
function estimateSinceMeasured(
  meter: ContextMeter,
  anchor: MeasuredRun,
  reading: ReadMeterOptions,
): ContextTokens {
  const { calibration, policy, deleted } = reading
  const estimated = calibrateSize(calibration, anchor.ownTokens, policy)
  const isLonger = estimated.expected > anchor.output
  const output = isLonger ? estimated : { expected: anchor.output, high: anchor.output }
  const later =
    (meter.tokensBefore.last ?? 0) - (meter.tokensBefore.at(anchor.firstEntry) ?? 0) - anchor.ownTokens
  const added = calibrateGrowth(calibration, later, policy)
  const gone = calibrateSize(calibration, estimateStripped(meter, anchor, reading) + deleted, policy).expected
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: !isLonger && later === 0 && gone === 0 ? 'measured' : 'both',
  }
}

/**
 * Estimates the tokens of thinking that were in the reported context but that the provider has dropped since, because a
 * later prompt ended the turn.
 */
function estimateStripped(
  meter: ContextMeter,
  anchor: MeasuredRun,
  { stripsThinking }: ReadMeterOptions,
): number {
  const start = stripsThinking ? meter.turnStart : 0
  if (start <= anchor.firstEntry) return 0
  return (meter.thinkingBefore.at(start) ?? 0) - (meter.thinkingBefore.at(anchor.turnStart) ?? 0)
}

/**
 * Returns the average number of tokens by which the context grows per model call; null until two responses have
 * reported usage.
 */
export function measureGrowthPerCall({ measuredResponse, firstContext, calls }: ContextMeter): number | null {
  if (measuredResponse === null || firstContext === null || calls < 2) return null
  return Math.max(0, (measuredResponse.context - firstContext) / (calls - 1))
}

/**
 * Returns the tokens of system prompt and tools: what the first response since the last rewrite reported, less its
 * messages. Null if none has reported the size of the context.
 */
export function readReportedPrefix({
  firstContext,
  firstEntriesTokens,
  calibration,
}: ContextMeter): number | null {
  if (firstContext === null) return null
  return Math.max(0, Math.round(firstContext - readCalibrationScale(calibration) * firstEntriesTokens))
}

/** Returns the average number of output tokens of the responses that have reported usage; 0 if there is none. */
export function measureUsualOutput({ measuredResponse, earlierOutput, calls }: ContextMeter): number {
  return measuredResponse === null ? 0 : Math.ceil((earlierOutput + measuredResponse.output) / calls)
}
