/** The size of the context, by the usage that the Messages API reports. */

import type { Block } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import { type AssistantRecord, SYNTHETIC_MODEL } from '@tidemark/core/log/record'
import { DEFAULT_POLICY } from '@tidemark/core/policy/create-policy'
import { SessionBuilder } from '@tidemark/core/testing'
import {
  createContextMeter,
  type MeasureContextOptions,
  measureContextTokens,
  updateContextMeter,
} from '@tidemark/core/tokens/context-meter'
import { createDefaultWeights, createEstimator } from '@tidemark/core/tokens/estimator'
import {
  type ContextTokens,
  readReportedContextTokens,
  readReportedOutputTokens,
  startCalibration,
} from '@tidemark/core/tokens/usage'
import { describe, expect, it } from 'vitest'
import { readAnthropicReport, readAnthropicUsage } from '../src/providers/message-usage.ts'

const policy = DEFAULT_POLICY.estimate
const estimator = createEstimator(createDefaultWeights(policy))

/** A text that is estimated at so many tokens. */
const text = (tokens: number): string => 'x'.repeat(4 * tokens)
const said = (tokens: number): Block => ({ type: 'text', text: text(tokens) })
const thought = (tokens: number): Block => ({ type: 'thinking', thinking: text(tokens), signature: 's' })
/** Two tokens of name and empty input. */
const call = (id: string): Block => ({ type: 'tool_use', id, name: 'Read', input: {} })

type Answer = Partial<AssistantRecord>

function measured(id: string, content: readonly Block[], usage: JsonObject, model = 'model-a'): Answer {
  const whole = { input_tokens: 0, output_tokens: 0, ...usage }
  const message = { id, role: 'assistant' as const, model, content, usage: whole }
  return { message, ...readAnthropicReport(message) }
}

function answer(builder: SessionBuilder, id: string, content: readonly Block[], usage: JsonObject): void {
  builder.assistant(id, content, measured(id, content, usage))
}

function asked(builder: SessionBuilder, more: Partial<MeasureContextOptions> = {}): ContextTokens {
  return measureContextTokens(updateContextMeter(createContextMeter(estimator), builder.view), {
    calibration: startCalibration({ scale: 1, offset: 0, weight: 1 }),
    policy,
    stripsThinking: false,
    prefix: () => 5_000,
    deleted: 0,
    ...more,
  })
}

interface Case {
  readonly name: string
  readonly tell: (builder: SessionBuilder) => void
  readonly question?: Partial<MeasureContextOptions>
  readonly tokens: ContextTokens
}

const BOUNDARY = { compactMetadata: { trigger: 'auto', preTokens: 1 } } as const
const CLEARING = {
  trigger: 'auto',
  preTokens: 0,
  tokensSaved: 0,
  compactedToolIds: ['c1'],
  clearedAttachmentUUIDs: [],
}

