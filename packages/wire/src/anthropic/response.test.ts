import { describe, expect, it } from 'vitest'
import { fromResponse } from './response.ts'

describe('fromResponse', () => {
  it('keeps the exact text of a block that parsing would change', () => {
    const body =
      '{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"}, {"type":"tool_use","input":{"b":1,"2":0}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}'
    const response = fromResponse(body)
    expect(response.ok && response.reply.rawBlocks).toEqual([
      { index: 1, text: '{"type":"tool_use","input":{"b":1,"2":0}}' },
    ])
  })

  it('leaves out figures that make no usage', () => {
    const response = fromResponse('{"id":"msg_1","model":"m","content":[],"usage":{"output_tokens":2}}')
    expect(response.ok && response.reply.message).toEqual({
      id: 'msg_1',
      role: 'assistant',
      model: 'm',
      content: [],
    })
  })

  it.each([
    ['<html>hello</html>', 'bad-reply'],
    ['[]', 'bad-reply'],
    ['{"id":"msg_1","model":"m"}', 'bad-reply'],
    ['{"id":"msg_1","model":"m","content":[{}]}', 'bad-reply'],
    ['{"model":"m","content":[]}', 'bad-reply'],
    ['{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', 'overloaded'],
  ])('refuses %s as %s', (body, kind) => {
    const response = fromResponse(body)
    expect(!response.ok && response.failure.kind).toBe(kind)
  })
})
