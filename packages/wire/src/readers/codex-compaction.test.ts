import { buildContextView, type ContextView } from '@tidemark/core/context/context-view'
import { flattenContext, toApiMessages } from '@tidemark/core/context/flatten-context'
import { readUserTypedText } from '@tidemark/core/facts/user-input'
import type { SystemRecord } from '@tidemark/core/log/record'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import { describe, expect, it } from 'vitest'
import { count, describeRecords, event, line, message, readAll, session } from '../../test/rollout.ts'

interface Given {
  readonly role: string
  readonly text: string
}

function historyItem({ role, text }: Given): object {
  return {
    type: 'message',
    role,
    content: [{ type: role === 'assistant' ? 'output_text' : 'input_text', text }],
  }
}

function compacted(history: readonly Given[], summary = ''): string {
  return line('compacted', { message: summary, replacement_history: history.map(historyItem) })
}

const TALK = [
  session('s'),
  event('task_started'),
  message('user', 'one'),
  message('assistant', 'first'),
  message('user', 'two'),
  message('assistant', 'second'),
  message('user', 'three'),
  message('assistant', 'third'),
  count({ input: 900, output: 10 }),
]

function viewOfLines(lines: readonly string[]): ContextView {
  return buildContextView(buildSessionLog(readAll(lines).records.map(({ record }) => record)))
}

function shown(view: ContextView): readonly string[] {
  const records = [...view.entries].map(({ record }) => ({ record, line: 0 }))
  return describeRecords(records).map((text) => text.replace(/^0 /, '').replace(/ \[.*/, ''))
}

const user = (text: string): Given => ({ role: 'user', text })
const assistant = (text: string): Given => ({ role: 'assistant', text })

describe('a compaction of Codex', () => {
  it.each<[string, readonly Given[], string, readonly string[]]>([
    [
      'keeps what was said and adds the summary',
      [user('one'), user('three'), user('So far: …')],
      'So far: …',
      ['boundary', 'user: one', 'user: three', 'user summary: So far: …'],
    ],
    [
      'has the summary in front',
      [user('So far: …'), user('three')],
      'So far: …',
      ['boundary', 'user summary: So far: …', 'user: three'],
    ],
    [
      'keeps without a summary',
      [user('one'), assistant('first')],
      '',
      ['boundary', 'user: one', 'assistant: first', 'user summary: '],
    ],
    [
      'brings new context among what it keeps',
      [user('one'), user('<environment_context>x</environment_context>'), user('three')],
      '',
      [
        'boundary',
        'user: one',
        'user summary: ',
        'user meta: <environment_context>x</environment_context>',
        'user: three',
      ],
    ],
    [
      'cuts what the person said',
      [user('on…'), user('So far')],
      'So far',
      ['boundary', 'user meta: on…', 'user summary: So far'],
    ],
    [
      'keeps in more places than a boundary can name',
      [user('one'), user('x'), user('two'), user('y'), assistant('third')],
      '',
      [
        'boundary',
        'user: one',
        'user summary: ',
        'user meta: x',
        'user: two',
        'user meta: y',
        'assistant: third',
      ],
    ],
    ['keeps nothing', [], '', ['boundary', 'user summary: ']],
  ])('%s', (_, history, summary, expected) => {
    const view = viewOfLines([...TALK, compacted(history, summary)])
    expect(shown(view)).toEqual(expected)
    expect([...view.damage]).toEqual([])
  })

  it('shows the model exactly the history that was written down, and what comes behind it', () => {
    const history = [
      user('one'),
      user('x'),
      user('two'),
      user('y'),
      assistant('third'),
      user('z'),
      user('three'),
    ]
    const view = viewOfLines([...TALK, compacted(history), message('user', 'four')])
    const texts = toApiMessages(flattenContext(view)).flatMap(({ content }) =>
      (Array.isArray(content) ? content : []).map(({ text }) => String(text)),
    )
    expect(texts).toEqual([...history.map(({ text }) => text), 'four'])
  })

  it('keeps the newest of several records with the same content', () => {
    const { records } = readAll([
      session('s'),
      message('user', 'go'),
      message('user', 'go'),
      message('user', 'go'),
      compacted([user('go'), user('go')]),
    ])
    const boundary = records.find(({ record }) => record.type === 'system')?.record as SystemRecord
    expect(boundary.compactMetadata?.preservedMessages).toEqual({ anchorUuid: 's:5', uuids: ['s:3', 's:4'] })
  })

  it('does not count a user message twice', () => {
    const { records } = readAll([...TALK, compacted([user('one'), user('x'), user('tw…')])])
    expect(records.map(({ record }) => readUserTypedText(record)).filter((text) => text !== null)).toEqual([
      'one',
      'two',
      'three',
    ])
  })

  it('that can only be read by the provider is kept sealed', () => {
    const sealed = { type: 'compaction', encrypted_content: 'abc' }
    const { records } = readAll([
      ...TALK,
      line('compacted', { message: '', replacement_history: [historyItem(user('one')), sealed] }),
    ])
    expect(records.at(-1)?.record).toMatchObject({
      isCompactSummary: true,
      message: { role: 'user', content: [sealed] },
    })
  })

  it('from before histories were written down: the prompts that fit, then the summary', () => {
    const long = 'x'.repeat(79_998)
    const lines = [
      session('s'),
      message('user', 'a'),
      message('user', 'bb'),
      message('user', long),
      message('assistant', 'c'),
    ]
    const view = viewOfLines([...lines, line('compacted', { message: 'So far' })])
    expect(shown(view)).toEqual(['boundary', 'user: bb', `user: ${long}`, 'user summary: So far'])
  })

  it('a second one goes on from the first', () => {
    const first = compacted([user('one'), user('So far')], 'So far')
    const second = compacted([user('one'), user('four'), user('And then')], 'And then')
    const view = viewOfLines([
      ...TALK,
      first,
      message('user', 'four'),
      message('assistant', 'fourth'),
      second,
    ])
    expect(shown(view)).toEqual(['boundary', 'user: one', 'user: four', 'user summary: And then'])
    expect(view.rewrites.map(({ kind }) => kind)).toEqual(['compact', 'compact'])
  })

  it.each([
    ['in the middle of a turn', [message('user', 'more')], 'auto'],
    ['in a turn of its own', [], 'manual'],
  ])('%s: who asked for it', (_, said, trigger) => {
    const { records } = readAll([
      ...TALK,
      event('task_complete'),
      event('task_started'),
      ...said,
      compacted([]),
    ])
    const boundary = records.find(({ record }) => record.type === 'system')?.record as SystemRecord
    expect(boundary.compactMetadata).toMatchObject({ trigger, preTokens: 900 })
  })
})
