import { findCutPoints } from '@tidemark/core/context/flatten-context'
import type { Payload } from '@tidemark/core/context/payload'
import { toBlocks } from '@tidemark/core/log/block'
import type { JsonObject } from '@tidemark/core/log/json'
import type { KnownRecord } from '@tidemark/core/log/record'
import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { ProviderCodec } from '../providers/provider-codec.ts'
import { chatCodec } from './chat-codec.ts'
import { responsesCodec } from './responses-codec.ts'

/** Encodes the messages of a client's request, as after a rewrite, for the same API or the other. */
function encodeRead(from: ProviderCodec, body: JsonObject, to: ProviderCodec): unknown {
  const request = from.client.readRequest({ body, headers: { get: () => null } })
  if (request === null) throw new Error('not read')
  const { input, messages } = to.toBody({ model: 'gpt-5.4', messages: request.messages } as Payload)
  return input ?? messages
}

const audio = { type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }
const patch = '*** Begin'

describe('content of a client of the Responses API', () => {
  it.each([
    ['audio', [audio]],
    ['an image and audio', [{ type: 'input_image', image_url: 'https://a/b.png', detail: 'low' }, audio]],
    ['a stored file', [{ type: 'input_file', file_id: 'file_1' }]],
    ['a stored image', [{ type: 'input_image', file_id: 'file_2', detail: 'auto' }]],
    [
      'a part that nobody knows',
      [
        { type: 'input_text', text: 'See.' },
        { type: 'input_video', id: 'v' },
      ],
    ],
  ])('stays in its message: %s', (_, content) => {
    const input = [{ type: 'message', role: 'user', content }]
    expect(encodeRead(responsesCodec, { model: 'gpt-5.4', input }, responsesCodec)).toEqual(input)
  })

  it('becomes content of Chat Completions after a switch', () => {
    const input = [
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_image', image_url: 'https://a/b.png', detail: 'low' }, audio],
      },
      { type: 'custom_tool_call', call_id: 'c1', name: 'patch', input: patch },
      { type: 'custom_tool_call_output', call_id: 'c1', output: 'done' },
    ]
    expect(encodeRead(responsesCodec, { model: 'gpt-5.4', input }, chatCodec)).toEqual([
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a/b.png' } }, audio] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'c1',
            type: 'function',
            function: { name: 'patch', arguments: JSON.stringify({ input: patch }) },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'done' },
    ])
  })
})

it('content of a client of Chat Completions becomes items of the Responses API after a switch', () => {
  const messages = [
    {
      role: 'user',
      content: [
        { type: 'image_url', image_url: { url: 'https://a/b.png', detail: 'low' } },
        { type: 'text', text: 'See.', note: 1 },
        audio,
      ],
    },
    {
      role: 'assistant',
      content: [{ type: 'refusal', refusal: 'No.' }],
      tool_calls: [{ id: 'c1', type: 'custom', custom: { name: 'patch', input: patch } }],
    },
    { role: 'tool', tool_call_id: 'c1', content: 'done' },
  ]
  expect(encodeRead(chatCodec, { model: 'gpt-5.4', messages }, responsesCodec)).toEqual([
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_image', image_url: 'https://a/b.png', detail: 'auto' },
        { type: 'input_text', text: 'See.' },
        audio,
      ],
    },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'No.', annotations: [] }],
    },
    { type: 'function_call', call_id: 'c1', name: 'patch', arguments: JSON.stringify({ input: patch }) },
    { type: 'function_call_output', call_id: 'c1', output: 'done' },
  ])
})

it.each([
  [
    'shell_call',
    { id: 'sh_1', call_id: 'c1', action: { commands: ['ls'] }, status: 'completed' },
    { type: 'shell_call_output', call_id: 'c1', output: [] },
  ],
  [
    'apply_patch_call',
    { id: 'ap_1', call_id: 'c1', operation: {}, status: 'completed' },
    { type: 'apply_patch_call_output', call_id: 'c1', status: 'completed' },
  ],
  [
    'local_shell_call',
    { id: 'ls_1', call_id: 'c1', action: {}, status: 'completed' },
    { type: 'local_shell_call_output', id: 'c1', output: '' },
  ],
  [
    'mcp_approval_request',
    { id: 'c1', name: 'n', arguments: '{}', server_label: 's' },
    { type: 'mcp_approval_response', approval_request_id: 'c1', approve: true },
  ],
])('no cut comes between a %s and its result, and both stay whole', (type, call, output) => {
  const builder = new SessionBuilder('pairs')
  const input = [{ type, ...call }, output]
  const request = responsesCodec.client.readRequest({
    body: { model: 'gpt-5.4', input },
    headers: { get: () => null },
  })
  const [answered, result] = request?.messages ?? []
  builder.user('go')
  builder.assistant('m1', toBlocks(answered?.content ?? []))
  builder.user(toBlocks(result?.content ?? []))
  builder.user('and?')
  expect(findCutPoints(builder.records as KnownRecord[])).toEqual([0, 1, 3, 4])
  expect(encodeRead(responsesCodec, { model: 'gpt-5.4', input }, responsesCodec)).toEqual(input)
})
