/** How full the window is: what the provider last counted, and an estimate of all that has come since. */
import type { Block } from '../conversation/block.ts'
import type { EstimatePolicy } from '../policy/groups/estimate-policy.ts'
import type { Entry } from '../view/entry.ts'
import { type Calibration, type Estimate, growthOf, sizeOf } from './calibration.ts'
import type { Estimator } from './estimate.ts'
import { type Anchor, anchorOf, type MeasuredView, turnStart } from './usage-anchor.ts'

export interface ContextQuestion {
  readonly view: MeasuredView
  readonly estimator: Estimator
  readonly calibration: Calibration
  readonly policy: EstimatePolicy
  /** The provider leaves out the thinking of finished turns. */
  readonly stripsThinking: boolean
  /** Estimate of system prompt and tools; asked for only where nothing has been measured. */
  readonly prefix: () => number
  /** Gone from the provider's cache since the newest response, though the view still shows it. */
  readonly deleted?: readonly Block[]
}

export interface ContextTokens extends Estimate {
  readonly source: 'measured' | 'estimated' | 'both'
}

export function contextTokens(question: ContextQuestion): ContextTokens {
  const anchor = anchorOf(question.view)
  return anchor === null ? allEstimated(question) : sinceMeasured(question, anchor)
}

function allEstimated(question: ContextQuestion): ContextTokens {
  const { view, estimator, stripsThinking, prefix } = question
  const { entries } = view
  const stripped = stripsThinking ? thinkingIn(question, 0, turnStart(entries, entries.length)) : 0
  const tokens = prefix() + sum([...entries], estimator.entry) - stripped - deletedTokens(question)
  return { ...size(question, Math.max(0, tokens)), source: 'estimated' }
}

/** Logs often hold the output as it was when the stream began, so the larger of figure and estimate counts. */
function sinceMeasured(question: ContextQuestion, anchor: Anchor): ContextTokens {
  const { calibration, estimator, policy, view } = question
  const behind = view.entries.toArray(anchor.first)
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
  const added = growthOf(calibration, later, policy)
  const gone = size(question, strippedSince(question, anchor) + deletedTokens(question)).expected
  const isExact = output !== said && later === 0 && gone === 0
  return {
    expected: Math.max(0, anchor.context + output.expected + added.expected - gone),
    high: Math.max(0, anchor.context + output.high + added.high - gone),
    source: isExact ? 'measured' : 'both',
  }
}

/** Thinking that was in the measured context and leaves it with the prompt that has come since. */
function strippedSince(question: ContextQuestion, anchor: Anchor): number {
  const { entries } = question.view
  const start = question.stripsThinking ? turnStart(entries, entries.length) : 0
  return start <= anchor.first ? 0 : thinkingIn(question, turnStart(entries, anchor.first), start)
}

function thinkingIn({ view, estimator }: ContextQuestion, from: number, to: number): number {
  return sum(view.entries.toArray(from, to), estimator.thinking)
}

function deletedTokens({ deleted, estimator }: ContextQuestion): number {
  return sum(deleted ?? [], estimator.block)
}

function isOf({ record }: Entry, { response }: Anchor): boolean {
  return record.type === 'assistant' && record.message.id === response
}

function size({ calibration, policy }: ContextQuestion, tokens: number): Estimate {
  return sizeOf(calibration, tokens, policy)
}

function exactly(tokens: number): Estimate {
  return { expected: tokens, high: tokens }
}

function sum<T>(items: readonly T[], tokens: (item: T) => number): number {
  return items.reduce((total, item) => total + tokens(item), 0)
}
