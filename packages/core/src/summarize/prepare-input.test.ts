import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { createProfile } from '../policy/strict-profile.ts'
import { validate } from '../view/validate/validate.ts'
import { TRUNCATION_MARKER } from './head-drop.ts'
import { type InputParts, prepareInput, SUMMARISER_SYSTEM_PROMPT } from './prepare-input.ts'
import { answerSettings, type Summariser } from './summariser.ts'

const profile = createProfile({ window: 200_000, maxOutput: 64_000 })
const summariser: Summariser = { model: 'model-b', profile, window: 200_000, outputTokens: 20_000 }
const read = {
  name: 'Read',
  description: 'reads',
  input_schema: { type: 'object' },
  cache_control: { type: 'ephemeral' },
}
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

function input(teller: Teller, changes: Partial<InputParts> = {}) {
  return prepareInput({
    entries: teller.view.entries.toArray(),
    prompt: 'TASK',
    summariser,
    tools: [read],
    ...changes,
  })
}

const said = (teller: Teller, changes: Partial<InputParts> = {}): unknown =>
  input(teller, changes).payload.messages.map(({ role, content }) => [role, content])

describe('the request of a call of its own', () => {
  it('has a short system prompt, the task as its last words, room for the answer, and passes the rules', () => {
    const teller = new Teller()
    teller.user('one')
    teller.assistant('m1', 'yes')
    const { payload } = input(teller)
    expect(payload).toEqual({
      model: 'model-b',
      max_tokens: 20_000,
      system: SUMMARISER_SYSTEM_PROMPT,
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'TASK' },
      ],
    })
    expect(validate(payload, profile)).toEqual([])
  })

  it('the task joins what the person said last', () => {
    const teller = new Teller()
    teller.user('one')
    expect(said(teller)).toEqual([
      [
        'user',
        [
          { type: 'text', text: 'one' },
          { type: 'text', text: 'TASK' },
        ],
      ],
    ])
  })

  it('media are named, also inside results; thinking is gone', () => {
    const teller = new Teller()
    teller.user([{ type: 'text', text: 'look' }, image, { type: 'document', source: {} }])
    teller.assistant('m1', [{ type: 'thinking', thinking: 'hm', signature: 's' }])
    teller.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: { n: 1 } }])
    teller.result('c1', [{ type: 'text', text: 'here' }, image])
    expect(said(teller)).toEqual([
      [
        'user',
        [
          { type: 'text', text: 'look' },
          { type: 'text', text: '[image]' },
          { type: 'text', text: '[document]' },
        ],
      ],
      ['assistant', [{ type: 'tool_use', id: 'c1', name: 'Read', input: { n: 1 } }]],
      [
        'user',
        [
          {
            type: 'tool_result',
            tool_use_id: 'c1',
            content: [
              { type: 'text', text: 'here' },
              { type: 'text', text: '[image]' },
            ],
          },
          { type: 'text', text: 'TASK' },
        ],
      ],
    ])
  })

  it.each<[string, readonly (typeof read)[], readonly unknown[]]>([
    ['one that was called, unmarked', [{ ...read, name: 'Bash' }, read], ['Read']],
    ['another, where that is gone', [{ ...read, name: 'Bash' }], ['Bash']],
    ['one of its own, where there is none', [], ['unavailable']],
  ])('while there are calls a tool is declared: %s', (_, tools, names) => {
    const teller = new Teller()
    teller.user('one')
    teller.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    teller.result('c1', 'text')
    const { payload } = input(teller, { tools })
    expect(payload.tools?.map((tool) => tool.name)).toEqual(names)
    expect(payload.tools?.some((tool) => 'cache_control' in tool)).toBe(false)
    expect(validate(payload, profile)).toEqual([])
    const told = input(teller, { tools, asText: true }).payload
    expect([told.tools, validate(told, profile)]).toEqual([undefined, []])
    expect(told.messages.map(({ content }) => content)).toEqual([
      'one',
      [{ type: 'text', text: '[call of Read: {}]' }],
      [
        { type: 'text', text: '[result: text]' },
        { type: 'text', text: 'TASK' },
      ],
    ])
  })

  it('what was cleared stays cleared, as text too', () => {
    const teller = new Teller()
    teller.user('one')
    teller.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    teller.result('c1', 'long text')
    teller.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 1,
        tokensSaved: 1,
        compactedToolIds: ['c1'],
        clearedAttachmentUUIDs: [],
      },
    })
    for (const asText of [false, true]) {
      const text = JSON.stringify(said(teller, { asText }))
      expect([text.includes('long text'), text.includes('[Old tool result content cleared]')]).toEqual([
        false,
        true,
      ])
    }
  })

  it('listings of skills are left out, and what a compaction brought back is only named', () => {
    const teller = new Teller()
    teller.user('before')
    teller.batch(() => {
      teller.notice('compact_boundary', {
        parentUuid: null,
        compactMetadata: { trigger: 'auto', preTokens: 1 },
      })
      teller.user('Summary: x', { isCompactSummary: true })
      teller.attachment({ type: 'file', path: '/src/a.ts', content: 'long' })
    })
    teller.attachment({ type: 'todo', content: 'long', context: 'post-compact' })
    teller.attachment({ type: 'skill_listing', content: 'long' })
    teller.attachment({ type: 'skill_discovery', content: 'long' })
    teller.attachment({ type: 'hook_context', content: 'a hook’s word' })
    const text = JSON.stringify(said(teller))
    expect(text).not.toContain('long')
    expect(text).toContain('[brought back after a compaction: file /src/a.ts]')
    expect(text).toContain('[brought back after a compaction: todo]')
    expect(text).toContain('a hook’s word')
  })

  it('what only its maker can read, or another provider does not know, becomes text', () => {
    const teller = new Teller()
    teller.user([{ type: 'compaction', content: 'an earlier summary', signature: 's' }])
    teller.assistant('m1', [
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's1',
        content: [{ url: 'u', encrypted_content: 'zzz' }],
      },
      { type: 'hologram', frames: [1] },
    ])
    teller.system('be brief')
    expect(said(teller)).toEqual([
      ['user', [{ type: 'text', text: 'an earlier summary' }]],
      [
        'assistant',
        [
          { type: 'text', text: '[call of web_search: {"query":"x"}]' },
          { type: 'text', text: '[result: [{"url":"u"}]]' },
          { type: 'text', text: '[hologram: {"type":"hologram","frames":[1]}]' },
        ],
      ],
      [
        'user',
        [
          { type: 'text', text: '<system-reminder>\nbe brief\n</system-reminder>' },
          { type: 'text', text: 'TASK' },
        ],
      ],
    ])
  })

  it('exact texts go along with blocks that stay', () => {
    const teller = new Teller()
    teller.user('one')
    teller.assistant(
      'm1',
      [
        { type: 'thinking', thinking: 'hm' },
        { type: 'tool_use', id: 'c1', name: 'Read', input: { id: 1 } },
      ],
      { rawBlocks: [{ index: 1, text: '{"type":"tool_use","id":"c1","name":"Read","input":{"id":1.0}}' }] },
    )
    teller.result('c1', 'x')
    expect(input(teller).raw[1]?.get(0)).toContain('1.0')
  })

  it('the marker stands in front only where the model would speak first', () => {
    const teller = new Teller()
    teller.assistant('m1', 'yes')
    expect(said(teller, { marker: TRUNCATION_MARKER })).toMatchObject([
      ['user', TRUNCATION_MARKER],
      ['assistant', 'yes'],
      ['user', 'TASK'],
    ])
    const other = new Teller()
    other.user('one')
    expect(JSON.stringify(said(other, { marker: TRUNCATION_MARKER }))).not.toContain(TRUNCATION_MARKER)
  })
})

