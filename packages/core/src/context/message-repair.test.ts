import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { toBlocks } from '../log/block.ts'
import { chooseCompactionSpan } from '../summary/select-span.ts'
import { applyClearingToEntries } from './context-entry.ts'
import {
  findCutPoints,
  flattenContext,
  listUnansweredCalls,
  listWaitingCallIds,
  toApiMessages,
} from './flatten-context.ts'
import { MISSING_RESULT_TEXT } from './message-repair.ts'

const call = (id: string) => ({ type: 'tool_use' as const, id, name: 'Read', input: {} })
const search = (id: string) => ({ type: 'server_tool_use' as const, id, name: 'web_search', input: {} })
const found = (id: string) => ({ type: 'web_search_tool_result' as const, tool_use_id: id, content: [] })

describe('settling, cutting and compacting agree on which calls wait', () => {
  it.each<[string, (builder: SessionBuilder) => void, readonly string[]]>([
    ['a call without a result', (t) => t.assistant('m1', [call('a')]), ['a']],
    [
      'one of two that has none',
      (t) => {
        t.assistant('m1', [call('a'), call('b')])
        t.result('a', 'text')
      },
      ['b'],
    ],
    [
      'all that have theirs',
      (t) => {
        t.assistant('m1', [call('a')])
        t.result('a', 'text')
      },
      [],
    ],
    [
      'the calls of two responses in a row',
      (t) => {
        t.assistant('m1', [call('a')])
        t.assistant('m2', [call('b')])
        t.result('b', 'text')
      },
      ['a'],
    ],
    [
      'a call with two responses behind it, of which only the last calls a tool',
      (t) => {
        t.assistant('m1', [call('a')])
        t.assistant('m2', [{ type: 'text', text: 'thinking aloud' }])
        t.assistant('m3', [call('b')])
        t.result('b', 'text')
      },
      ['a'],
    ],
    [
      'a second record of a response, behind results of the first',
      (t) => {
        t.assistant('m1', [call('a')])
        t.result('a', 'text')
        t.assistant('m1', [call('b')])
      },
      ['b'],
    ],
    [
      'a call that the user spoke after',
      (t) => {
        t.assistant('m1', [call('a')])
        t.user('hurry')
      },
      ['a'],
    ],
    [
      'a call that a later response left behind',
      (t) => {
        t.assistant('m1', [call('a')])
        t.user('never mind')
        t.assistant('m2', 'fine')
      },
      [],
    ],
    [
      'a call behind which the provider failed',
      (t) => {
        t.assistant('m1', [call('a')])
        const error = { role: 'assistant' as const, model: '<synthetic>', content: 'overloaded' }
        t.assistant('e1', 'overloaded', { isApiErrorMessage: true, message: { id: 'e1', ...error } })
      },
      ['a'],
    ],
    [
      'a call that repeats the id of one left behind',
      (t) => {
        t.assistant('m1', [call('a')])
        t.user('never mind')
        t.assistant('m2', [call('a')])
      },
      ['a'],
    ],
    ['a server call', (t) => t.assistant('m1', [search('s')]), ['s']],
    ['a server call with its result', (t) => t.assistant('m1', [search('s'), found('s')]), []],
    [
      'a server call beside results',
      (t) => {
        t.assistant('m1', [search('s'), call('a')])
        t.result('a', 'text')
      },
      ['s'],
    ],
    [
      'a server call that the user spoke after',
      (t) => {
        t.assistant('m1', [search('s')])
        t.user('never mind')
      },
      [],
    ],
    [
      'a server call behind which something was attached',
      (t) => {
        t.assistant('m1', [search('s')])
        t.attachment({ type: 'todo', content: 'x' })
      },
      [],
    ],
  ])('%s', (_, tell, waiting) => {
    const builder = new SessionBuilder()
    builder.user('one')
    builder.assistant('m0', 'yes')
    builder.user('two')
    tell(builder)
    const flat = flattenContext(builder.view)
    const records = [...builder.view.entries].map(({ record }) => record)
    expect(listWaitingCallIds(flat)).toEqual(waiting)
    expect(listUnansweredCalls(flat).map(({ id }) => id)).toEqual(waiting.filter((id) => id !== 's'))
    expect(findCutPoints(records).at(-1) === records.length).toBe(waiting.length === 0)
    const choice = chooseCompactionSpan(builder.view, { form: 'full' })
    expect(choice.ok ? null : choice.reason).toBe(waiting.length === 0 ? null : 'pending-call')
  })
})