const cases: readonly Case[] = [
  {
    name: 'nothing measured: everything is estimated, system prompt and tools included',
    tell: (builder) => {
      builder.user(text(100))
      builder.assistant('m1', [said(20)])
    },
    tokens: { expected: 5_120, high: 6_827, source: 'estimated' },
  },
  {
    name: 'measured: input, cached or not, and output',
    tell: (builder) => {
      builder.user(text(100))
      answer(builder, 'm1', [said(20)], {
        input_tokens: 10,
        cache_creation_input_tokens: 200,
        cache_read_input_tokens: 3_000,
        output_tokens: 25,
      })
    },
    tokens: { expected: 3_235, high: 3_235, source: 'measured' },
  },
  {
    name: 'what came later is estimated',
    tell: (builder) => {
      answer(builder, 'm1', [call('c1')], { input_tokens: 1_000, output_tokens: 25 })
      builder.result('c1', text(300))
      builder.user(text(30))
    },
    tokens: { expected: 1_355, high: 1_465, source: 'both' },
  },
  {
    name: 'the newest measurement counts',
    tell: (builder) => {
      answer(builder, 'm1', [call('c1')], { input_tokens: 1_000, output_tokens: 25 })
      builder.result('c1', text(300))
      answer(builder, 'm2', [said(1)], { input_tokens: 1_500, output_tokens: 50 })
    },
    tokens: { expected: 1_550, high: 1_550, source: 'measured' },
  },
  {
    name: 'an error that the engine wrote measures nothing',
    tell: (builder) => {
      answer(builder, 'm1', [said(1)], { input_tokens: 1_000, output_tokens: 25 })
      const error = measured('m2', [said(9)], { input_tokens: 7 }, SYNTHETIC_MODEL)
      builder.assistant('m2', [said(9)], { ...error, isApiErrorMessage: true })
    },
    tokens: { expected: 1_025, high: 1_025, source: 'measured' },
  },
  {
    name: 'several records of one response: what lies between them is not missed',
    tell: (builder) => {
      answer(builder, 'm1', [call('c1')], { input_tokens: 1_000, output_tokens: 40 })
      builder.result('c1', text(300))
      answer(builder, 'm1', [call('c2')], { input_tokens: 1_000, output_tokens: 40 })
      builder.result('c2', text(60))
    },
    tokens: { expected: 1_400, high: 1_520, source: 'both' },
  },
  {
    name: 'output as it was when the stream began: the estimate of the response is larger and counts',
    tell: (builder) => {
      answer(builder, 'm1', [said(90)], { input_tokens: 1_000, output_tokens: 1 })
      answer(builder, 'm1', [said(30)], { input_tokens: 1_000, output_tokens: 1 })
    },
    tokens: { expected: 1_120, high: 1_160, source: 'both' },
  },
  {
    name: 'output of the last record where the first has less',
    tell: (builder) => {
      answer(builder, 'm1', [said(10)], { input_tokens: 1_000, output_tokens: 1 })
      answer(builder, 'm1', [said(10)], { input_tokens: 1_000, output_tokens: 80 })
      answer(builder, 'm1', [said(10)], { input_tokens: 1_000, output_tokens: 2 })
    },
    tokens: { expected: 1_080, high: 1_080, source: 'measured' },
  },
  {
    name: 'iterations: the last message',
    tell: (builder) => {
      const iterations = [
        { type: 'message', input_tokens: 9_000, output_tokens: 1 },
        { type: 'message', input_tokens: 2_000, output_tokens: 30 },
      ]
      answer(builder, 'm1', [said(1)], { input_tokens: 11_000, output_tokens: 31, iterations })
    },
    tokens: { expected: 2_030, high: 2_030, source: 'measured' },
  },
  {
    name: 'after a boundary nothing from before it measures the view, kept records included',
    tell: (builder) => {
      builder.user(text(10))
      answer(builder, 'm1', [said(8)], { input_tokens: 90_000, output_tokens: 8 })
      const preservedMessages = { anchorUuid: 'summary', uuids: [builder.tip ?? ''] }
      builder.notice('compact_boundary', {
        compactMetadata: { trigger: 'auto', preTokens: 1, preservedMessages },
      })
      builder.user(text(40), { uuid: 'summary', isCompactSummary: true })
    },
    tokens: { expected: 5_048, high: 6_731, source: 'estimated' },
  },
  {
    name: 'after a boundary the first response measures again',
    tell: (builder) => {
      answer(builder, 'm1', [said(8)], { input_tokens: 90_000, output_tokens: 8 })
      builder.notice('compact_boundary', BOUNDARY)
      builder.user(text(40), { isCompactSummary: true })
      answer(builder, 'm2', [said(8)], { input_tokens: 7_000, output_tokens: 8 })
    },
    tokens: { expected: 7_008, high: 7_008, source: 'measured' },
  },
  {
    name: 'after a clearing all is estimated until a response measures again',
    tell: (builder) => {
      answer(builder, 'm1', [call('c1')], { input_tokens: 9_000, output_tokens: 8 })
      builder.result('c1', text(700))
      answer(builder, 'm2', [said(4)], { input_tokens: 10_000, output_tokens: 4 })
      builder.notice('microcompact_boundary', { microcompactMetadata: CLEARING })
    },
    tokens: { expected: 5_014, high: 6_686, source: 'estimated' },
  },
  {
    name: 'after an epoch too',
    tell: (builder) => {
      answer(builder, 'm1', [said(8)], { input_tokens: 9_000, output_tokens: 8 })
      builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
    },
    tokens: { expected: 5_008, high: 6_678, source: 'estimated' },
  },
  {
    name: 'a response that had begun before a rewrite does not measure what came of it',
    tell: (builder) => {
      builder.user(text(10))
      answer(builder, 'm1', [said(8)], { input_tokens: 9_000, output_tokens: 16 })
      builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
      answer(builder, 'm1', [said(8)], { input_tokens: 9_000, output_tokens: 16 })
    },
    tokens: { expected: 5_026, high: 6_702, source: 'estimated' },
  },
  {
    name: 'nor where the compaction took its first record away',
    tell: (builder) => {
      builder.user(text(10))
      answer(builder, 'm1', [said(8)], { input_tokens: 90_000, output_tokens: 16 })
      builder.notice('compact_boundary', BOUNDARY)
      builder.user(text(40), { isCompactSummary: true })
      answer(builder, 'm1', [said(8)], { input_tokens: 90_000, output_tokens: 16 })
    },
    tokens: { expected: 5_048, high: 6_731, source: 'estimated' },
  },
  {
    name: 'the next response after it does',
    tell: (builder) => {
      answer(builder, 'm1', [call('c1')], { input_tokens: 9_000, output_tokens: 8 })
      builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
      answer(builder, 'm1', [said(8)], { input_tokens: 9_000, output_tokens: 16 })
      builder.result('c1', text(30))
      answer(builder, 'm2', [said(4)], { input_tokens: 7_000, output_tokens: 4 })
    },
    tokens: { expected: 7_004, high: 7_004, source: 'measured' },
  },
  {
    name: 'what was deleted from the cache since is subtracted',
    tell: (builder) => {
      answer(builder, 'm1', [said(1)], { input_tokens: 9_000, output_tokens: 10 })
      builder.user(text(30))
    },
    question: { deleted: estimator.block({ type: 'tool_result', tool_use_id: 'c0', content: text(500) }) },
    tokens: { expected: 8_540, high: 8_550, source: 'both' },
  },
  {
    name: 'what is not sent counts nothing',
    tell: (builder) => {
      answer(builder, 'm1', [said(1)], { input_tokens: 9_000, output_tokens: 10 })
      builder.attachment({ type: 'file', content: text(400) }, { isScreenOnly: true })
      builder.notice('turn_duration', { content: text(400) })
    },
    tokens: { expected: 9_010, high: 9_010, source: 'measured' },
  },
]