describe('thinking while a summary is written', () => {
  type Thinking = Parameters<typeof createProfile>[0] extends infer P
    ? NonNullable<P> extends { thinking?: infer T }
      ? T
      : never
    : never
  it.each<[string, Thinking, unknown]>([
    ['off unless asked for', { whenAbsent: 'disabled' }, { max_tokens: 20_000 }],
    [
      'turned off',
      { modes: ['adaptive', 'disabled'], whenAbsent: 'adaptive' },
      { max_tokens: 20_000, thinking: { type: 'disabled' } },
    ],
    [
      'turned off at an effort that allows it',
      { modes: ['adaptive', 'disabled'], whenAbsent: 'adaptive', disabledEfforts: ['low', 'high'] },
      { max_tokens: 20_000, thinking: { type: 'disabled' }, output_config: { effort: 'low' } },
    ],
    [
      'at the lowest effort, with room',
      { modes: ['adaptive'], whenAbsent: 'adaptive' },
      { max_tokens: 28_000, output_config: { effort: 'low' } },
    ],
    [
      'with the smallest budget, with room',
      { modes: ['enabled'], whenAbsent: 'enabled' },
      { max_tokens: 28_000, thinking: { type: 'enabled', budget_tokens: 1024 } },
    ],
  ])('%s', (_, thinking, settings) => {
    const made = createProfile({ ...(thinking === undefined ? {} : { thinking }) })
    expect(answerSettings({ ...summariser, profile: made })).toEqual(settings)
  })

  it('never more than the model can write', () => {
    expect(answerSettings({ ...summariser, profile: createProfile({ maxOutput: 8_000 }) })).toEqual({
      max_tokens: 8_000,
    })
  })
})
