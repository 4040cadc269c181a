import type { Block } from '@tidemark/core/log/block'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { createDefaultWeights, createEstimator } from '@tidemark/core/tokens/estimator'
import { describe, expect, it } from 'vitest'
import {
  type MeasuredCall,
  measurePredictionError,
  type PredictedGrowth,
  type PredictionOptions,
  predictGrowth,
} from './estimator-error.ts'

const policy = DEFAULT_POLICY.estimate
/** A start that no observation moves, so that figures can be worked out by hand. */
const STILL = { scale: 1, offset: 0, weight: 1e15 }
const still = createEstimator({ ...createDefaultWeights(policy), start: STILL })
const trial: PredictionOptions = { policy, forModel: () => ({ estimator: still, stripsThinking: false }) }
const stripping: PredictionOptions = { policy, forModel: () => ({ estimator: still, stripsThinking: true }) }

const text = (tokens: number): Block => ({ type: 'text', text: 'x'.repeat(4 * tokens) })
const thought = (tokens: number): Block => ({
  type: 'thinking',
  thinking: 'x'.repeat(4 * tokens),
  signature: '',
})
const result = (tokens: number): Block => ({
  type: 'tool_result',
  tool_use_id: 'c',
  content: 'x'.repeat(4 * tokens),
})

function call(context: number, said: readonly Block[] = [], more: Partial<MeasuredCall> = {}): MeasuredCall {
  return { model: 'model-a', context, said, heard: [result(10)], endsTurn: false, broken: null, ...more }
}

/** Predicted and reported growth, or why a turn does not count. */
function turns(
  calls: readonly MeasuredCall[],
  given: PredictionOptions = trial,
): readonly (readonly [number, number] | string)[] {
  return predictGrowth(calls, given).map((turn) =>
    turn.counted ? ([turn.predicted, turn.reported] as const) : turn.reason,
  )
}

describe('predictTurns', () => {
  it('has no turn for the first call', () => {
    expect([turns([]), turns([call(100)])]).toEqual([[], []])
  })

  it('predicts the growth from what was added', () => {
    expect(turns([call(100), call(170, [text(50)]), call(185, [thought(4)])])).toEqual([
      [60, 70],
      [14, 15],
    ])
  })

  it('leaves out what cannot be compared, and goes on from there', () => {
    const calls = [
      call(100),
      call(40, [], { broken: 'boundary' }),
      call(30, [text(5)]),
      call(50, [text(5)], { broken: 'restart' }),
      call(60, [text(1)]),
    ]
    expect(turns(calls)).toEqual(['boundary', 'negative-growth', 'restart', [11, 10]])
  })

  it('does not compare the counts of two tokenizers', () => {
    const other = createEstimator(createDefaultWeights(policy))
    const mixed: PredictionOptions = {
      policy,
      forModel: (model) => ({ estimator: model === 'model-b' ? other : still, stripsThinking: false }),
    }
    const calls = [
      call(100),
      call(110),
      call(90, [], { model: 'model-b' }),
      call(100, [], { model: 'model-b' }),
    ]
    expect(turns(calls, mixed)).toEqual([[10, 10], 'model-change', [10, 10]])
  })

  it('takes the thinking of a finished turn out at the prompt, where the model does', () => {
    const prompt = { heard: [text(10)], endsTurn: true }
    const calls = [
      call(100),
      call(130, [thought(20)]),
      call(160, [thought(20)]),
      call(135, [thought(7), text(5)], prompt),
      call(150, [thought(5)]),
    ]
    expect(turns(calls, stripping)).toEqual([
      [30, 30],
      [30, 30],
      [15 - 40, -25],
      [15, 15],
    ])
    expect(turns(calls)).toEqual([[30, 30], [30, 30], 'negative-growth', [15, 15]])
  })

  it('adds what the host sends and does not log', () => {
    const reminder = { tools: ['Todo'], every: 2, tokens: 100 }
    const calls = [call(100), call(111, [text(1)]), call(222, [text(1)]), call(233, [text(1)])]
    expect(turns(calls, { ...trial, reminder })).toEqual([
      [11, 11],
      [111, 111],
      [11, 11],
    ])
  })

  it('learns from what each call reported, and only from earlier ones', () => {
    const quick = createEstimator({
      ...createDefaultWeights(policy),
      start: { scale: 1, offset: 0, weight: 1 },
    })
    const learning: PredictionOptions = {
      policy,
      forModel: () => ({ estimator: quick, stripsThinking: false }),
    }
    const calls = Array.from({ length: 40 }, (_, index) => call(1_000 + 1_500 * index, [text(990)]))
    const predicted = predictGrowth(calls, learning).map((turn) => (turn.counted ? turn.predicted : 0))
    expect(predicted[0]).toBe(1_000)
    expect(Math.abs((predicted.at(-1) ?? 0) - 1_500)).toBeLessThan(20)
  })
})

describe('measureError', () => {
  const counted = (predicted: number, reported: number): PredictedGrowth => ({
    counted: true,
    predicted,
    high: predicted,
    reported,
  })
  const excluded = (reason: 'boundary' | 'restart'): PredictedGrowth => ({ counted: false, reason })

  it.each<[string, readonly PredictedGrowth[], unknown]>([
    ['no turns', [], { turns: 0, medianAbsError: 0, bias: 0, excluded: [] }],
    [
      'an odd number',
      [counted(110, 100), counted(90, 100), counted(250, 200)],
      { turns: 3, medianAbsError: 10, bias: 0.125, excluded: [] },
    ],
    [
      'an even number, shrinking ones among them',
      [counted(-20, -25), counted(100, 125)],
      { turns: 2, medianAbsError: 15, bias: -0.2, excluded: [] },
    ],
    [
      'excluded turns, with their reasons',
      [excluded('boundary'), counted(10, 10), excluded('restart'), excluded('boundary')],
      {
        turns: 1,
        medianAbsError: 0,
        bias: 0,
        excluded: [
          { reason: 'boundary', count: 2 },
          { reason: 'restart', count: 1 },
        ],
      },
    ],
  ])('%s', (_, given, error) => {
    expect(measurePredictionError(given)).toEqual(error)
  })
})