/** A turn of two responses, measured after the second, and a prompt behind it. */
function thinkingTurn(builder: SessionBuilder, end: (builder: SessionBuilder) => void): void {
  builder.user('old')
  answer(builder, 'm0', [thought(900), said(1)], { input_tokens: 1_000, output_tokens: 901 })
  builder.user('go')
  answer(builder, 'm1', [thought(100), call('c1')], { input_tokens: 1_010, output_tokens: 102 })
  builder.result('c1', text(50))
  answer(builder, 'm2', [thought(40), call('c2')], { input_tokens: 2_000, output_tokens: 42 })
  end(builder)
}

const strippingCases: readonly Case[] = [
  {
    name: 'thinking of the turn leaves at the next prompt',
    tell: (builder) => thinkingTurn(builder, () => builder.user(text(30))),
    question: { stripsThinking: true },
    tokens: { expected: 2_042 + 30 - 140, high: 2_042 + 40 - 140, source: 'both' },
  },
  {
    name: 'not while tool results come in',
    tell: (builder) => thinkingTurn(builder, () => builder.result('c2', text(30))),
    question: { stripsThinking: true },
    tokens: { expected: 2_042 + 30, high: 2_042 + 40, source: 'both' },
  },
  {
    name: 'with words beside the results too',
    tell: (builder) =>
      thinkingTurn(builder, () => {
        builder.result('c2', text(30))
        builder.user(text(10))
      }),
    question: { stripsThinking: true },
    tokens: { expected: 2_042 + 40 - 140, high: 2_042 + 54 - 140, source: 'both' },
  },
  {
    name: 'with an attachment, which is words to the model',
    tell: (builder) =>
      thinkingTurn(builder, () => {
        builder.result('c2', text(30))
        builder.attachment({ type: 'reminder', content: '' })
      }),
    question: { stripsThinking: true },
    tokens: { expected: 2_042 + 44 - 140, high: 2_042 + 59 - 140, source: 'both' },
  },
  {
    name: 'not with a system message in mid-conversation, nor with what only the screen shows',
    tell: (builder) =>
      thinkingTurn(builder, () => {
        builder.result('c2', text(20))
        builder.system(text(10))
        builder.attachment({ type: 'file', content: text(400) }, { isScreenOnly: true })
      }),
    question: { stripsThinking: true },
    tokens: { expected: 2_042 + 30, high: 2_042 + 40, source: 'both' },
  },
  {
    name: 'not on a model that keeps it',
    tell: (builder) => thinkingTurn(builder, () => builder.user(text(30))),
    tokens: { expected: 2_042 + 30, high: 2_042 + 40, source: 'both' },
  },
  {
    name: 'with nothing measured, thinking of finished turns is not counted',
    tell: (builder) => {
      builder.user(text(10))
      builder.assistant('m1', [thought(100), said(8)])
      builder.user(text(10))
      builder.assistant('m2', [thought(40), call('c2')])
      builder.result('c2', text(20))
    },
    question: { stripsThinking: true },
    tokens: { expected: 5_090, high: 6_787, source: 'estimated' },
  },
]

