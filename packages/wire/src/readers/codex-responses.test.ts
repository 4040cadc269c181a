import { describe, expect, it } from 'vitest'
import {
  call,
  count,
  describeRecords,
  event,
  item,
  message,
  output,
  readAll,
  session,
  turn,
} from '../../test/rollout.ts'
import { createUsageReader } from './codex-responses.ts'

const START = [session('s'), turn('gpt-x'), event('task_started'), message('user', 'go')]
const FIRST = { input: 10, cached: 4, output: 1 }
const SECOND = { input: 20, cached: 5, output: 2 }

describe('which items are one response', () => {
  it('counts behind the items, as today', () => {
    const { records } = readAll([
      ...START,
      item('reasoning', { summary: [] }),
      message('assistant', 'looking'),
      call('a'),
      call('b'),
      count(FIRST),
      output('a'),
      output('b'),
      message('assistant', 'done'),
      count(SECOND, FIRST),
      event('task_complete'),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '5 assistant: thinking [1: 6]',
      '6 assistant: looking [1: 6]',
      '7 assistant: tool_use a [1: 6]',
      '8 assistant: tool_use b [1: 6]',
      '10 user: tool_result a',
      '11 user: tool_result b',
      '12 assistant: done [2: 15]',
    ])
  })

  it('counts in front of the items, as until late in 2025', () => {
    const { records } = readAll([
      ...START,
      count(FIRST),
      call('a'),
      output('a'),
      call('b'),
      output('b'),
      count(SECOND, FIRST),
      message('assistant', 'done'),
      event('task_complete'),
      message('user', 'thanks'),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '6 assistant: tool_use a [1: 6]',
      '7 user: tool_result a',
      '8 assistant: tool_use b [1: 6]',
      '9 user: tool_result b',
      '11 assistant: done [2: 15]',
      '13 user: thanks',
    ])
  })

  it('no counts at all: a response ends where the tools have answered', () => {
    const { records } = readAll([
      ...START,
      call('a'),
      call('b'),
      output('a'),
      output('b'),
      call('c'),
      output('c'),
      message('assistant', 'done'),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '5 assistant: tool_use a [1: ?]',
      '6 assistant: tool_use b [1: ?]',
      '7 user: tool_result a',
      '8 user: tool_result b',
      '9 assistant: tool_use c [2: ?]',
      '10 user: tool_result c',
      '11 assistant: done [3: ?]',
    ])
  })

  it('repeated usage is not another call', () => {
    const { records } = readAll([
      ...START,
      event('token_count', { info: null }),
      message('assistant', 'one'),
      count(FIRST),
      count(FIRST),
      event('task_complete'),
      count(FIRST),
      message('user', 'more'),
      count(FIRST),
      message('assistant', 'two'),
      count(SECOND, FIRST),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '6 assistant: one [1: 6]',
      '11 user: more',
      '13 assistant: two [2: 15]',
    ])
  })

  it('a call that left nothing is one all the same: that of a compaction, say', () => {
    const { records } = readAll([
      ...START,
      message('assistant', 'one'),
      count(FIRST),
      count(SECOND, FIRST),
      message('user', 'more'),
      message('assistant', 'two'),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '5 assistant: one [1: 6]',
      '7 assistant:  [2: 15]',
      '8 user: more',
      '9 assistant: two [3: ?]',
    ])
  })

  it('a log that goes on in the newer order is followed', () => {
    const { records } = readAll([
      ...START,
      count(FIRST),
      message('assistant', 'one'),
      message('user', 'more'),
      message('assistant', 'two'),
      count(SECOND, FIRST),
    ])
    expect(describeRecords(records)).toEqual([
      '4 user: go',
      '6 assistant: one [1: 6]',
      '7 user: more',
      '8 assistant: two [2: 15]',
    ])
  })

  it('an interrupted response has no count and does not take that of the next', () => {
    const { records } = readAll([
      ...START,
      message('assistant', 'one'),
      count(FIRST),
      event('task_complete'),
      message('user', 'more'),
      message('assistant', 'half'),
      event('turn_aborted'),
      message('user', 'again'),
      message('assistant', 'whole'),
      count(SECOND, FIRST),
    ])
    expect(describeRecords(records).slice(2)).toEqual([
      '8 user: more',
      '9 assistant: half [2: ?]',
      '11 user: again',
      '12 assistant: whole [3: 15]',
    ])
  })

  it('what stands among the items of a response keeps its place', () => {
    const { records } = readAll([
      ...START,
      event('agent_message'),
      message('assistant', 'one'),
      event('x'),
      count(FIRST),
    ])
    expect(records.map(({ line }) => line)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })
})

describe('the name of a response', () => {
  const said = [message('user', 'go'), call('a'), count(FIRST), output('a'), message('assistant', 'done')]
  const end = count(SECOND, FIRST)

  function namesIn(lines: readonly string[]): readonly unknown[] {
    const messages = readAll(lines).records.map(
      ({ record }) => (record as { message?: { id?: string } }).message,
    )
    return messages.flatMap((given) => given?.id ?? [])
  }

  it('is the same in a fork, whose log begins with a copy', () => {
    const parent = namesIn([session('parent'), ...said, end])
    const fork = [session('fork', { forked_from_id: 'parent' }), session('parent'), ...said, end]
    const grandchild = [session('third', { forked_from_id: 'fork' }), ...fork]
    expect(parent).toEqual(['codex-a-10.4.1.0', 'codex-parent-30.9.3.0'])
    expect(namesIn(fork)).toEqual(parent)
    expect(namesIn(grandchild)).toEqual(parent)
  })

  it('is another in another session, though every figure be the same', () => {
    const [, one] = namesIn([session('one'), ...said, end])
    const [, other] = namesIn([session('other'), ...said, end])
    expect(one).not.toBe(other)
  })
})

const usage = (input: number, cached: number, output: number, more: object = {}): object => ({
  input_tokens: input,
  cached_input_tokens: cached,
  output_tokens: output,
  ...more,
})

describe('a usage notice', () => {
  it.each([
    [
      'cached input is no input',
      usage(100, 90, 5),
      { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 5 },
    ],
    [
      'nor is what was written to the cache',
      usage(100, 60, 5, { cache_write_input_tokens: 30 }),
      { input_tokens: 10, cache_read_input_tokens: 60, cache_creation_input_tokens: 30, output_tokens: 5 },
    ],
    [
      'reasoning is part of the output and told beside it',
      usage(100, 0, 5, { reasoning_output_tokens: 4 }),
      { input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 5, reasoning_output_tokens: 4 },
    ],
    [
      'figures that cannot be are none',
      usage(10, 20, -5),
      { input_tokens: 0, cache_read_input_tokens: 20, output_tokens: 0 },
    ],
  ])('%s', (_, last, expected) => {
    const taken = createUsageReader().read(
      { info: { total_token_usage: last, last_token_usage: last } },
      false,
    )
    expect(taken?.usage).toEqual({ reasoning_output_tokens: 0, ...expected })
  })

  it('without the last call it is the difference of the totals', () => {
    const counts = createUsageReader()
    counts.read({ info: { total_token_usage: usage(100, 40, 5) } }, false)
    const second = counts.read({ info: { total_token_usage: usage(300, 140, 9) } }, false)
    expect(second?.usage).toEqual({
      input_tokens: 100,
      cache_read_input_tokens: 100,
      output_tokens: 4,
      reasoning_output_tokens: 0,
    })
  })

  it('totals that were there before are no call, and neither is nothing', () => {
    const counts = createUsageReader()
    const notices = [usage(0, 0, 0), usage(10, 0, 1), usage(10, 0, 1), usage(20, 0, 2), usage(10, 0, 1)]
    const calls = notices.map(
      (total) => counts.read({ info: { total_token_usage: total } }, false)?.key ?? null,
    )
    expect(calls).toEqual([null, '10.0.1.0', null, '20.0.2.0', null])
  })

  it('a call reported by two kinds of line counts once', () => {
    const counts = createUsageReader()
    const last = usage(10, 0, 1)
    const event = { info: { total_token_usage: usage(510, 0, 51), last_token_usage: last } }
    const record = { usage: last, thread_token_usage: last }
    expect(counts.read(event, false)?.key).toBe('510.0.51.0')
    expect(counts.read(record, true)).toBeNull()
    expect(counts.read({ usage: last, thread_token_usage: usage(20, 0, 2) }, false)?.key).toBe('20.0.2.0')
  })

  it.each([{}, { info: null }, { info: 'x' }, { info: { total_token_usage: 7 } }])(
    '%j tells of no call',
    (notice) => {
      const counts = createUsageReader()
      expect(counts.read(notice, false)).toBeNull()
      expect(counts.hasUsage).toBe(true)
    },
  )
})
