import { buildContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { validateRequest } from '@tidemark/core/validate/validate-request'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  call,
  count,
  describeRecords,
  event,
  item,
  line,
  message,
  output,
  readAll,
  session,
  turn,
} from '../../test/rollout.ts'
import { strictProfile } from '../profiles/provider-profile.ts'
import { createLogReader } from './log-format.ts'

const TIME = '2026-01-02T03:04:05.000Z'

describe('records of a rollout', () => {
  it('have names, parents, the model in use and our meaning of usage', () => {
    const { records } = readAll([
      session('s'),
      turn('gpt-x'),
      message('user', 'go'),
      call('a'),
      count({ input: 10, cached: 4, output: 3 }),
      output('a'),
    ])
    expect(records.slice(2, 4).map(({ record }) => record)).toEqual([
      {
        type: 'user',
        uuid: 's:3',
        parentUuid: null,
        timestamp: TIME,
        sessionId: 's',
        cwd: '/projects/boat',
        message: { role: 'user', content: [{ type: 'text', text: 'go' }] },
      },
      {
        type: 'assistant',
        uuid: 's:4',
        parentUuid: 's:3',
        timestamp: TIME,
        sessionId: 's',
        cwd: '/projects/boat',
        message: {
          id: 'codex-a-10.4.3.0',
          role: 'assistant',
          model: 'gpt-x',
          content: [{ type: 'tool_use', id: 'a', name: 'shell', input: { command: 'ls' } }],
          usage: {
            input_tokens: 6,
            cache_read_input_tokens: 4,
            output_tokens: 3,
            reasoning_output_tokens: 0,
          },
        },
        usage: { input: 6, read: 4, writes: { short: 0, long: 0 }, output: 3, areWritesUnknown: true },
      },
    ])
  })

  it('have the working directory of their turn, and the branch of the session and not of the one it was forked from', () => {
    const { records } = readAll([
      session('s', { git: { branch: 'rewrite' } }),
      session('older', { cwd: '/projects/old', git: { branch: 'main' } }),
      message('user', 'go'),
      line('turn_context', { model: 'gpt-x', cwd: '/projects/boat/hull' }),
      message('user', 'on'),
    ])
    const places = records.map(({ record }) => record).filter(({ type }) => type === 'user')
    expect(places).toMatchObject([
      { cwd: '/projects/boat', gitBranch: 'rewrite' },
      { cwd: '/projects/boat/hull', gitBranch: 'rewrite' },
    ])
  })

  it('that are none of the conversation stay in their place under their own type', () => {
    const { records } = readAll([session('s'), line('world_state', { full: true }), event('agent_message')])
    expect(records.map(({ record }) => record)).toEqual([
      {
        type: 'session_meta',
        timestamp: TIME,
        payload: { id: 's', cwd: '/projects/boat', cli_version: '0.1.0' },
      },
      { type: 'world_state', timestamp: TIME, payload: { full: true } },
      { type: 'event_msg', timestamp: TIME, payload: { type: 'agent_message' } },
    ])
  })

  it.each([
    ['user', 'fix it', 'user: fix it'],
    ['developer', 'rules', 'user meta: rules'],
    ['system', 'rules', 'user meta: rules'],
    ['user', '<environment_context>\n<cwd>/x</cwd>\n</environment_context>', 'user meta'],
    ['user', '# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>…</INSTRUCTIONS>', 'user meta'],
    ['user', '<subagent_notification>{}</subagent_notification>', 'user meta'],
    ['user', '<skill>\n<name>x</name>\n</skill>', 'user meta'],
    ['user', '<codex_internal_context source="goal">x</codex_internal_context>', 'user meta'],
    ['user', '<turn_aborted>\nThe user interrupted.\n</turn_aborted>', 'user meta'],
    ['user', '<user_instructions>\nUse tabs.\n</user_instructions>', 'user meta'],
    ['user', '<div>what is wrong here?</div>', 'user: <div>'],
    ['user', '<my_widget>red</my_widget>', 'user: <my_widget>'],
    ['user', '<skill>x</skill> is not shown, and <skill>y</skill>', 'user: <skill>'],
    ['user', '<user_shell_command>\n<command>ls</command>\n</user_shell_command>', 'user: <user_shell'],
    ['user', '<environment_context> is what I mean', 'user: <environment_context>'],
  ])('a message of the %s: %j', (role, text, expected) => {
    expect(describeRecords(readAll([message(role, text)]).records)[0]).toMatch(
      new RegExp(`^1 ${expected.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`),
    )
  })

  it('give the session, its folder, its ancestors and its context window', () => {
    const { meta } = readAll([
      session('child', {
        timestamp: '2026-01-02T03:04:00.000Z',
        forked_from_id: 'parent',
        source: { subagent: { thread_spawn: { parent_thread_id: 'parent', agent_nickname: 'Nell' } } },
      }),
      session('parent', { cwd: '/other', cli_version: '9' }),
      event('task_started', { model_context_window: 1000 }),
      session('child', { cwd: '/later' }),
    ])
    expect(meta).toEqual({
      sessionId: 'child',
      cwd: '/projects/boat',
      project: 'boat',
      version: '0.1.0',
      startedAt: '2026-01-02T03:04:00.000Z',
      endedAt: TIME,
      forkedFrom: 'parent',
      parentSessionId: 'parent',
      agent: 'Nell',
      contextWindow: 1000,
      copiedFrom: null,
    })
  })
})

