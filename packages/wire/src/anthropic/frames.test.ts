import type { ReplyEvent } from '@tidemark/core'
import { describe, expect, it } from 'vitest'
import { toFrames } from './frames.ts'

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
    expect(toFrames(event)).toEqual([{ ...(name === undefined ? {} : { event: name }), data }])
  })
})
