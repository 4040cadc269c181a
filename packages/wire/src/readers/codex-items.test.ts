import { describe, expect, it } from 'vitest'
import { readCodexItem } from './codex-items.ts'
import type { JsonFields } from './codex-line.ts'
import { createUniqueCallIds } from './codex-tools.ts'

function taken(...items: readonly JsonFields[]): readonly unknown[] {
  const ids = createUniqueCallIds()
  return items.map((item) => readCodexItem(item, ids))
}

describe('items of a rollout', () => {
  it.each<[string, JsonFields, unknown]>([
    [
      'a call of a tool with free text',
      { type: 'custom_tool_call', call_id: 'a', name: 'apply_patch', input: '*** Begin' },
      { type: 'tool_use', id: 'a', name: 'apply_patch', input: { input: '*** Begin' } },
    ],
    [
      'a call of a tool in a namespace',
      { type: 'function_call', call_id: 'a', name: 'find', namespace: 'mcp__maps', arguments: '{}' },
      { type: 'tool_use', id: 'a', name: 'mcp__maps__find', input: {} },
    ],
    [
      'arguments that are no object',
      { type: 'function_call', call_id: 'a', name: 'x', arguments: '{"half' },
      { type: 'tool_use', id: 'a', name: 'x', input: { arguments: '{"half' } },
    ],
    [
      'arguments nested too deeply',
      {
        type: 'function_call',
        call_id: 'a',
        name: 'x',
        arguments: `{"a":${'['.repeat(3000)}${']'.repeat(3000)}}`,
      },
      {
        type: 'tool_use',
        id: 'a',
        name: 'x',
        input: { arguments: `{"a":${'['.repeat(3000)}${']'.repeat(3000)}}` },
      },
    ],
    [
      'a shell call',
      {
        type: 'local_shell_call',
        call_id: 'a',
        status: 'completed',
        action: { type: 'exec', command: ['ls'] },
      },
      {
        type: 'tool_use',
        id: 'a',
        name: 'local_shell',
        input: { action: { type: 'exec', command: ['ls'] } },
      },
    ],
    [
      'a search for tools that Codex runs',
      { type: 'tool_search_call', call_id: 'a', execution: 'client', arguments: { query: 'map' } },
      { type: 'tool_use', id: 'a', name: 'tool_search', input: { query: 'map' } },
    ],
    [
      'a search for tools that the provider runs',
      { type: 'tool_search_call', call_id: null, execution: 'server', arguments: { query: 'map' } },
      { type: 'tool_search_call', call_id: null, execution: 'server', arguments: { query: 'map' } },
    ],
    [
      'a web search, whose answer no log has',
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
      { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } },
    ],
    [
      'reasoning that can be read',
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
      { type: 'thinking', thinking: 'hm', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] },
    ],
    [
      'reasoning that cannot',
      { type: 'reasoning', id: 'rs_1', summary: [], content: null, encrypted_content: 'abc' },
      { type: 'thinking', id: 'rs_1', thinking: '', summary: [], content: null, encrypted_content: 'abc' },
    ],
    [
      'an output in blocks, an image among them',
      {
        type: 'function_call_output',
        call_id: 'a',
        output: [
          { type: 'input_text', text: 'see' },
          { type: 'input_image', image_url: 'data:image/png;base64,AAAA' },
          { type: 'input_image', image_url: 'https://x.test/a.png' },
          { type: 'input_audio', audio_url: 'x' },
        ],
      },
      {
        type: 'tool_result',
        tool_use_id: 'a',
        content: [
          { type: 'text', text: 'see' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
          { type: 'input_audio', audio_url: 'x' },
        ],
      },
    ],
    [
      'the tools a search has found',
      {
        type: 'tool_search_output',
        call_id: 'a',
        status: 'completed',
        execution: 'client',
        tools: [{ name: 'x' }],
      },
      { type: 'tool_result', tool_use_id: 'a', content: '[{"name":"x"}]' },
    ],
  ])('%s', (_, item, block) => {
    expect(taken(item)).toMatchObject([{ blocks: [block] }])
  })

  it('arguments that parsing would change keep their text', () => {
    const given = '{"2":1,"1":12345678901234567890}'
    expect(taken({ type: 'function_call', call_id: 'a', name: 'x', arguments: given })).toMatchObject([
      { raw: [{ index: 0, text: `{"type":"tool_use","id":"a","name":"x","input":${given}}` }] },
    ])
  })

  it('a call id used again is another call, and the newest is answered', () => {
    const call = { type: 'function_call', call_id: 'call_0', name: 'x', arguments: '{}' }
    const output = { type: 'function_call_output', call_id: 'call_0', output: 'y' }
    expect(taken(call, output, call, output)).toMatchObject([
      { blocks: [{ id: 'call_0' }] },
      { blocks: [{ tool_use_id: 'call_0' }] },
      { blocks: [{ id: 'call_0#2' }] },
      { blocks: [{ tool_use_id: 'call_0#2' }] },
    ])
  })

  it.each(['ghost_snapshot', 'additional_tools', 'compaction_trigger', 'not yet known'])(
    '%s is kept as it is',
    (type) => {
      expect(taken({ type })).toEqual([{ from: 'other' }])
    },
  )
})
