import { collectReply, createUsage } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { AssistantMessage } from '../log/record.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { type ModelFailure, overlayFields, planRetry, type ReplyEvent } from './reply.ts'

const MESSAGE: AssistantMessage = {
  id: 'm1',
  role: 'assistant',
  model: 'x',
  content: [],
  usage: { input: 3, output: 0 },
}
const STARTED: ReplyEvent = { type: 'reply-started', message: MESSAGE }

describe('collect', () => {
  it('has nothing where no reply began', () => {
    expect(
      collectReply([{ type: 'reply-alive' }, { type: 'reply-updated', fields: { stop_reason: 'x' } }]),
    ).toBe(null)
  })

  it('takes the blocks that ended, in the order of their index, with their texts', () => {
    const reply = collectReply([
      STARTED,
      { type: 'block-started', index: 0, block: { type: 'tool_use', input: {} } },
      { type: 'block-started', index: 1, block: { type: 'text', text: '' } },
      {
        type: 'block-ended',
        index: 1,
        block: { type: 'text', text: 'b', n: 1 },
        raw: '{"type":"text","text":"b","n":1.0}',
      },
      { type: 'block-ended', index: 0, block: { type: 'tool_use', input: {} }, cutInput: '{"a' },
      {
        type: 'reply-updated',
        fields: { stop_reason: 'max_tokens' },
        usage: { output: 9 },
        report: { usage: createUsage({ input: 3, output: 9 }) },
      },
    ])
    expect(reply).toEqual({
      usage: createUsage({ input: 3, output: 9 }),
      message: {
        ...MESSAGE,
        content: [
          { type: 'tool_use', input: {} },
          { type: 'text', text: 'b', n: 1 },
        ],
        stop_reason: 'max_tokens',
        usage: { input: 3, output: 9 },
      },
      rawBlocks: [{ index: 1, text: '{"type":"text","text":"b","n":1.0}' }],
      cutInputs: [{ index: 0, text: '{"a' }],
      unfinished: [],
      others: [],
    })
  })

  it('keeps what began and did not end apart from the message', () => {
    const reply = collectReply([
      STARTED,
      {
        type: 'block-started',
        index: 0,
        block: { type: 'text', text: '' },
        raw: '{"type":"text","text":"","n":1.0}',
      },
      { type: 'block-grew', index: 0, delta: { kind: 'text', text: 'so' } },
      { type: 'block-grew', index: 0, delta: { kind: 'citation', citation: { n: 2 }, raw: '{"n":2.0}' } },
      { type: 'block-grew', index: 0, delta: { kind: 'other', value: { type: 'x' } } },
      { type: 'block-grew', index: 7, delta: { kind: 'text', text: 'for nobody' } },
    ])
    expect(reply?.message.content).toEqual([])
    expect(reply?.unfinished).toEqual([
      {
        index: 0,
        block: { type: 'text', text: 'so', citations: [{ n: 2 }] },
        raw: '{"type":"text","text":"","n":1.0}',
        input: '',
        citations: ['{"n":2.0}'],
      },
    ])
    expect(reply?.others).toEqual([{ index: 0, delta: { type: 'x' } }])
  })
})

describe('fields that come late', () => {
  it('replace those of the block, null too, but never its type', () => {
    const reply = collectReply([
      STARTED,
      { type: 'block-started', index: 0, block: { type: 'compaction', content: 'x' } },
      {
        type: 'block-grew',
        index: 0,
        delta: { kind: 'fields', fields: { type: 'y', content: null, extra: 1 } },
      },
    ])
    expect(reply?.unfinished.map(({ block }) => block)).toEqual([
      { type: 'compaction', content: null, extra: 1 },
    ])
  })
})

describe('overlay', () => {
  it('replaces, and lets null leave what was there', () => {
    expect(overlayFields({ a: 1, b: 2 }, { a: 3, b: null, c: null })).toEqual({ a: 3, b: 2, c: null })
    expect(overlayFields({}, { toString: null })).toEqual({ toString: null })
  })
})

const { network } = DEFAULT_POLICY.turn
const overloaded: ModelFailure = { kind: 'overloaded', retryable: true, message: 'busy' }

describe('planRetry', () => {
  it('doubles the delay up to the maximum, less the jitter', () => {
    const delays = [0, 1, 2, 3, 4, 5].map((attempt) => planRetry(overloaded, attempt, network, 0))
    expect(delays.map((retry) => (retry.again ? retry.delayMs : null))).toEqual([
      500, 1000, 2000, 4000, 8000, 8000,
    ])
    expect(planRetry(overloaded, 1, network, 0.5)).toEqual({ again: true, delayMs: 875 })
  })

  it('waits as long as the provider asks, up to the limit', () => {
    expect(planRetry({ ...overloaded, retryAfterMs: 20_000 }, 0, network, 0.9)).toEqual({
      again: true,
      delayMs: 20_000,
    })
    expect(planRetry({ ...overloaded, retryAfterMs: 301_000 }, 0, network, 0)).toEqual({
      again: false,
      why: 'the provider asks to wait 301 s',
    })
  })

  it('gives up if a retry cannot help or there were enough retries', () => {
    expect(planRetry({ ...overloaded, retryable: false }, 0, network, 0)).toMatchObject({ again: false })
    expect(planRetry(overloaded, network.retries, network, 0)).toEqual({ again: false, why: 'tried 9 times' })
  })
})
