import { listRepairs, SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import type { Block } from '../log/block.ts'
import {
  fitContextToRoles,
  flattenContext,
  listTracedMessages,
  MISSING_PROMPT_TEXT,
  toApiMessages,
} from './flatten-context.ts'
import { createInterruptedResult } from './message-repair.ts'

const call = (id: string): Block => ({ type: 'tool_use', id, name: 'Read', input: {} })
const result = (id: string, content = id): Block => ({ type: 'tool_result', tool_use_id: id, content })
const text = (value: string): Block => ({ type: 'text', text: value })
const thought: Block = { type: 'thinking', thinking: 'hm', signature: 's' }

const LOW = { role: 'system' as const, content: [], output_config: { effort: 'low' } }

interface Case {
  readonly name: string
  readonly tell: (builder: SessionBuilder) => void
  readonly messages: readonly unknown[]
  readonly repairs?: readonly string[]
}

const cases: readonly Case[] = [
  {
    name: 'one response stored block by block, with the results of parallel calls between',
    tell: (builder) => {
      builder.user('go')
      for (const block of [thought, text('let me look'), call('c1')]) builder.assistant('m1', [block])
      builder.result('c1', 'c1')
      builder.attachment({ type: 'hook_context', content: 'note' })
      builder.assistant('m1', [call('c2')])
      builder.result('c2', 'c2')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [thought, text('let me look'), call('c1'), call('c2')] },
      {
        role: 'user',
        content: [
          result('c1'),
          result('c2'),
          text('<system-reminder>\nA hook of the user adds this.\nnote\n</system-reminder>'),
        ],
      },
    ],
  },
  {
    name: 'user records join the user message before them, results first',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [call('c1')])
      builder.user('wait')
      builder.result('c1', 'c1')
      builder.user([text('now')])
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call('c1')] },
      { role: 'user', content: [result('c1'), text('wait'), text('now')] },
    ],
  },
  {
    name: 'the rest of a response does not reach back over a prompt',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', 'a')
      builder.user('hey')
      builder.assistant('m1', 'b')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: 'hey' },
      { role: 'assistant', content: 'b' },
    ],
  },
  {
    name: 'a call without answer is completed, an answer that comes too late is left out',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [call('c1'), call('c2')])
      builder.result('c2', 'c2')
      builder.assistant('m2', 'on I go')
      builder.result('c1', 'late')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call('c1'), call('c2')] },
      { role: 'user', content: [result('c2'), createInterruptedResult('c1')] },
      { role: 'assistant', content: 'on I go' },
    ],
    repairs: ['missing-result', 'late-result'],
  },
  {
    name: 'orphans and second answers are left out, and a call with a used-up id gets another, with its answer',
    tell: (builder) => {
      builder.result('nobody', 'x')
      builder.user('go')
      builder.assistant('m1', [call('c1')])
      builder.result('c1', 'c1')
      builder.result('c1', 'again')
      builder.assistant('m2', [call('c1'), text('twice')])
      builder.result('c1', 'third')
    },
    messages: [
      { role: 'user', content: [text('go')] },
      { role: 'assistant', content: [call('c1')] },
      { role: 'user', content: [result('c1')] },
      { role: 'assistant', content: [call('c1_2'), text('twice')] },
      { role: 'user', content: [{ ...result('c1_2'), content: 'third' }] },
    ],
    repairs: ['orphan-result', 'duplicate-result', 'duplicate-call'],
  },
  {
    name: 'responses in a row are one turn to a provider: their answers come behind the last',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [call('c1')])
      builder.assistant('m2', [call('c2')])
      builder.user([result('c1'), result('c2')])
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call('c1')] },
      { role: 'assistant', content: [call('c2')] },
      { role: 'user', content: [result('c1'), result('c2')] },
    ],
  },
  {
    name: 'a system message that only says how hard to think',
    tell: (builder) => {
      builder.user('go')
      builder.system([], { message: LOW })
    },
    messages: [{ role: 'user', content: 'go' }, LOW],
  },
  {
    name: 'the effort set behind a response, or before anything else, is not lost',
    tell: (builder) => {
      builder.system(' ', { message: { ...LOW, content: ' ' } })
      builder.assistant('m1', 'yes')
      builder.system('be brief', { message: { ...LOW, content: 'be brief' } })
      builder.system([], { message: LOW })
    },
    messages: [
      { role: 'user', content: [text(MISSING_PROMPT_TEXT)] },
      LOW,
      { role: 'assistant', content: 'yes' },
      { role: 'user', content: [text('<system-reminder>\nbe brief\n</system-reminder>')] },
      LOW,
      LOW,
    ],
    repairs: ['blank-text', 'no-first-prompt'],
  },
  {
    name: 'a response that says nothing does not part two user messages',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', ' ')
      builder.user('on')
    },
    messages: [{ role: 'user', content: [text('go'), text('on')] }],
    repairs: ['blank-text'],
  },
  {
    name: 'words that happen to be ours are the person’s all the same',
    tell: (builder) => {
      builder.user(MISSING_PROMPT_TEXT)
    },
    messages: [{ role: 'user', content: MISSING_PROMPT_TEXT }],
  },
  {
    name: 'what is for the screen does not reach the model; what is hidden from the screen does',
    tell: (builder) => {
      builder.user('go', { isMeta: true })
      builder.attachment({ type: 'file', path: '/a', content: 'x' }, { isScreenOnly: true })
      builder.notice('turn_duration')
      const error = { id: 'e', role: 'assistant' as const, model: '<synthetic>', content: 'API error' }
      builder.assistant('e', 'API error', { isApiErrorMessage: true, message: error })
      builder.user('more', { isVisibleInTranscriptOnly: true })
    },
    messages: [{ role: 'user', content: [text('go'), text('more')] }],
  },
  {
    name: 'an error that a real model wrote is a response like any other',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', 'I failed', { isApiErrorMessage: true })
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'I failed' },
    ],
  },
  {
    name: 'thinking alone does not end a request, and stays where more follows',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [thought])
      builder.user('and?')
      builder.assistant('m2', [thought])
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [thought] },
      { role: 'user', content: 'and?' },
    ],
    repairs: ['silent-tail'],
  },
  {
    name: 'thinking that a next response was given without stays out',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [{ type: 'redacted_thinking', data: 'x' }])
      builder.assistant('m2', 'answer')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: 'answer' },
    ],
    repairs: ['silent-tail'],
  },
  {
    name: 'blank text goes, and a message of nothing else with it',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [text(' \n'), call('c1'), call('c2')])
      builder.result('c1', 'c1')
      builder.result('c2', [text(''), text('x')])
      builder.assistant('m2', '  ')
      builder.user('')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call('c1'), call('c2')] },
      { role: 'user', content: [result('c1'), { ...result('c2'), content: [text('x')] }] },
    ],
    repairs: ['blank-text', 'blank-text', 'blank-text', 'blank-text'],
  },
  {
    name: 'a conversation that begins with the model gets a first message',
    tell: (builder) => {
      builder.assistant('m1', 'as I said')
    },
    messages: [
      { role: 'user', content: [text(MISSING_PROMPT_TEXT)] },
      { role: 'assistant', content: 'as I said' },
    ],
    repairs: ['no-first-prompt'],
  },
  {
    name: 'a provider’s own summary may come first',
    tell: (builder) => {
      builder.assistant('m1', [{ type: 'compaction', content: 'so far', signature: 's' }])
      builder.assistant('m2', 'kept')
    },
    messages: [
      { role: 'assistant', content: [{ type: 'compaction', content: 'so far', signature: 's' }] },
      { role: 'assistant', content: 'kept' },
    ],
  },
  {
    name: 'a system message keeps its fields and never parts a call from its answer',
    tell: (builder) => {
      builder.user('go')
      builder.assistant('m1', [call('c1')])
      builder.system('be brief', { message: { role: 'system', content: 'be brief', clear_at: 'never' } })
      builder.result('c1', 'c1')
    },
    messages: [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [call('c1')] },
      { role: 'user', content: [result('c1')] },
      { role: 'system', content: 'be brief', clear_at: 'never' },
    ],
  },
]