describe('the meter', () => {
  it.each([...cases, ...strippingCases])('$name', ({ tell, question, tokens }) => {
    const builder = new SessionBuilder()
    tell(builder)
    expect(asked(builder, question)).toEqual(tokens)
  })

  it('applies what the session has taught', () => {
    const builder = new SessionBuilder()
    answer(builder, 'm1', [said(1)], { input_tokens: 1_000, output_tokens: 10 })
    builder.user(text(100))
    const calibration = startCalibration({ scale: 1.5, offset: 7, weight: 1 })
    expect(asked(builder, { calibration })).toEqual({ expected: 1_167, high: 1_220, source: 'both' })
  })

  it('is asked for the prefix only where nothing is measured', () => {
    const builder = new SessionBuilder()
    answer(builder, 'm1', [said(1)], { input_tokens: 1_000, output_tokens: 10 })
    const prefix = (): number => {
      throw new Error('asked for the prefix')
    }
    expect(asked(builder, { prefix }).expected).toBe(1_010)
  })
})

describe('the figures of a usage', () => {
  it.each<[string, JsonObject | null | undefined, number, number]>([
    ['no usage', undefined, 0, 0],
    ['null', null, 0, 0],
    ['plain input', { input_tokens: 10, output_tokens: 5 }, 10, 5],
    [
      'cached tokens fill the window too',
      { input_tokens: 1, cache_creation_input_tokens: 20, cache_read_input_tokens: 300, output_tokens: 7 },
      321,
      7,
    ],
    [
      'fields that are null',
      { input_tokens: 4, cache_creation_input_tokens: null, cache_read_input_tokens: null, output_tokens: 1 },
      4,
      1,
    ],
    [
      'iterations: the last message',
      {
        input_tokens: 900,
        output_tokens: 90,
        iterations: [
          { type: 'message', input_tokens: 700, output_tokens: 50 },
          { type: 'compaction', input_tokens: 700, output_tokens: 60 },
          { type: 'message', input_tokens: 30, cache_read_input_tokens: 170, output_tokens: 40 },
          { type: 'advisor', input_tokens: 5_000, output_tokens: 9 },
        ],
      },
      200,
      40,
    ],
    ['figures without end', { input_tokens: Number('1e999'), output_tokens: Number('1e999') }, 0, 0],
    ['figures that no counter shows', { input_tokens: 1e300, output_tokens: -3 }, 0, 0],
    ['a list of nothing', { input_tokens: 10, output_tokens: 5, iterations: [null] }, 10, 5],
    ['no iterations', { input_tokens: 10, output_tokens: 5, iterations: [] }, 10, 5],
    [
      'a compaction alone measured no context of ours',
      {
        input_tokens: 0,
        output_tokens: 0,
        iterations: [{ type: 'compaction', input_tokens: 700, output_tokens: 60 }],
      },
      0,
      0,
    ],
  ])('%s', (_, raw, context, output) => {
    const usage = readAnthropicUsage(raw)
    expect([readReportedContextTokens(usage), readReportedOutputTokens(usage)]).toEqual([context, output])
  })
})
