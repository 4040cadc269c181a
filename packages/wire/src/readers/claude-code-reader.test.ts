import type { AttachmentRecord, SessionRecord } from '@tidemark/core/log/record'
import { isFullRun } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { readAll } from '../../test/rollout.ts'
import { createRecordLogReader, isClaudeCodeRestart, readClaudeCodeTotals } from './claude-code-reader.ts'
import { createLogReader } from './log-format.ts'

function user(uuid: string, more: object = {}): string {
  return JSON.stringify({
    type: 'user',
    uuid,
    parentUuid: null,
    message: { role: 'user', content: uuid },
    ...more,
  })
}

describe('a log of Claude Code', () => {
  it('gives its records with their lines, unknown kinds among them', () => {
    const { records, damage } = readAll(
      [user('a'), '', '{"type":"pr-link","prNumber":7}', `${user('b')}\r`],
      'claude-code',
    )
    expect(damage).toEqual([])
    expect(records.map(({ record, line }) => [line, record.type, record.uuid])).toEqual([
      [1, 'user', 'a'],
      [3, 'pr-link', undefined],
      [4, 'user', 'b'],
    ])
  })

  it('gives the first folder, and the last session id and version', () => {
    const { meta } = readAll(
      [
        user('a', {
          sessionId: 'old',
          cwd: 'C:\\work\\boat',
          version: '1',
          timestamp: '2026-01-02T00:00:00Z',
        }),
        user('b', { sessionId: 'new', cwd: '/elsewhere', version: '2', timestamp: '2026-01-01T00:00:00Z' }),
        user('c', {
          sessionId: 'new',
          forkedFrom: { sessionId: 'old', messageUuid: 'x' },
          timestamp: 'yesterday',
        }),
      ],
      'claude-code',
    )
    expect(meta).toEqual({
      sessionId: 'new',
      cwd: 'C:\\work\\boat',
      project: 'boat',
      version: '2',
      startedAt: '2026-01-01T00:00:00Z',
      endedAt: '2026-01-02T00:00:00Z',
      forkedFrom: 'old',
      parentSessionId: null,
      copiedFrom: null,
      agent: null,
      contextWindow: null,
    })
  })

  it.each([
    ['text', 'hello', 'bad-json', 'the line is no JSON object with a type; it is left out'],
    ['a list', '[1]', 'bad-json', 'the line is no JSON object with a type; it is left out'],
    [
      'an object that says no type',
      '{"a":1}',
      'bad-json',
      'the line is no JSON object with a type; it is left out',
    ],
    [
      'a lost page',
      `\0\0\0${user('x')}`,
      'bad-json',
      'the line has NUL bytes, as a page lost in a crash leaves; it is left out',
    ],
    [
      'half a line',
      '{"type":"user","uuid":"x","message":{"ro',
      'bad-json',
      'the line is no JSON object with a type; it is left out',
    ],
    ['broken JSON', '{"type":"user",,}', 'bad-json', 'the line is not JSON; it is left out'],
    [
      'a wrong type',
      user('x', { message: 7 }),
      'bad-shape',
      'a user record has a message; the line is left out',
    ],
    [
      'deep nesting',
      user('x', { y: 0 }).replace('"y":0', `"y":${'['.repeat(9000)}${']'.repeat(9000)}`),
      'bad-shape',
      'the line is nested more than 1000 levels deep; it is left out',
    ],
    [
      'nesting that stringify takes',
      user('x', { y: 0 }).replace('"y":0', `"y":${'['.repeat(1200)}${']'.repeat(1200)}`),
      'bad-shape',
      'the line is nested more than 1000 levels deep; it is left out',
    ],
  ])('%s is damage in one line, and the rest is read', (_, text, kind, why) => {
    const { records, damage } = readAll([user('a'), text, user('b')], 'claude-code')
    expect(damage).toEqual([{ kind, line: 2, why }])
    expect(records.map(({ line }) => line)).toEqual([1, 3])
  })

  it('a million broken lines are one entry', () => {
    const reader = createLogReader('claude-code')
    const count = isFullRun() ? 1_000_000 : 100_000
    for (let line = 0; line < count; line += 1) reader.readLine('x')
    expect(reader.finish().damage).toEqual([
      {
        kind: 'bad-json',
        line: 1,
        why: `lines 1 to ${count}: the line is no JSON object with a type; it is left out`,
      },
    ])
  })

  it.each([
    ['cut off', user('b').slice(0, -5), 1, ['torn-line']],
    ['cut off inside a list', `${user('b').slice(0, -2)}]}`, 1, ['torn-line']],
    ['whole, without newline', user('b'), 2, []],
    [
      'nested too deeply',
      user('b', { y: 0 }).replace('"y":0', `"y":${'['.repeat(9000)}${']'.repeat(9000)}`),
      1,
      ['bad-shape'],
    ],
    ['not there', '', 1, []],
  ])('a last line that is %s', (_, rest, count, kinds) => {
    const reader = createLogReader('claude-code')
    const first = reader.readLine(user('a'))
    const { records, damage } = reader.finish(rest)
    expect([...first, ...records].map(({ line }) => line)).toEqual([1, 2].slice(0, count))
    expect(damage.map(({ kind, line }) => [kind, line])).toEqual(kinds.map((kind) => [kind, 2]))
  })
})

