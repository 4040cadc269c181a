import { collectReply } from '@tidemark/core/testing'
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
  TOOL,
} from '../../test/stream-frames.ts'
import { createFailure } from '../failure/classify-failure.ts'
import type { SseFrame } from '../http/sse.ts'
import { decodeReplyBytes, finishReplyBytes, initialByteStreamState } from './decode-stream.ts'

describe('an early end', () => {
  const OPEN = [START, start(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text: 'Hel' })]

  it('fails once, with what had arrived', () => {
    const events = decode([
      ...OPEN,
      stop(0),
      start(1, TOOL),
      delta(1, { type: 'input_json_delta', partial_json: '{"a' }),
    ])
    expect(events.at(-1)).toEqual({
      type: 'reply-failed',
      failure: {
        kind: 'network',
        retryable: true,
        message: 'The connection ended before the reply was complete',
      },
      reply: {
        usage: { input: 10, read: 5, writes: { short: 3, long: 0 }, output: 1 },
        message: { ...head, content: [{ type: 'text', text: 'Hel' }] },
        rawBlocks: [],
        cutInputs: [],
        unfinished: [{ index: 1, block: TOOL, input: '{"a', citations: [] }],
        others: [],
      },
    })
  })

  it('has no reply where none had begun', () => {
    expect(decode([])).toMatchObject([{ type: 'reply-failed', failure: { kind: 'network' }, reply: null }])
    expect(decode([STOP])).toMatchObject([
      { type: 'reply-failed', failure: { kind: 'bad-reply' }, reply: null },
    ])
  })

  it('may come as an error, and nothing counts after it', () => {
    const error = frame({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    const events = decode([...OPEN, error, stop(0), STOP, error])
    expect(events.slice(3)).toMatchObject([
      {
        type: 'reply-failed',
        failure: {
          kind: 'overloaded',
          retryable: true,
          message: 'Overloaded',
          errorType: 'overloaded_error',
        },
      },
    ])
  })

  it('may come as an error without an envelope', () => {
    const events = decode([START, { event: 'error', data: 'upstream connect error' }])
    expect(events[1]).toMatchObject({
      type: 'reply-failed',
      failure: { kind: 'unknown', message: 'upstream connect error' },
    })
  })

  it('may come as an error whose data is of the error’s own type', () => {
    const events = decode([
      START,
      { event: 'error', data: '{"type":"overloaded_error","message":"Overloaded"}' },
    ])
    expect(events[1]).toMatchObject({ type: 'reply-failed', failure: { kind: 'overloaded' } })
  })

  it.each<[string, readonly SseFrame[]]>([
    ['a block before the message', [start(0, { type: 'text', text: '' })]],
    ['the end of a message before its beginning', [ending({})]],
    ['a message without id or model', [frame({ type: 'message_start', message: { ...head, id: '' } })]],
    ['the message began twice', [START, START]],
    ['block 0 began twice', [...OPEN, start(0, { type: 'text', text: '' })]],
    ['a block without index or type', [START, start(0, {})]],
    ['a delta without index or content', [START, frame({ type: 'content_block_delta', index: 0 })]],
    ['a delta for block 3, which is not open', [START, delta(3, { type: 'text_delta', text: 'x' })]],
    ['the end of block 3, which is not open', [START, stop(3)]],
    ['message_delta without readable data', [START, { event: 'message_delta', data: '{"delta":' }]],
  ])('comes with a broken protocol: %s', (what, frames) => {
    const closing = decode([...frames, STOP]).filter(
      ({ type }) => type === 'reply-failed' || type === 'reply-ended',
    )
    expect(closing).toMatchObject([
      {
        failure: {
          kind: 'bad-reply',
          retryable: true,
          message: `The stream broke its own protocol: ${what}`,
        },
      },
    ])
  })
})

describe('bytes', () => {
  const text = [START, STOP].map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`).join('')
  const bytes = new TextEncoder().encode(text)

  it('count to the last frame, blank line or not', () => {
    const [state, events] = decodeReplyBytes(initialByteStreamState, bytes.subarray(0, -2))
    expect(events.map(({ type }) => type)).toEqual(['reply-started'])
    expect(finishReplyBytes(state)[1].map(({ type }) => type)).toEqual(['reply-ended'])
  })

  it('that end inside a character are reported', () => {
    const [state] = decodeReplyBytes(
      initialByteStreamState,
      new TextEncoder().encode('data: é').subarray(0, -1),
    )
    expect(finishReplyBytes(state)[1]).toMatchObject([
      {
        failure: {
          message: 'The connection ended before the reply was complete, in the middle of a character',
        },
      },
    ])
  })

  it('end with the cause that is known', () => {
    const [state] = decodeReplyBytes(initialByteStreamState, bytes.subarray(0, 300))
    const [closed, events] = finishReplyBytes(state, createFailure('aborted', 'stopped by the user'))
    expect(events).toMatchObject([{ type: 'reply-failed', failure: { kind: 'aborted', retryable: false } }])
    expect(finishReplyBytes(closed)[1]).toEqual([])
  })
})

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
    const counts = { input: 10, read: 5, writes: { short: 3, long: 0 }, output: 1 }
    expect(events).toEqual([
      { type: 'reply-started', message: head, report: { usage: counts } },
      { type: 'block-started', index: 0, block: { type: 'text', text: '' } },
      { type: 'reply-alive' },
      { type: 'block-grew', index: 0, delta: { kind: 'text', text: 'Hello' } },
      { type: 'block-ended', index: 0, block: { type: 'text', text: 'Hello' } },
      {
        type: 'reply-updated',
        fields: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 42 },
        report: { usage: { ...counts, output: 42 }, stop: 'done' },
      },
      {
        type: 'reply-ended',
        reply: {
          usage: { ...counts, output: 42 },
          stop: 'done',
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
    const reply = collectReply(
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
    expect(collectReply(decode([partial, STOP]))?.message.usage).toBe(undefined)
    expect(collectReply(decode([partial, ending({}), STOP]))?.message.usage).toEqual({
      input_tokens: 3,
      output_tokens: 42,
    })
  })

  it('has the fields of its head and those sent at the end, inside the delta and beside it', () => {
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
    expect(collectReply(decode([begun, done, STOP]))?.message).toMatchObject({
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
    expect(collectReply(decode([begun, STOP]))?.message.content).toEqual([{ type: 'text', text: 'pre' }])
  })
})

describe('what is not known', () => {
  it.each<[string, SseFrame, object]>([
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
    expect(collectReply(events)?.others).toEqual([expected])
  })

  it.each<[string, SseFrame]>([
    ['without a name', { data: STOP.data }],
    ['with another name', { event: 'message', data: STOP.data }],
  ])('a known type %s is understood by its data', (_, last) => {
    expect(decode([START, last]).at(-1)?.type).toBe('reply-ended')
  })

  it('a ping needs no data', () => {
    expect(decode([{ event: 'ping', data: '' }])[0]).toEqual({ type: 'reply-alive' })
  })
})
