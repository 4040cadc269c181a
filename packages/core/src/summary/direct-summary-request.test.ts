import { SessionBuilder } from '@tidemark/core/testing'
import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import type { ContextEntry } from '../context/context-entry.ts'
import { groupEntriesIntoRounds } from '../context/flatten-context.ts'
import { validateRequest } from '../validate/validate-request.ts'
import {
  buildDirectSummaryRequest,
  chooseSummaryOutputSettings,
  createUnstoredUserRecord,
  dropOldestRounds,
  SUMMARIZER_SYSTEM_PROMPT,
  type SummaryModel,
  type SummaryRequestOptions,
  TRUNCATION_MARKER,
  withTruncationMarker,
} from './direct-summary-request.ts'

const profile = defineMessagesProfile({ window: 200_000, maxOutput: 64_000 })
const summariser: SummaryModel = { model: 'model-b', profile, window: 200_000, outputTokens: 20_000 }
const read = {
  name: 'Read',
  description: 'reads',
  input_schema: { type: 'object' },
  cache_control: { type: 'ephemeral' },
}
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }

function buildInput(builder: SessionBuilder, changes: Partial<SummaryRequestOptions> = {}) {
  return buildDirectSummaryRequest({
    entries: builder.view.entries.toArray(),
    prompt: 'TASK',
    summariser,
    tools: [read],
    ...changes,
  })
}

const said = (builder: SessionBuilder, changes: Partial<SummaryRequestOptions> = {}): unknown =>
  buildInput(builder, changes).payload.messages.map(({ role, content }) => [role, content])

