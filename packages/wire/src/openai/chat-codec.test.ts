import { runStepsAtOnce } from '@tidemark/core/log/work-steps'
import { describe, expect, it } from 'vitest'
import { chatCodec } from './chat-codec.ts'

const user = { role: 'user', content: 'Hello.' }
const answered = (call: object) => [
  user,
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c1', content: 'done' },
]

describe('messages of a client of Chat Completions', () => {
  it.each([
    ['a text', [user]],
    [
      'an image with its detail',
      [
        {
          role: 'user',
          content: [{ type: 'image_url', image_url: { url: 'https://a/b.png', detail: 'low' } }],
        },
      ],
    ],
    ['a file', [{ role: 'user', content: [{ type: 'file', file: { file_id: 'file-1' } }] }]],
    [
      'a call of a tool that takes free text',
      answered({ id: 'c1', type: 'custom', custom: { name: 'patch', input: '*** Begin' } }),
    ],
    [
      'arguments in odd spelling',
      answered({ id: 'c1', type: 'function', function: { name: 'read', arguments: '{ "n": 1.0 }' } }),
    ],
    [
      'arguments that are no JSON',
      answered({ id: 'c1', type: 'function', function: { name: 'read', arguments: '{"n": ' } }),
    ],
    ['empty arguments', answered({ id: 'c1', type: 'function', function: { name: 'read', arguments: '' } })],
  ])('go out as they came: %s', (_, messages) => {
    const body = JSON.parse(JSON.stringify({ model: 'gpt-4.1', messages }))
    const request = chatCodec.client.readRequest({ body, headers: { get: () => null } })
    if (request === null) throw new Error('not read')
    const raw = request.messages.map(
      ({ content }) =>
        new Map(
          (typeof content === 'string' ? [] : content).flatMap((block, index) => {
            const exact = request.findExactBlock?.(block)
            return exact === undefined ? [] : [[index, exact] as const]
          }),
        ),
    )
    const payload = { model: request.model, messages: request.messages }
    expect(JSON.parse(runStepsAtOnce(chatCodec.encode({ payload, raw }, {})).text).messages).toEqual(messages)
  })
})