describe('a call that the provider would refuse', () => {
  const listBlocks = (calls: readonly object[]): readonly unknown[] => {
    const builder = new SessionBuilder()
    builder.user('look')
    builder.assistant('m1', calls as never)
    for (const { id } of calls as readonly { id: string }[]) builder.result(id, `of ${id}`)
    builder.assistant('m2', calls.slice(0, 1) as never)
    const messages = toApiMessages(flattenContext(builder.view))
    return messages.slice(1).flatMap(({ content }) => toBlocks(content))
  }

  it('gets an id that is accepted, and so does its result', () => {
    const calls = [call('functions.Read:0'), call('functions:Read:0'), call('functions_Read_0')]
    const ids = listBlocks(calls).map((block) => {
      const { id, tool_use_id, content } = block as Record<string, string>
      return [id ?? tool_use_id, content]
    })
    expect(ids).toEqual([
      ['functions_Read_0_2', undefined],
      ['functions_Read_0_3', undefined],
      ['functions_Read_0', undefined],
      ['functions_Read_0_2', 'of functions.Read:0'],
      ['functions_Read_0_3', 'of functions:Read:0'],
      ['functions_Read_0', 'of functions_Read_0'],
      ['functions_Read_0_4', undefined],
      ['functions_Read_0_4', MISSING_RESULT_TEXT],
    ])
  })

  it.each<[object, object]>([
    [
      { name: '', input: {} },
      { name: 'unknown', input: {} },
    ],
    [
      { name: 'n'.repeat(300), input: {} },
      { name: 'n'.repeat(200), input: {} },
    ],
    [
      { name: 'Read', input: '{"path"' },
      { name: 'Read', input: { value: '{"path"' } },
    ],
    [
      { name: 'Read', input: ['a.ts'] },
      { name: 'Read', input: { value: ['a.ts'] } },
    ],
    [{ name: 'Read' }, { name: 'Read', input: {} }],
  ])('%j is sent as %j', (given, sent) => {
    expect(listBlocks([{ type: 'tool_use', id: 'c', ...given }])[0]).toEqual({
      type: 'tool_use',
      id: 'c',
      ...sent,
    })
  })
})

describe('a call whose id was used before', () => {
  it('gets a new id, and waits for its result under the id that the model gave', () => {
    const builder = new SessionBuilder()
    builder.user('look')
    for (const response of ['m1', 'm2', 'm3']) {
      builder.assistant(response, [call('c')])
      builder.result('c', response)
    }
    builder.assistant('m4', [call('c')])
    const flat = flattenContext(builder.view)
    const ids = toApiMessages(flat).flatMap(({ content }) =>
      toBlocks(content).flatMap(({ id, tool_use_id, content: text }) => [[id ?? tool_use_id, text]]),
    )
    expect(ids.slice(1)).toEqual([
      ['c', undefined],
      ['c', 'm1'],
      ['c_2', undefined],
      ['c_2', 'm2'],
      ['c_3', undefined],
      ['c_3', 'm3'],
      ['c_4', undefined],
      ['c_4', MISSING_RESULT_TEXT],
    ])
    expect(listUnansweredCalls(flat).map(({ id }) => id)).toEqual(['c'])
    const records = [...builder.view.entries].map(({ record }) => record)
    expect(findCutPoints(records)).toEqual([0, 1, 3, 5, 7])
  })

  it('keeps its result when the result of the first call is cleared', () => {
    const builder = new SessionBuilder()
    builder.user('look')
    for (const response of ['m1', 'm2']) {
      builder.assistant(response, [call('c')])
      builder.result('c', response)
    }
    const metadata = { trigger: 'auto', compactedToolIds: ['c'], clearedAttachmentUUIDs: [] }
    const entries = applyClearingToEntries(builder.view.entries, metadata as never)
    const texts = toApiMessages(flattenContext({ entries })).map(({ content }) => JSON.stringify(content))
    expect([texts[2]?.includes('cleared'), texts[4]?.includes('"m2"')]).toEqual([true, true])
  })

  it.each<[string, readonly string[], readonly (readonly [string, string])[]]>([
    [
      'has its own result, in the order of the calls',
      ['one', 'two'],
      [
        ['c', 'one'],
        ['c_2', 'two'],
      ],
    ],
    ['is left out as a copy if there is one result', ['one'], [['c', 'one']]],
    ['waits with the other one as long as there is none', [], [['c', MISSING_RESULT_TEXT]]],
  ])('in its own response %s', (_, texts, sent) => {
    const builder = new SessionBuilder()
    builder.user('look')
    builder.assistant('m1', [call('c')])
    builder.assistant('m1', [call('c')])
    for (const text of texts) builder.result('c', text)
    const messages = toApiMessages(flattenContext(builder.view))
    const [, calls = [], results = []] = messages.map(({ content }) => toBlocks(content))
    expect(calls.map(({ id }) => id)).toEqual(sent.map(([id]) => id))
    expect(results.map(({ tool_use_id: id, content }) => [id, content])).toEqual(sent)
    const records = [...builder.view.entries].map(({ record }) => record)
    expect(findCutPoints(records).filter((cut) => cut > 1)).toEqual(
      texts.length === 0 ? [] : [records.length],
    )
  })
})