describe('flatten', () => {
  it.each(cases)('$name', ({ tell, messages, repairs = [] }) => {
    const builder = new SessionBuilder()
    tell(builder)
    const flat = flattenContext(builder.view)
    expect(toApiMessages(flat)).toEqual(messages)
    expect(listRepairs(flat).map((repair) => repair.kind)).toEqual(repairs)
  })

  it('knows for each block which record it comes from, and the exact text where that counts', () => {
    const builder = new SessionBuilder()
    builder.user('go', { uuid: 'p1' })
    const rawBlocks = [
      { index: 0, text: '{"type":"tool_use","id":"c1","name":"Read","input":{"b":1,"1":2}}' },
    ]
    builder.assistant('m1', [{ ...call('c1'), input: { b: 1, 1: 2 } }], { uuid: 'a1', rawBlocks })
    builder.result('c1', 'c1', { uuid: 'r1' })
    const flat = listTracedMessages(flattenContext(builder.view))
    expect(flat.map((message) => message.origins)).toEqual([['p1'], ['a1'], ['r1']])
    expect(flat.map((message) => message.raw)).toEqual([
      undefined,
      new Map([[0, rawBlocks[0]?.text]]),
      undefined,
    ])
  })
})

describe('server tools', () => {
  const search: Block = { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }
  const found: Block = { type: 'web_search_tool_result', tool_use_id: 's1', content: [] }

  it('a call that waits goes out as it is, also behind the answer to another tool', () => {
    const builder = new SessionBuilder()
    builder.user('go')
    builder.assistant('m1', [search, call('c1')])
    builder.result('c1', 'c1')
    const waiting = [
      { role: 'user', content: 'go' },
      { role: 'assistant', content: [search, call('c1')] },
      { role: 'user', content: [result('c1')] },
    ]
    expect(toApiMessages(flattenContext(builder.view))).toEqual(waiting)
    builder.assistant('m2', [found, text('here')])
    expect(toApiMessages(flattenContext(builder.view))).toEqual([
      ...waiting,
      { role: 'assistant', content: [found, text('here')] },
    ])
  })

  it('a call the person did not wait for goes, and so does an answer without its call', () => {
    const builder = new SessionBuilder()
    builder.user('go')
    builder.assistant('m1', [search, text('searching')])
    builder.user('never mind')
    builder.assistant('m2', [{ ...found, tool_use_id: 'other' }, text('fine')])
    const flat = flattenContext(builder.view)
    expect(toApiMessages(flat).map((message) => message.content)).toEqual([
      'go',
      [text('searching')],
      'never mind',
      [text('fine')],
    ])
    expect(listRepairs(flat).map((repair) => repair.kind)).toEqual([
      'open-server-call',
      'orphan-server-result',
    ])
  })
})

