import { collectReply } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { decode, frame, STOP } from '../../test/stream-frames.ts'
import { replyToEvents } from '../providers/reply-events.ts'
import { decodeResponseBody, encodeResponseBody } from './response-body.ts'

describe('fromResponse', () => {
  it('keeps the exact text of a block that parsing would change', () => {
    const body =
      '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"}, {"type":"tool_use","input":{"b":1,"2":0}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}'
    const response = decodeResponseBody(body)
    expect(response.ok && response.reply.rawBlocks).toEqual([
      { index: 1, text: '{"type":"tool_use","input":{"b":1,"2":0}}' },
    ])
  })

  it('keeps figures that make no usage apart, as a stream does', () => {
    const body = { id: 'msg_1', type: 'message', model: 'm', content: [], usage: { output_tokens: 2 } }
    const response = decodeResponseBody(JSON.stringify(body))
    const reply = response.ok ? response.reply : null
    expect([reply?.message, reply?.figures]).toEqual([
      { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] },
      { output_tokens: 2 },
    ])
    const streamed = decode([frame({ type: 'message_start', message: body }), STOP])
    expect(streamed.at(-1)).toEqual({ type: 'reply-ended', reply })
    const events = response.ok ? replyToEvents(response.reply) : []
    expect([collectReply(events), collectReply(streamed)]).toEqual([reply, reply])
    expect(reply === null ? null : decodeResponseBody(encodeResponseBody(reply))).toEqual(response)
  })

  it.each([
    ['<html>hello</html>', 'bad-reply'],
    ['[]', 'bad-reply'],
    ['{"id":"msg_1","model":"m"}', 'bad-reply'],
    ['{"id":"msg_1","model":"m","content":[{}]}', 'bad-reply'],
    ['{"model":"m","content":[]}', 'bad-reply'],
    ['{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 'overloaded'],
  ])('refuses %s as %s', (body, kind) => {
    const response = decodeResponseBody(body)
    expect(!response.ok && response.failure.kind).toBe(kind)
  })
})
