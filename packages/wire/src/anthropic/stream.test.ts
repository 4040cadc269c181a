import { collect } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import {
  decode,
  delta,
  ending,
  frame,
  head,
  PING,
  START,
  STOP,
  start,
  stop,
} from '../../test/stream-frames.ts'
import type { Frame } from '../sse.ts'

describe('a whole stream', () => {
  it('becomes neutral events with one closing event', () => {
    const events = decode([
      START,
      start(0, { type: 'text', text: '' }),
      PING,
      delta(0, { type: 'text_delta', text: 'Hello' }),
      stop(0),
      ending({ stop_reason: 'end_turn', stop_sequence: null }),
      STOP,
    ])
    const message = { ...head, content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' }
    expect(events).toEqual([
      { type: 'reply-started', message: head },
      { type: 'block-started', index: 0, block: { type: 'text', text: '' } },
      { type: 'reply-alive' },
      { type: 'block-grew', index: 0, delta: { kind: 'text', text: 'Hello' } },
      { type: 'block-ended', index: 0, block: { type: 'text', text: 'Hello' } },
      {
        type: 'reply-updated',
        fields: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 42 },
      },
      {
        type: 'reply-ended',
        reply: {
          message: { ...message, usage: { ...head.usage, output_tokens: 42 } },
          rawBlocks: [],
          cutInputs: [],
          unfinished: [],
          others: [],
        },
      },
    ])
  })
})

describe('the message', () => {
  it('takes cumulative figures: the last one counts, null leaves what was there', () => {
    const usage = (figures: object) => frame({ type: 'message_delta', delta: {}, usage: figures })
    const reply = collect(
      decode([
        START,
        usage({ output_tokens: 7, input_tokens: null, cache_read_input_tokens: null, iterations: null }),
        usage({ output_tokens: 9, input_tokens: 12, server_tool_use: { web_search_requests: 1 } }),
        STOP,
      ]),
    )
    expect(reply?.message.usage).toEqual({
      input_tokens: 12,
      cache_read_input_tokens: 5,
      cache_creation: { ephemeral_5m_input_tokens: 3 },
      output_tokens: 9,
      iterations: null,
      server_tool_use: { web_search_requests: 1 },
    })
  })

  it('joins figures that make a usage only together', () => {
    const partial = frame({ type: 'message_start', message: { ...head, usage: { input_tokens: 3 } } })
    expect(collect(decode([partial, STOP]))?.message.usage).toBe(undefined)
    expect(collect(decode([partial, ending({}), STOP]))?.message.usage).toEqual({
      input_tokens: 3,
      output_tokens: 42,
    })
  })

  it('has the fields of its head and those told at the end, inside the delta and beside it', () => {
    const begun = frame({
      type: 'message_start',
      message: {
        ...head,
        context_management: null,
        diagnostics: { cache_miss_reason: null },
        input_transformations: [{ type: 'thinking_dropped' }],
      },
    })
    const done = ending(
      { stop_reason: 'refusal', stop_details: { category: 'bio' }, container: { id: 'c' } },
      { context_management: { applied_edits: [] }, input_transformations: null, next_year: 1 },
    )
    expect(collect(decode([begun, done, STOP]))?.message).toMatchObject({
      stop_reason: 'refusal',
      stop_details: { category: 'bio' },
      container: { id: 'c' },
      context_management: { applied_edits: [] },
      diagnostics: { cache_miss_reason: null },
      input_transformations: [{ type: 'thinking_dropped' }],
      next_year: 1,
    })
  })

  it('keeps blocks that stand in its head', () => {
    const begun = frame({
      type: 'message_start',
      message: { ...head, content: [{ type: 'text', text: 'pre' }] },
    })
    expect(collect(decode([begun, STOP]))?.message.content).toEqual([{ type: 'text', text: 'pre' }])
  })
})

describe('what is not known', () => {
  it.each<[string, Frame, object]>([
    [
      'an event',
      frame({ type: 'next_year', n: 1 }),
      { name: 'next_year', text: '{"type":"next_year","n":1}' },
    ],
    ['no JSON, no name', { data: '[DONE]' }, { name: '', text: '[DONE]' }],
    [
      'a name out of the prototype',
      { event: 'constructor', data: '{}' },
      { name: 'constructor', text: '{}' },
    ],
  ])('%s is passed on and kept', (_, other, expected) => {
    const events = decode([START, other, STOP])
    expect(events[1]).toEqual({ type: 'reply-other', ...expected })
    expect(collect(events)?.others).toEqual([expected])
  })

  it.each<[string, Frame]>([
    ['without a name', { data: STOP.data }],
    ['with another name', { event: 'message', data: STOP.data }],
  ])('a known type %s is understood by its data', (_, last) => {
    expect(decode([START, last]).at(-1)?.type).toBe('reply-ended')
  })

  it('a ping needs no data', () => {
    expect(decode([{ event: 'ping', data: '' }])[0]).toEqual({ type: 'reply-alive' })
  })
})
