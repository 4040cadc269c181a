import { describe, expect, it } from 'vitest'
import {
  decode,
  delta,
  ending,
  frame,
  head,
  START,
  STOP,
  start,
  stop,
  TOOL,
} from '../../test/stream-frames.ts'
import { failure } from '../failure/classify.ts'
import type { Frame } from '../sse.ts'
import { byteStart, endBytes, fromBytes } from './stream.ts'

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

  it.each<[string, readonly Frame[]]>([
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
    const [state, events] = fromBytes(byteStart, bytes.subarray(0, -2))
    expect(events.map(({ type }) => type)).toEqual(['reply-started'])
    expect(endBytes(state)[1].map(({ type }) => type)).toEqual(['reply-ended'])
  })

  it('that stop inside a character say so', () => {
    const [state] = fromBytes(byteStart, new TextEncoder().encode('data: é').subarray(0, -1))
    expect(endBytes(state)[1]).toMatchObject([
      {
        failure: {
          message: 'The connection ended before the reply was complete, in the middle of a character',
        },
      },
    ])
  })

  it('end with the cause that is known', () => {
    const [state] = fromBytes(byteStart, bytes.subarray(0, 300))
    const [closed, events] = endBytes(state, failure('aborted', 'stopped by the person'))
    expect(events).toMatchObject([{ type: 'reply-failed', failure: { kind: 'aborted', retryable: false } }])
    expect(endBytes(closed)[1]).toEqual([])
  })
})
