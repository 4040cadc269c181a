import type { Reply, ReplyEvent } from '@tidemark/core/engine/reply'
import { describe, expect, it } from 'vitest'
import { createReplySplitter } from '../providers/reply-events.ts'
import { encodeReplyEvent, encodeReplyFrames } from './reply-frames.ts'

const REPLY: Reply = {
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x',
    content: [
      { type: 'thinking', thinking: '', signature: 'c2ln' },
      { type: 'text', text: 'Hello!' },
      { type: 'tool_use', id: 't', name: 'n', input: { a: 1 } },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: {
      input_tokens: 10,
      cache_read_input_tokens: 4,
      cache_creation: { ephemeral_5m_input_tokens: 0 },
      output_tokens: 20,
      iterations: [],
    },
  },
  rawBlocks: [{ index: 2, text: '{"type":"tool_use","id":"t","name":"n","input":{"a":1.0}}' }],
  cutInputs: [],
  unfinished: [],
  others: [],
}

describe('framesOf', () => {
  it('gives the frames the API sends', () => {
    const frames = encodeReplyFrames(REPLY, createReplySplitter(4))
    expect(frames.every(({ event, data }) => event === JSON.parse(data).type)).toBe(true)
    expect(frames.map(({ data }) => data)).toEqual([
      '{"type":"message_start","message":{"type":"message","id":"msg_1","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":0},"output_tokens":1,"iterations":null}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}',
      '{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}',
      '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Hell"}}',
      '{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"o!"}}',
      '{"type":"content_block_stop","index":1}',
      '{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"n","input":{}}}',
      '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}',
      '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\\"a\\""}}',
      '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":":1.0"}}',
      '{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"}"}}',
      '{"type":"content_block_stop","index":2}',
      '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":20,"iterations":[]}}',
      '{"type":"message_stop"}',
    ])
  })

  it.each([
    [
      { type: 'compaction', content: 'S', encrypted_content: 'E' },
      ['content_block_start', 'content_block_delta', 'content_block_stop'],
    ],
    [
      { type: 'compaction', content: 'S', encrypted_content: null, signature: 'x' },
      ['content_block_start', 'content_block_stop'],
    ],
  ])('sends %j in its own form', (block, names) => {
    const frames = encodeReplyFrames({
      ...REPLY,
      message: { ...REPLY.message, content: [block] },
      rawBlocks: [],
    })
    expect(frames.slice(1, -2).map(({ event }) => event)).toEqual(names)
  })
})

describe('toFrames', () => {
  it.each<[ReplyEvent, string | undefined, string]>([
    [{ type: 'reply-alive' }, 'ping', '{"type":"ping"}'],
    [{ type: 'reply-other', name: 'next_year', text: '{"n":1.0}' }, 'next_year', '{"n":1.0}'],
    [{ type: 'reply-other', name: '', text: '[DONE]' }, undefined, '[DONE]'],
    [
      {
        type: 'reply-updated',
        fields: {
          stop_reason: 'end_turn',
          context_management: null,
          container: { id: 'c' },
          stop_details: null,
        },
        usage: { output_tokens: 3 },
      },
      'message_delta',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn","container":{"id":"c"},"stop_details":null},"usage":{"output_tokens":3},"context_management":null}',
    ],
    [
      { type: 'block-grew', index: 1, delta: { kind: 'thinking', text: 'a', estimatedTokens: 4 } },
      'content_block_delta',
      '{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"a","estimated_tokens":4}}',
    ],
    [
      { type: 'block-grew', index: 1, delta: { kind: 'other', value: { type: 'mood_delta', mood: 1 } } },
      'content_block_delta',
      '{"type":"content_block_delta","index":1,"delta":{"type":"mood_delta","mood":1}}',
    ],
    [
      {
        type: 'reply-failed',
        failure: { kind: 'overloaded', retryable: true, message: 'Overloaded' },
        reply: null,
      },
      'error',
      '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    ],
  ])('%j', (event, name, data) => {
    expect(encodeReplyEvent(event)).toEqual([{ ...(name === undefined ? {} : { event: name }), data }])
  })
})
