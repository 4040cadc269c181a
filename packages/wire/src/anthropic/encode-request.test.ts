import type { Payload } from '@tidemark/core/context/payload'
import { describe, expect, it } from 'vitest'
import { type EncodeRequestOptions, encodeRequestFragments, joinRequestFragments } from './encode-request.ts'

const EPHEMERAL = { type: 'ephemeral' } as const

const PAYLOAD: Payload = {
  model: 'claude-x',
  max_tokens: 100,
  tools: [
    { name: 'read', input_schema: { type: 'object' } },
    { name: 'edit', input_schema: { type: 'object' }, cache_control: EPHEMERAL },
  ],
  system: [{ type: 'text', text: 'Be kind.', cache_control: EPHEMERAL }],
  messages: [
    { role: 'user', content: 'hello' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'hi' },
        { type: 'tool_use', id: 't', name: 'read', input: { a: 1 } },
      ],
    },
    { role: 'system', clear_at: 'next_user_message', content: [{ type: 'text', text: 'note' }] },
  ],
  stream: true,
  betas: ['b-1', 'b-2'],
}

describe('encodeRequest', () => {
  it('has one fragment for each parameter, tool, system block and message block', () => {
    const { fragments, end, betas } = encodeRequestFragments(PAYLOAD)
    const marker = ',"cache_control":{"type":"ephemeral"}}'
    expect(fragments).toEqual([
      {
        zone: 'parameters',
        path: 'model',
        lead: '{',
        text: '"model":"claude-x"',
        bare: '"model":"claude-x"',
      },
      {
        zone: 'parameters',
        path: 'max_tokens',
        lead: ',',
        text: '"max_tokens":100',
        bare: '"max_tokens":100',
      },
      { zone: 'parameters', path: 'stream', lead: ',', text: '"stream":true', bare: '"stream":true' },
      {
        zone: 'tools',
        path: 'tools.0',
        lead: ',"tools":[',
        text: '{"name":"read","input_schema":{"type":"object"}}',
        bare: '{"name":"read","input_schema":{"type":"object"}}',
      },
      {
        zone: 'tools',
        path: 'tools.1',
        lead: ',',
        text: `{"name":"edit","input_schema":{"type":"object"}${marker}`,
        bare: '{"name":"edit","input_schema":{"type":"object"}}',
        marker: EPHEMERAL,
      },
      {
        zone: 'system',
        path: 'system.0',
        lead: '],"system":[',
        text: `{"type":"text","text":"Be kind."${marker}`,
        bare: '{"type":"text","text":"Be kind."}',
        marker: EPHEMERAL,
      },
      {
        zone: 'messages',
        path: 'messages.0.content.0',
        role: 'user',
        lead: '],"messages":[',
        text: '{"role":"user","content":[{"type":"text","text":"hello"}',
        bare: '{"role":"user","content":[{"type":"text","text":"hello"}',
      },
      {
        zone: 'messages',
        path: 'messages.1.content.0',
        role: 'assistant',
        lead: ']},',
        text: '{"role":"assistant","content":[{"type":"text","text":"hi"}',
        bare: '{"role":"assistant","content":[{"type":"text","text":"hi"}',
      },
      {
        zone: 'messages',
        path: 'messages.1.content.1',
        role: 'assistant',
        lead: ',',
        text: '{"type":"tool_use","id":"t","name":"read","input":{"a":1}}',
        bare: '{"type":"tool_use","id":"t","name":"read","input":{"a":1}}',
      },
      {
        zone: 'messages',
        path: 'messages.2.content.0',
        role: 'system',
        lead: ']},',
        text: '{"role":"system","clear_at":"next_user_message","content":[{"type":"text","text":"note"}',
        bare: '{"role":"system","clear_at":"next_user_message","content":[{"type":"text","text":"note"}',
      },
    ])
    expect([end, betas]).toEqual([']}]}', ['b-1', 'b-2']])
  })

  it.each<[string, Partial<Payload>, EncodeRequestOptions, string]>([
    [
      'strings as blocks',
      { system: 's', messages: [{ role: 'user', content: 'u' }] },
      {},
      '{"model":"m","system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"u"}]}]}',
    ],
    [
      'strings kept',
      {
        system: 's',
        messages: [
          { role: 'user', content: 'u' },
          { role: 'assistant', content: 'a' },
        ],
      },
      { strings: 'keep' },
      '{"model":"m","system":"s","messages":[{"role":"user","content":"u"},{"role":"assistant","content":"a"}]}',
    ],
    [
      'empty strings as no block',
      { system: '', messages: [{ role: 'user', content: '' }] },
      {},
      '{"model":"m","system":[],"messages":[{"role":"user","content":[]}]}',
    ],
    [
      'empty lists',
      { system: [], tools: [], messages: [] },
      {},
      '{"model":"m","tools":[],"system":[],"messages":[]}',
    ],
    [
      'a message of fields alone',
      {
        messages: [
          { role: 'system', output_config: { effort: 'low' }, content: [] },
          { role: 'user', content: 'u' },
        ],
      },
      {},
      '{"model":"m","messages":[{"role":"system","output_config":{"effort":"low"},"content":[]},{"role":"user","content":[{"type":"text","text":"u"}]}]}',
    ],
  ])('spells %s', (_, fields, options, body) => {
    expect(
      joinRequestFragments(encodeRequestFragments({ model: 'm', messages: [], ...fields }, options)),
    ).toBe(body)
  })

  it('spells a block from its raw text, and puts its marker behind', () => {
    const raw = '{"type":"tool_use","input":{"b":1,"10":2.0} }'
    const block = { type: 'tool_use', input: { 10: 2, b: 1 } }
    const encode = (extra: object) =>
      encodeRequestFragments(
        {
          model: 'm',
          messages: [
            { role: 'user', content: 'u' },
            {
              role: 'assistant',
              content: [
                { type: 'text', text: 'x' },
                { ...block, ...extra },
              ],
            },
          ],
        },
        { raw: { messages: [undefined, new Map([[1, raw]])] } },
      ).fragments.at(-1)
    expect(encode({})).toMatchObject({ text: raw, bare: raw })
    expect(encode({ cache_control: EPHEMERAL })).toMatchObject({
      text: '{"type":"tool_use","input":{"b":1,"10":2.0} ,"cache_control":{"type":"ephemeral"}}',
      bare: raw,
      marker: EPHEMERAL,
    })
  })

  it('takes the marker from the value, whatever the raw text has', () => {
    const raw = new Map([[0, '{"type":"text","cache_control":{"type":"ephemeral"},"text":"a","n":1.0}']])
    const content = [{ type: 'text', text: 'a', n: 1 }]
    const encoded = encodeRequestFragments(
      { model: 'm', messages: [{ role: 'user', content }] },
      { raw: { messages: [raw] } },
    )
    expect(encoded.fragments.at(-1)?.text).toBe(
      '{"role":"user","content":[{"type":"text","text":"a","n":1.0}',
    )
  })

  it('leaves markers inside a block out of its bare text, and only markers', () => {
    const content = [
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'text', text: 'a', cache_control: EPHEMERAL }],
      },
      {
        type: 'document',
        source: { type: 'content', content: [{ type: 'text', text: 'a', cache_control: EPHEMERAL }] },
      },
      { type: 'tool_use', id: 't', name: 'n', input: { cache_control: 'mine' } },
    ]
    const { fragments } = encodeRequestFragments({ model: 'm', messages: [{ role: 'user', content }] })
    expect(fragments.slice(1).map(({ bare }) => bare)).toEqual([
      '{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"}]}',
      '{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]}}',
      '{"type":"tool_use","id":"t","name":"n","input":{"cache_control":"mine"}}',
    ])
    expect(fragments[1]?.text).toContain('"cache_control":{"type":"ephemeral"}')
  })

  it('has the very same bare text where a text only speaks of markers', () => {
    const raw = '{"type": "tool_result", "content": [ {"type":"text", "text":"cache_control"} ], "n": 1.0}'
    const content = [{ type: 'tool_result', content: [{ type: 'text', text: 'cache_control' }], n: 1 }]
    const options = { raw: { messages: [new Map([[0, raw]])] } }
    const fragment = encodeRequestFragments(
      { model: 'm', messages: [{ role: 'user', content }] },
      options,
    ).fragments.at(-1)
    expect(fragment).toMatchObject({
      text: `{"role":"user","content":[${raw}`,
      bare: `{"role":"user","content":[${raw}`,
    })
  })

  it('knows the marker of automatic caching', () => {
    const { fragments } = encodeRequestFragments({ model: 'm', cache_control: EPHEMERAL, messages: [] })
    expect(fragments[1]).toEqual({
      zone: 'parameters',
      path: 'cache_control',
      lead: ',',
      text: '"cache_control":{"type":"ephemeral"}',
      bare: '',
      marker: EPHEMERAL,
    })
  })
})