describe('a message queued while the model worked', () => {
  const queue = (operation: string, content?: string): string =>
    JSON.stringify({ type: 'queue-operation', operation, sessionId: 's', timestamp: 't', content })
  const prompts = (lines: readonly string[]): readonly unknown[] =>
    readAll(lines, 'claude-code').records.flatMap(({ record }) => {
      const { attachment, uuid, parentUuid } = record as AttachmentRecord
      return record.type === 'attachment' ? [[uuid, parentUuid, attachment.prompt]] : []
    })

  it('is an attachment where the log only says that the model got it', () => {
    const task = '{"task_id":"a1","description":"x"}'
    const lines = [
      user('a'),
      queue('enqueue', task),
      queue('enqueue', 'also the tests'),
      user('b'),
      queue('remove'),
      user('c'),
    ]
    // The message of the user leaves the queue before the notice, which waits until the turn has ended.
    expect(prompts([...lines, queue('remove')])).toEqual([['queued-5', 'b', 'also the tests']])
    expect(readAll([...lines, queue('remove')], 'claude-code').records).toHaveLength(7)
  })

  it.each([
    ['became a prompt', [queue('dequeue')]],
    ['was taken back by the user', [queue('popAll', 'stop')]],
    ['has its own attachment', [queue('remove', 'stop')]],
    [
      'was logged as a prompt without leaving the queue',
      [user('b', { message: { role: 'user', content: 'stop' } })],
    ],
  ])('is none where it %s', (_, lines) => {
    expect(prompts([user('a'), queue('enqueue', 'stop'), ...lines])).toEqual([])
  })

  it('still waits if another one with the same text became a prompt', () => {
    const yes = (uuid: string): string => user(uuid, { message: { role: 'user', content: 'yes' } })
    const queued = [queue('enqueue', 'yes'), queue('enqueue', 'yes'), queue('enqueue', 'also the tests')]
    const first = [user('a'), ...queued, queue('dequeue'), yes('b')]
    expect(prompts(first).map((each) => (each as readonly unknown[])[2])).toEqual(['yes', 'also the tests'])
    expect(prompts([...first, queue('dequeue'), yes('c'), queue('remove')])).toEqual([
      ['queued-9', 'c', 'also the tests'],
    ])
  })

  it('is an attachment at the end where it still waits, and the model has not seen it', () => {
    const task = '<task-notification>x</task-notification>'
    const waiting = ['also the tests', task, '/clear', 'and the docs'].map((text) => queue('enqueue', text))
    expect(prompts([user('a'), ...waiting])).toEqual([
      ['queued-2', 'a', 'also the tests'],
      ['queued-5', 'queued-2', 'and the docs'],
    ])
    const blocks = [{ type: 'text', text: 'and the docs' }]
    const inBlocks = { type: 'queue-operation', operation: 'enqueue', sessionId: 's', content: blocks }
    expect(prompts([user('a'), JSON.stringify(inBlocks)])).toEqual([['queued-2', 'a', blocks]])
    expect(
      prompts([user('a'), JSON.stringify(inBlocks), JSON.stringify({ ...inBlocks, operation: 'remove' })]),
    ).toEqual([])
  })
})