describe('clearings', () => {
  it('of all that a first record said leave a conversation that still begins with a user message', () => {
    const builder = new SessionBuilder()
    builder.assistant('m1', [thought])
    builder.assistant('m1', [text('hm')])
    builder.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 2,
        tokensSaved: 1,
        compactedToolIds: [],
        clearedAttachmentUUIDs: [],
        clearedThinking: ['m1'],
      },
    })
    expect(toApiMessages(flattenContext(builder.view)).map((message) => message.role)).toEqual([
      'user',
      'assistant',
    ])
  })

  it('leave a stub that says where the text is, and touch nothing else', () => {
    const builder = new SessionBuilder()
    builder.user('go')
    builder.assistant('m1', [thought, { ...call('c1'), input: { path: '/a', content: 'long' } }, call('c2')])
    builder.user([{ ...result('c1'), is_error: true }, result('c2')])
    builder.attachment({ type: 'nested_memory', path: '/x', content: 'old' }, { uuid: 't1' })
    builder.notice('microcompact_boundary', {
      microcompactMetadata: {
        trigger: 'auto',
        preTokens: 2,
        tokensSaved: 1,
        compactedToolIds: ['c1', 'gone'],
        clearedAttachmentUUIDs: ['t1'],
        notes: { c1: 'saved as blob 9' },
        clearedInputs: [{ toolUseId: 'c1', field: 'content' }],
        clearedThinking: ['m1'],
      },
    })
    builder.result('c1', 'not cleared: it came later')
    expect(toApiMessages(flattenContext(builder.view)).slice(1)).toEqual([
      {
        role: 'assistant',
        content: [{ ...call('c1'), input: { path: '/a', content: '[Old tool input cleared]' } }, call('c2')],
      },
      {
        role: 'user',
        content: [
          { ...result('c1', '[Old tool result content cleared]\nsaved as blob 9'), is_error: true },
          result('c2'),
        ],
      },
    ])
  })
})

describe('what a provider refuses in the order of messages', () => {
  const builder = new SessionBuilder('fit')
  builder.user('go')
  const brief = {
    role: 'system' as const,
    content: 'be brief',
    clear_at: 'never',
    output_config: { effort: 'low' },
  }
  builder.system('be brief', { message: brief })
  builder.assistant('m1', [text('one')])
  builder.assistant('m2', [call('c1')])
  builder.result('c1', 'c1')
  builder.user('and?')
  builder.system([], { message: LOW })
  const flat = flattenContext(builder.view)
  const all = {
    first: 'user',
    consecutive: 'merged',
    prefill: 'refused',
    system: 'placed',
    turnScoped: true,
    messageEffort: true,
  } as const
  const fit = (rules: Partial<Parameters<typeof fitContextToRoles>[1]>) =>
    listTracedMessages(fitContextToRoles(flat, { ...all, ...rules })).map(({ message }) => message)
  const replies = [
    { role: 'assistant', content: [text('one')] },
    { role: 'assistant', content: [call('c1')] },
  ]
  const last = { role: 'user', content: [result('c1'), text('and?')] }
  const reminder = text('<system-reminder>\nbe brief\n</system-reminder>')

  it('changes nothing that it takes', () => {
    expect(fitContextToRoles(flat, all)).toBe(flat)
  })

  it('sends system messages without the fields that it does not have', () => {
    const { clear_at: _, output_config: __, ...plain } = brief
    expect(fit({ turnScoped: false, messageEffort: false })).toEqual([
      { role: 'user', content: 'go' },
      plain,
      ...replies,
      last,
    ])
    expect(fit({ turnScoped: false })[1]).toEqual({ ...plain, output_config: brief.output_config })
  })

  it('sends system messages as reminders of the user', () => {
    expect(fit({ system: 'refused' })).toEqual([
      { role: 'user', content: 'go' },
      { role: 'user', content: [reminder] },
      ...replies,
      last,
    ])
  })

  it('joins messages of one role, and still finds the result of a call', () => {
    const fitted = fitContextToRoles(flat, { ...all, system: 'refused', consecutive: 'refused' })
    expect(listTracedMessages(fitted).map(({ message }) => message)).toEqual([
      { role: 'user', content: [text('go'), reminder] },
      { role: 'assistant', content: [text('one'), call('c1')] },
      last,
    ])
    expect(fitted.tail.map(({ origins }) => origins.length)).toEqual([2, 2, 2])
    expect(fitted.calls.get('c1')).toBe(1)
  })
})