describe('the request of a call of its own', () => {
  it('has a short system prompt, the task as its last words, room for the answer, and passes the rules', () => {
    const builder = new SessionBuilder()
    builder.user('one')
    builder.assistant('m1', 'yes')
    const { payload } = buildInput(builder)
    expect(payload).toEqual({
      model: 'model-b',
      max_tokens: 20_000,
      system: SUMMARIZER_SYSTEM_PROMPT,
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'yes' },
        { role: 'user', content: 'TASK' },
      ],
    })
    expect(validateRequest(payload, profile)).toEqual([])
  })

  it('the prompt is joined to the last user message', () => {
    const builder = new SessionBuilder()
    builder.user('one')
    expect(said(builder)).toEqual([
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
    const builder = new SessionBuilder()
    builder.user([{ type: 'text', text: 'look' }, image, { type: 'document', source: {} }])
    builder.assistant('m1', [{ type: 'thinking', thinking: 'hm', signature: 's' }])
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: { n: 1 } }])
    builder.result('c1', [{ type: 'text', text: 'here' }, image])
    expect(said(builder)).toEqual([
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
    const builder = new SessionBuilder()
    builder.user('one')
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    builder.result('c1', 'text')
    const { payload } = buildInput(builder, { tools })
    expect(payload.tools?.map((tool) => tool.name)).toEqual(names)
    expect(payload.tools?.some((tool) => 'cache_control' in tool)).toBe(false)
    expect(validateRequest(payload, profile)).toEqual([])
    const told = buildInput(builder, { tools, asText: true }).payload
    expect([told.tools, validateRequest(told, profile)]).toEqual([undefined, []])
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
    const builder = new SessionBuilder()
    builder.user('one')
    builder.assistant('m1', [{ type: 'tool_use', id: 'c1', name: 'Read', input: {} }])
    builder.result('c1', 'long text')
    builder.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 1,
        tokensSaved: 1,
        compactedToolIds: ['c1'],
        clearedAttachmentUUIDs: [],
      },
    })
    for (const asText of [false, true]) {
      const text = JSON.stringify(said(builder, { asText }))
      expect([text.includes('long text'), text.includes('[Old tool result content cleared]')]).toEqual([
        false,
        true,
      ])
    }
  })

  it('listings of skills are left out, and what a compaction brought back is only named', () => {
    const builder = new SessionBuilder()
    builder.user('before')
    builder.batch(() => {
      builder.notice('compact_boundary', {
        parentUuid: null,
        compactMetadata: { trigger: 'auto', preTokens: 1 },
      })
      builder.user('Summary: x', { isCompactSummary: true })
      builder.attachment({ type: 'file', path: '/src/a.ts', content: 'long' })
    })
    builder.attachment({ type: 'todo', content: 'long', context: 'post-compact' })
    builder.attachment({ type: 'skill_listing', content: 'long' })
    builder.attachment({ type: 'skill_discovery', content: 'long' })
    builder.attachment({ type: 'hook_context', content: 'a hook’s word' })
    const text = JSON.stringify(said(builder))
    expect(text).not.toContain('long')
    expect(text).toContain('[brought back after a compaction: file /src/a.ts]')
    expect(text).toContain('[brought back after a compaction: todo]')
    expect(text).toContain('a hook’s word')
  })

  it('what only its maker can read, or another provider does not know, becomes text', () => {
    const builder = new SessionBuilder()
    builder.user([{ type: 'compaction', content: 'an earlier summary', signature: 's' }])
    builder.assistant('m1', [
      { type: 'server_tool_use', id: 's1', name: 'web_search', input: { query: 'x' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 's1',
        content: [{ url: 'u', encrypted_content: 'zzz' }],
      },
      { type: 'hologram', frames: [1] },
    ])
    builder.system('be brief')
    expect(said(builder)).toEqual([
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
    const builder = new SessionBuilder()
    builder.user('one')
    builder.assistant(
      'm1',
      [
        { type: 'thinking', thinking: 'hm' },
        { type: 'tool_use', id: 'c1', name: 'Read', input: { id: 1 } },
      ],
      { rawBlocks: [{ index: 1, text: '{"type":"tool_use","id":"c1","name":"Read","input":{"id":1.0}}' }] },
    )
    builder.result('c1', 'x')
    expect(buildInput(builder).raw[1]?.get(0)).toContain('1.0')
  })

  it('the marker stands in front only where the model would speak first', () => {
    const builder = new SessionBuilder()
    builder.assistant('m1', 'yes')
    expect(said(builder, { marker: TRUNCATION_MARKER })).toMatchObject([
      ['user', TRUNCATION_MARKER],
      ['assistant', 'yes'],
      ['user', 'TASK'],
    ])
    const other = new SessionBuilder()
    other.user('one')
    expect(JSON.stringify(said(other, { marker: TRUNCATION_MARKER }))).not.toContain(TRUNCATION_MARKER)
  })
})

describe('thinking while a summary is written', () => {
  type Thinking = Parameters<typeof defineMessagesProfile>[0] extends infer P
    ? NonNullable<P> extends { thinking?: infer T }
      ? T
      : never
    : never
  it.each<[string, Thinking, unknown]>([
    ['off unless asked for', { whenAbsent: 'disabled' }, { maxOutput: 20_000 }],
    [
      'turned off',
      { modes: ['adaptive', 'disabled'], whenAbsent: 'adaptive' },
      { maxOutput: 20_000, thinking: { mode: 'disabled' } },
    ],
    [
      'turned off at an effort that allows it',
      { modes: ['adaptive', 'disabled'], whenAbsent: 'adaptive', disabledEfforts: ['low', 'high'] },
      { maxOutput: 20_000, thinking: { mode: 'disabled' }, effort: 'low' },
    ],
    [
      'at the lowest effort, with room',
      { modes: ['adaptive'], whenAbsent: 'adaptive' },
      { maxOutput: 28_000, effort: 'low' },
    ],
    [
      'with the smallest budget, with room',
      { modes: ['enabled'], whenAbsent: 'enabled' },
      { maxOutput: 28_000, thinking: { mode: 'enabled', budget: 1024 } },
    ],
  ])('%s', (_, thinking, settings) => {
    const made = defineMessagesProfile({ ...(thinking === undefined ? {} : { thinking }) })
    expect(chooseSummaryOutputSettings({ ...summariser, profile: made })).toEqual(settings)
  })

  it('never more than the model can write', () => {
    expect(
      chooseSummaryOutputSettings({ ...summariser, profile: defineMessagesProfile({ maxOutput: 8_000 }) }),
    ).toEqual({
      maxOutput: 8_000,
    })
  })
})

/** `count` rounds of a call and its result, 10 tokens a record, behind a prompt. */
function createRounds(count: number): readonly ContextEntry[] {
  const builder = new SessionBuilder()
  builder.user('go', { uuid: 'q' })
  for (let index = 0; index < count; index += 1) {
    builder.assistant(`m${index}`, [{ type: 'tool_use', id: `c${index}`, name: 'Read', input: {} }], {
      uuid: `a${index}`,
    })
    builder.result(`c${index}`, 'x', { uuid: `r${index}` })
  }
  return builder.view.entries.toArray()
}

const tokensOf = (): number => 10
const policy = { percentOfRounds: 20, minimumRounds: 1 }
const uuids = (entries: readonly ContextEntry[] | undefined): readonly string[] =>
  (entries ?? []).map((entry) => entry.record.uuid)
const marker: ContextEntry = { record: createUnstoredUserRecord('mark', TRUNCATION_MARKER), index: -1 }

describe('dropping the head', () => {
  it.each<[string, number, number | null, number]>([
    ['rounds until the gap is covered', 9, 45, 3],
    ['a gap that one round covers exactly', 9, 10, 1],
    ['a fifth of the rounds where nothing is known', 9, null, 2],
    ['at least one', 2, null, 1],
    ['a gap that is none is not known', 9, 0, 2],
  ])('%s', (_, count, over, dropped) => {
    const entries = createRounds(count)
    const drop = dropOldestRounds(entries, { over, countTokens: tokensOf, policy })
    const all = groupEntriesIntoRounds(entries)
    expect(uuids(drop?.dropped)).toEqual(uuids(all.slice(0, dropped).flat()))
    expect(uuids(drop?.rest)).toEqual(uuids(all.slice(dropped).flat()))
  })

  it('never parts a call from its result', () => {
    expect(
      uuids(dropOldestRounds(createRounds(3), { over: 15, countTokens: tokensOf, policy })?.rest),
    ).toEqual(['a1', 'r1', 'a2', 'r2'])
  })

  it.each([
    ['a gap as large as everything', 5, 1_000],
    ['a single round', 0, null],
  ])('%s leaves nothing', (_, count, over) => {
    expect(dropOldestRounds(createRounds(count), { over, countTokens: tokensOf, policy })).toBeNull()
  })

  it('the marker of an earlier retry is no round', () => {
    const entries = [marker, ...createRounds(9).slice(1)]
    const drop = dropOldestRounds(entries, {
      over: null,
      countTokens: tokensOf,
      policy: { ...policy, percentOfRounds: 1 },
    })
    expect(uuids(drop?.dropped)).toEqual(['a0', 'r0'])
  })

  it('what only looks like the marker is a message', () => {
    const typed: ContextEntry = {
      record: { ...createUnstoredUserRecord('mark', TRUNCATION_MARKER), isMeta: false },
      index: 0,
    }
    expect(
      uuids(
        dropOldestRounds([typed, ...createRounds(1)], { over: null, countTokens: tokensOf, policy })?.dropped,
      ),
    ).toEqual(['mark'])
  })

  it('the marker stands in front of a response and of nothing else', () => {
    expect(uuids(withTruncationMarker(createRounds(2), TRUNCATION_MARKER))[0]).toBe('q')
    expect(withTruncationMarker(createRounds(2).slice(1), TRUNCATION_MARKER)[0]?.record).toMatchObject({
      isMeta: true,
      message: { role: 'user', content: TRUNCATION_MARKER },
    })
  })
})