describe('a log of our own', () => {
  const header = '{"type":"tidemark","format":"tidemark-session","version":1,"sessionId":"s","timestamp":"t"}'
  const part = (seq: number, index: number, of: number): string =>
    user(`r${seq}`, { seq, batch: { id: 'b', index, of } })

  it('gives a batch when it is whole, each record with its own line', () => {
    const reader = createLogReader('tidemark')
    const given = [header, user('r1', { seq: 1 }), part(2, 0, 3), part(3, 1, 3), part(4, 2, 3)].map((text) =>
      reader.readLine(text).map(({ record, line }) => [line, record.uuid]),
    )
    expect(given).toEqual([
      [],
      [[2, 'r1']],
      [],
      [],
      [
        [3, 'r2'],
        [4, 'r3'],
        [5, 'r4'],
      ],
    ])
  })

  it('gives each record with its own line, also where other lines stand among the parts of a batch', () => {
    const lines = [header, part(1, 0, 3), '', part(2, 1, 3), part(2, 1, 3), user('x'), part(3, 2, 3)]
    const { records, damage } = readAll(lines, 'tidemark')
    expect(records.map(({ record, line }) => [line, record.uuid])).toEqual([
      [2, 'r1'],
      [4, 'r2'],
      [6, 'x'],
      [7, 'r3'],
    ])
    expect(damage.map(({ kind, line }) => [kind, line])).toEqual([['duplicate-uuid', 5]])
  })

  it('sets an incomplete batch aside', () => {
    const { records, damage } = readAll([header, user('r1', { seq: 1 }), part(2, 0, 2)], 'tidemark')
    expect(records.map(({ line }) => line)).toEqual([2])
    expect(damage.map(({ kind, line }) => [kind, line])).toEqual([['incomplete-batch', 3]])
  })
})

const line = (fields: object): SessionRecord => ({ type: 'progress', ...fields }) as SessionRecord
const said = (content: unknown): SessionRecord => line({ type: 'user', message: { role: 'user', content } })

describe('isClaudeCodeRestart', () => {
  it.each<[string, SessionRecord, boolean]>([
    ['the program comes up', line({ data: { hookName: 'SessionStart:startup' } }), true],
    ['a session is taken up again', line({ data: { hookName: 'SessionStart:resume' } }), true],
    [
      'logged as an attachment',
      line({ type: 'attachment', attachment: { hookName: 'SessionStart:resume' } }),
      true,
    ],
    ['a hook after a compaction', line({ data: { hookName: 'SessionStart:compact' } }), false],
    ['another hook', line({ data: { hookName: 'Stop' } }), false],
    ['the person leaves', said('<command-name>/exit</command-name>\n<command-args></command-args>'), true],
    ['another command', said('<command-name>/compact</command-name>'), false],
    ['a word about leaving', said('what does <command-name>/exit</command-name> do?'), false],
    ['blocks', said([{ type: 'text', text: '<command-name>/exit</command-name>' }]), false],
    ['nothing of the kind', line({}), false],
  ])('%s', (_, record, is) => {
    expect(isClaudeCodeRestart(record, undefined)).toBe(is)
  })

  it.each<[string, object, object, boolean]>([
    ['another version', { version: '2.1.37' }, { version: '2.1.36' }, true],
    ['the same', { version: '2.1.36' }, { version: '2.1.36' }, false],
    ['a line without one', {}, { version: '2.1.36' }, false],
    ['behind a line without one', { version: '2.1.36' }, {}, false],
  ])('%s', (_, now, before, is) => {
    expect(isClaudeCodeRestart(line(now), line(before))).toBe(is)
  })
})

describe('readClaudeCodeTotals', () => {
  const modelUsage = {
    'claude-opus-5[1m]': {
      inputTokens: 10,
      outputTokens: 20,
      cacheReadInputTokens: 300,
      cacheCreationInputTokens: 4,
      costUSD: 1.5,
    },
    'claude-haiku-4-5': { inputTokens: 7, costUSD: -1 },
    broken: 'x',
  }

  it('reads cost and tokens of each model', () => {
    const record = line({ type: 'cost-state', sessionId: 's', totalCostUSD: 1.75, modelUsage })
    expect(readClaudeCodeTotals(record)).toEqual({
      sessionId: 's',
      costUsd: 1.75,
      models: [
        { name: 'claude-opus-5[1m]', costUsd: 1.5, promptTokens: 314, outputTokens: 20 },
        { name: 'claude-haiku-4-5', costUsd: 0, promptTokens: 7, outputTokens: 0 },
      ],
    })
  })

  it.each([
    ['another record', { type: 'progress', totalCostUSD: 1 }],
    ['no total', { type: 'cost-state' }],
    ['a total that is no amount', { type: 'cost-state', totalCostUSD: '1' }],
  ])('reads nothing from %s', (_, fields) => {
    expect(readClaudeCodeTotals(line(fields))).toBe(null)
  })
})

it('a log of Tidemark has the context window of its last prefix snapshot', () => {
  const epoch = (uuid: string, window: number) =>
    JSON.stringify({ type: 'system', subtype: 'epoch', uuid, parentUuid: null, epoch: { window } })
  const reader = createRecordLogReader('tidemark')
  for (const text of [epoch('a', 200_000), epoch('b', 32_000)]) reader.readLine(text)
  expect(reader.finish().meta.contextWindow).toBe(32_000)
})
