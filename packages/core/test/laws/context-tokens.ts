/**
 * Reference for law 11: how full the window is, counted from scratch in one pass over the context. The meter must give
 * the same figure after every record.
 */

import { type ContextEntry, endsPreviousTurn } from '../../src/context/context-entry.ts'
import type { ContextView } from '../../src/context/context-view.ts'
import type { Block } from '../../src/log/block.ts'
import type { TokenEstimatePolicy } from '../../src/policy/window-policy.ts'
import {
  findMeasuredResponse,
  type MeasuredResponse,
  type MeterInput,
} from '../../src/tokens/context-meter.ts'
import type { Estimator } from '../../src/tokens/estimator.ts'
import {
  type Calibration,
  type ContextTokens,
  calibrateGrowth,
  calibrateSize,
  type TokenEstimate,
} from '../../src/tokens/usage.ts'

export interface ContextQuestion {
  readonly view: MeterInput
  readonly estimator: Estimator
  readonly calibration: Calibration
  readonly policy: TokenEstimatePolicy
  /** The provider drops the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimate of system prompt and tools; called only if nothing has been measured. */
  readonly prefix: () => number
  /** Deleted from the provider's cache since the newest response, though the context still shows it. */
  readonly deleted?: readonly Block[]
}

export function contextTokens(question: ContextQuestion): ContextTokens {
  const anchor = findMeasuredResponse(question.view)
  return anchor === null ? allEstimated(question) : sinceMeasured(question, anchor)
}

function allEstimated(question: ContextQuestion): ContextTokens {
  const { view, estimator, stripsThinking, prefix } = question
  const { entries } = view
  const stripped = stripsThinking ? thinkingIn(question, 0, turnStart(entries, entries.length)) : 0
  const tokens = prefix() + sum([...entries], estimator.entry) - stripped - deletedTokens(question)
  return { ...size(question, Math.max(0, tokens)), source: 'estimated' }
}

/** Logs often hold the output figure from the start of the stream, so the larger of figure and estimate counts. */
function sinceMeasured(question: ContextQuestion, anchor: MeasuredResponse): ContextTokens {
  const { calibration, estimator, policy, view } = question
  const behind = view.entries.toArray(anchor.firstEntry)
  const said = size(
    question,
    sum(
      behind.filter((entry) => isOf(entry, anchor)),
      estimator.entry,
    ),
  )
  const output = said.expected > anchor.output ? said : exactly(anchor.output)
  const later = sum(
    behind.filter((entry) => !isOf(entry, anchor)),
    estimator.entry,
  )
  const added = calibrateGrowth(calibration, later, policy)
  const gone = size(question, strippedSince(question, anchor) + deletedTokens(question)).expected
  const isExact = output !== said && later === 0 && gone === 0
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: isExact ? 'measured' : 'both',
  }
}

/** Thinking in the measured context that the prompt after it removes. */
function strippedSince(question: ContextQuestion, anchor: MeasuredResponse): number {
  const { entries } = question.view
  const start = question.stripsThinking ? turnStart(entries, entries.length) : 0
  return start <= anchor.firstEntry ? 0 : thinkingIn(question, turnStart(entries, anchor.firstEntry), start)
}

function thinkingIn({ view, estimator }: ContextQuestion, from: number, to: number): number {
  return sum(view.entries.toArray(from, to), estimator.thinking)
}

function deletedTokens({ deleted, estimator }: ContextQuestion): number {
  return sum(deleted ?? [], estimator.block)
}

function isOf({ record }: ContextEntry, { response }: MeasuredResponse): boolean {
  return record.type === 'assistant' && record.message.id === response
}

function size({ calibration, policy }: ContextQuestion, tokens: number): TokenEstimate {
  return calibrateSize(calibration, tokens, policy)
}

function exactly(tokens: number): TokenEstimate {
  return { expected: tokens, high: tokens }
}

function sum<T>(items: readonly T[], tokens: (item: T) => number): number {
  return items.reduce((total, item) => total + tokens(item), 0)
}

/** Where the turn open at `end` began: at the entry that ended the turn before it. */
function turnStart(entries: ContextView['entries'], end: number): number {
  for (let place = end - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry !== undefined && endsPreviousTurn(entry)) return place
  }
  return 0
}