describe('older shapes', () => {
  it('bare lines', () => {
    const { records, damage, meta } = readAll([
      '{"id":"old","timestamp":"2025-08-20T13:20:47.060Z","instructions":null,"git":{"branch":"main"}}',
      '{"record_type":"state"}',
      '{"type":"message","id":null,"role":"user","content":[{"type":"input_text","text":"go"}]}',
      '{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}',
      '{"type":"local_shell_call","id":"lsc_1","call_id":null,"status":"completed","action":{"type":"exec"}}',
      '{"type":"function_call_output","call_id":"lsc_1","output":{"content":"no","success":false}}',
      '{"type":"message","role":"assistant","content":[{"type":"text","text":"done"}]}',
    ])
    expect(damage).toEqual([])
    expect(meta).toMatchObject({ sessionId: 'old', startedAt: '2025-08-20T13:20:47.060Z' })
    expect(describeRecords(records)).toEqual([
      '3 user: go',
      '4 assistant: thinking rs_1 [1: ?]',
      '5 assistant: tool_use lsc_1 [1: ?]',
      '6 user: tool_result lsc_1',
      '7 assistant: done [2: ?]',
    ])
    expect(records[3]?.record).toMatchObject({
      message: { content: [{ type: 'thinking', thinking: 'hm', encrypted_content: 'x' }] },
    })
    expect(records[5]?.record).toMatchObject({
      message: { content: [{ type: 'tool_result', content: 'no', is_error: true }] },
    })
  })
})

describe('a rolled back turn', () => {
  it('leaves the branch when the next prompt comes', () => {
    const { records } = readAll([
      session('s'),
      message('user', 'one'),
      message('assistant', 'first'),
      message('user', 'two'),
      message('assistant', 'second'),
      message('user', 'three'),
      event('thread_rolled_back', { num_turns: 2 }),
      message('user', 'instead'),
      message('assistant', 'last'),
    ])
    const folded = buildSessionLog(records.map(({ record }) => record))
    const texts = toApiMessages(flattenContext(buildContextView(folded))).map(({ content }) =>
      JSON.stringify(content),
    )
    expect([...folded.damage]).toEqual([])
    expect(texts).toEqual(
      ['one', 'first', 'instead', 'last'].map((text) => JSON.stringify([{ type: 'text', text }])),
    )
  })
})

describe('damage', () => {
  it.each(
    [
      ['{"timestamp":"x","type":"response_', 'bad-json'],
      ['[1,2]', 'bad-shape'],
      ['{"type":"user","payload":{}}', 'bad-shape'],
      ['{"type":"response_item","payload":7}', 'bad-shape'],
      [item('message', { role: 'user', content: [1] }), 'bad-shape'],
      [item('message', { role: 'user' }), 'bad-shape'],
      [item('message', { role: 7, content: [] }), 'bad-shape'],
      [item('function_call', { name: 'x', arguments: '{}' }), 'bad-shape'],
      [item('function_call', { call_id: 'x', arguments: '{}' }), 'bad-shape'],
      [item('function_call_output', { output: 'x' }), 'bad-shape'],
      [item('function_call_output', { call_id: 'x', output: 7 }), 'bad-shape'],
      [`{"type":"response_item","payload":${'['.repeat(5000)}${']'.repeat(5000)}}`, 'bad-shape'],
      [`{"type":"event_msg","payload":{"x":${'['.repeat(5000)}${']'.repeat(5000)}}}`, 'bad-shape'],
    ].map(([text = '', kind = '']) => ({ start: text.slice(0, 70), text, kind })),
  )('$start is told, and the rest is read', ({ text, kind }) => {
    const { records, damage } = readAll([message('user', 'before'), text, message('user', 'after')])
    expect(damage.map((found) => [found.kind, found.line])).toEqual([[kind, 2]])
    expect(describeRecords(records)).toEqual(['1 user: before', '3 user: after'])
  })

  it('a torn last line is set aside', () => {
    const reader = createLogReader('codex')
    reader.readLine(session('s'))
    const why = 'the last line was cut off; it is left out'
    expect(reader.finish('{"timestamp":"x","ty').damage).toEqual([{ kind: 'torn-line', line: 2, why }])
  })

  it('whatever the payloads are, nothing throws, and what comes out can be folded and shown', () => {
    const types = [
      'message',
      'reasoning',
      'function_call',
      'function_call_output',
      'custom_tool_call',
      'web_search_call',
      'compaction',
      'tool_search_call',
      'tool_search_output',
      'agent_message',
    ]
    const kinds = [
      'response_item',
      'event_msg',
      'compacted',
      'session_meta',
      'turn_context',
      'token_usage_record',
      'inter_agent_communication',
    ]
    const events = ['token_count', 'thread_rolled_back', 'task_started', 'turn_aborted']
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom('user', 'assistant', 'id', 3))
    const payload = fc.record(
      {
        type: fc.constantFrom(...types, ...events),
        role: fc.constantFrom<unknown>('user', 'assistant', 'developer', 7),
        content: fc.oneof(value, fc.constant([{ type: 'input_text', text: 'x' }])),
        call_id: fc.constantFrom<unknown>('a', 'b', null),
        name: value,
        arguments: value,
        output: value,
        info: value,
        num_turns: value,
        replacement_history: fc.oneof(
          value,
          fc.array(
            fc.record({
              type: fc.constantFrom(...types),
              role: fc.constantFrom('user', 'assistant'),
              content: value,
            }),
          ),
        ),
        message: value,
        id: value,
        model: value,
      },
      { requiredKeys: ['type'] },
    )
    const log = fc.array(fc.tuple(fc.constantFrom(...kinds), payload), { maxLength: 12 })
    fc.assert(
      fc.property(log, (lines) => {
        const { records } = readAll(lines.map(([type, given]) => line(type, given)))
        const messages = toApiMessages(
          flattenContext(buildContextView(buildSessionLog(records.map(({ record }) => record)))),
        )
        expect(() => validateRequest({ model: 'm', messages }, strictProfile)).not.toThrow()
      }),
      { numRuns: 300 },
    )
  })
})
