import { createUsage } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { RULES } from '../../test/breaks/rules.ts'
import {
  longTalk,
  prompted,
  requestOf,
  responded,
  rounded,
  type Talk,
  TEXT,
  told,
} from '../../test/breaks/talk.ts'
import { createWatcher } from '../../test/breaks/watcher.ts'
import type { TracedMessage } from '../context/flatten-context.ts'
import { AppendList } from '../log/persistent-collections.ts'
import type { MessageList } from '../request/block-index.ts'
import {
  countKeptInFork,
  findForkParentKey,
  matchesWildcard,
  type ReportedContextEdits,
  toCallerKey,
} from './cache-monitor.ts'

const MAIN = 'repl_main_thread'
const talk = longTalk()
const next = rounded(talk, 2, TEXT)

describe('query sources', () => {
  it.each([
    { first: MAIN, second: 'repl_main_thread:plain', kind: 'broke' },
    { first: 'sdk', second: 'sdk', kind: 'broke' },
    { first: 'agent:one', second: 'agent:one', kind: 'broke' },
    { first: 'agent:one', second: 'agent:two', kind: 'first' },
    { first: MAIN, second: 'session_memory', kind: 'first' },
    { first: MAIN, second: 'compact', kind: 'broke' },
    { first: 'agent:one', second: 'compact', kind: 'first' },
  ])('$second after $first, the cache lost: $kind', ({ first, second, kind }) => {
    const watcher = createWatcher()
    watcher.send({ ...requestOf(talk, 0), source: first })
    watcher.cache.evict()
    expect(watcher.send({ ...requestOf(next, 1_000), source: second }).outcome.kind).toBe(kind)
  })

  it('are bounded in number: the one unused longest is let go', () => {
    const policy = { ...RULES.policy, sources: 3 }
    const watcher = createWatcher({ ...RULES, policy })
    for (const source of ['agent:1', 'agent:2', 'agent:3', 'agent:1', 'agent:4'])
      watcher.send({ ...requestOf(talk, 0), source })
    expect([...watcher.watch.sources.keys()]).toEqual(['agent:3', 'agent:1', 'agent:4'])
  })
})

describe('a fork', () => {
  const fork = { ...requestOf(prompted(talk, 'sum it up'), 200_000), source: 'compact' }

  it('leaves what its parent is compared with as it was, and alive for longer', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    expect(watcher.send(fork).outcome.kind).toBe('read')
    expect(watcher.send(requestOf(next, 400_000)).outcome).toEqual({
      kind: 'read',
      expected: 28_803,
      read: 28_803,
    })
  })

  it('counts as a use: what is lost soon after it was not lost by time', () => {
    const reasons = [true, false].map((isForked) => {
      const watcher = createWatcher()
      watcher.send(requestOf(talk, 0))
      if (isForked) watcher.send(fork)
      watcher.cache.evict()
      const { outcome } = watcher.send(requestOf(next, 400_000))
      return outcome.kind === 'broke' && outcome.event.reason.kind
    })
    expect(reasons).toEqual(['evicted', 'expired'])
  })

  it('that misses is told with its reason', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    const { outcome } = watcher.send({ ...fork, parameters: { ...fork.parameters, toolChoice: 'none' } })
    expect(outcome.kind === 'broke' && outcome.event.reason).toEqual({
      kind: 'tool-choice-changed',
      before: null,
      after: 'none',
    })
  })

  it('reads the cache of the source it names', () => {
    const watcher = createWatcher()
    watcher.send({ ...requestOf(talk, 0), source: 'agent:one' })
    watcher.cache.evict()
    const side = { ...requestOf(next, 1_000), source: 'session_memory', forkOf: 'agent:one' }
    expect(watcher.send(side).outcome.kind).toBe('broke')
  })

  it('is compared with its parent as that was when it was sent', () => {
    const first = {
      input: 0,
      output: 1,
      read: 0,
      short: 30_000,
    }
    const read = { ...first, read: 30_000, short: 9_000 }
    const watcher = createWatcher()
    watcher.exchange(requestOf(talk, 0), first)
    watcher.record(fork)
    watcher.exchange(requestOf(next, 1_000), read)
    expect(watcher.answer({ source: 'compact', usage: createUsage(read) })).toEqual({
      kind: 'read',
      expected: 30_000,
      read: 30_000,
    })
  })
})

describe('calls that go wrong', () => {
  it('a request sent again takes the place of the one that got no answer', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.record({ ...requestOf(next, 1_000), tools: [] })
    expect(watcher.send(requestOf(next, 2_000)).outcome.kind).toBe('read')
  })

  it('an announcement holds until a call is answered', () => {
    const first = {
      input: 0,
      output: 1,
      read: 0,
      short: 30_000,
    }
    const watcher = createWatcher()
    watcher.exchange(requestOf(talk, 0), first)
    watcher.announce(MAIN, { kind: 'cache-edits', act: 'deleted', deletedBefore: 0 })
    watcher.record(requestOf(next, 1_000))
    expect(watcher.answer({ source: MAIN, usage: null })).toEqual({ kind: 'not-judged', why: 'no-usage' })
    const usage = { ...first, read: 10_000, removed: 20_000 }
    expect(watcher.exchange(requestOf(next, 2_000), usage).kind).toBe('read')
  })

  it('a compaction while a call is under way leaves nothing to compare the next one with', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.record(requestOf(next, 1_000))
    watcher.announce(MAIN, { kind: 'compaction' })
    const usage = watcher.cache.answer(requestOf(next, 1_000))
    const settled = watcher.answer({ source: MAIN, usage })
    const after = watcher.exchange(requestOf(prompted(longTalk(), 'x'), 2_000), usage)
    expect([settled.kind, after.kind]).toEqual(['read', 'first'])
  })

  it('an answer to nothing that was sent is not judged', () => {
    const usage = createUsage({ input: 1, output: 1 })
    expect(createWatcher().answer({ source: MAIN, usage })).toEqual({
      kind: 'not-judged',
      why: 'not-watched',
    })
  })

  const edited = (results: number, tokens: number, text = ''): ReportedContextEdits => ({
    results,
    thinkingTurns: 0,
    tokens,
    text,
  })

  it('what the provider newly cleared is charged for, and the same edit again is judged like any request', () => {
    const watcher = createWatcher()
    const { usage } = watcher.send(requestOf(talk, 0))
    const cached = usage.writes.short + usage.writes.long
    watcher.cache.evict()
    const first = watcher.send(requestOf(next, 1_000), { edits: edited(3, 5_000) })
    expect(first.outcome).toMatchObject({
      kind: 'ours',
      act: { act: 'the provider cleared 3 results', tokensRewritten: cached - 5_000 },
    })
    expect(watcher.send(requestOf(next, 2_000), { edits: edited(3, 5_000) }).outcome.kind).toBe('read')
    watcher.cache.evict()
    expect(watcher.send(requestOf(next, 3_000), { edits: edited(3, 5_000) }).outcome.kind).toBe('broke')
  })

  it('what the provider newly cleared from a fork is a break, since it frees nothing for later', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0), { edits: edited(3, 5_000) })
    watcher.cache.evict()
    const fork = { ...requestOf(prompted(talk, 'sum it up'), 1_000), source: 'compact' }
    const { outcome } = watcher.send(fork, { edits: edited(4, 6_000) })
    expect(outcome).toMatchObject({
      kind: 'broke',
      event: { reason: { kind: 'cleared-for-fork' }, ours: null },
    })
  })

  it('cleared content that comes back is a break, and an edit of an unknown kind is not judged', () => {
    const watcher = createWatcher()
    watcher.send(requestOf(talk, 0))
    watcher.send(requestOf(next, 1_000), { edits: edited(3, 5_000) })
    watcher.cache.evict()
    expect(watcher.send(requestOf(next, 2_000)).outcome.kind).toBe('broke')
    const unknown = { edits: edited(0, 0, 'trim 1') }
    expect(watcher.send(requestOf(next, 3_000), unknown).outcome).toEqual({
      kind: 'not-judged',
      why: 'edited-by-provider',
    })
    expect(watcher.send(requestOf(next, 4_000), unknown).outcome.kind).toBe('read')
  })

  it.each([
    [edited(3, 5_000), 'read'],
    [null, 'broke'],
  ])(
    'a rewind behind a request that the provider edited (%j) is %s: older sizes tell nothing',
    (edits, kind) => {
      const watcher = createWatcher()
      watcher.send(requestOf(talk, 0))
      watcher.send(requestOf(next, 1_000), { edits })
      watcher.cache.evict()
      const other = prompted({ ...talk, ids: 'other' }, `something else: ${TEXT}`)
      expect(watcher.send(requestOf(other, 2_000), { edits }).outcome.kind).toBe(kind)
    },
  )
})

describe('matchesPattern', () => {
  it.each([
    ['claude-haiku-4-5', '*haiku*', true],
    ['Claude-HAIKU-4', '*haiku*', true],
    ['claude-sonnet-5', '*haiku*', false],
    ['gpt-mini', 'gpt-*', true],
    ['my-gpt-mini', 'gpt-*', false],
    ['a-mini', '*-mini', true],
    ['a-mini-b', '*-mini', false],
    ['exact', 'exact', true],
    ['exactly', 'exact', false],
    ['aa', 'a*a*a', false],
    ['a.c', 'a?c', false],
    ['abcbd', 'a*b*d', true],
    ['', '*', true],
  ])('%s against %s: %s', (name, pattern, matches) => {
    expect(matchesWildcard(name, pattern)).toBe(matches)
  })
})

describe('watchKey', () => {
  it('is one for the main thread, whatever it calls itself', () => {
    const names = ['repl_main_thread', 'repl_main_thread:style', 'sdk', '', 'agent:a', 'speculation']
    const main = 'repl_main_thread'
    expect(names.map(toCallerKey)).toEqual([main, main, main, main, 'agent:a', 'speculation'])
  })
})

describe('parentKey', () => {
  it('is the source whose cache is read', () => {
    expect([
      findForkParentKey('compact', undefined),
      findForkParentKey('compact', 'agent:a'),
      findForkParentKey('session_memory', 'sdk'),
      findForkParentKey('agent:a', undefined),
    ]).toEqual(['repl_main_thread', 'agent:a', 'repl_main_thread', null])
  })
})

// Thinking that a provider leaves out of a finished turn is no break; in the middle of a turn nothing is left out.

const profile = { ...RULES.profile, thinking: { ...RULES.profile.thinking, stripsFinishedTurns: true } }
const rules = { ...RULES, profile }
const thoughtful = rounded(longTalk(), 1, TEXT, TEXT.repeat(3))
const called = responded(thoughtful, [{ type: 'tool_use', id: 'last', name: 'Read', input: {} }])
const result = { type: 'tool_result', tool_use_id: 'last', content: TEXT }
const words = { type: 'text', text: TEXT }
const spoken = prompted(responded(thoughtful, [{ type: 'text', text: 'done' }]), TEXT)
const system = { role: 'system', content: 'it is late' }

it.each<[string, Talk, string]>([
  ['a prompt', spoken, 'read'],
  ['a prompt and a system message behind it', told(spoken, { type: 'user', message: system }), 'read'],
  ['words beside a result', prompted(called, [result, words]), 'read'],
  ['a result alone', prompted(called, [result]), 'broke'],
  [
    'a result and a system message',
    told(prompted(called, [result]), { type: 'user', message: system }),
    'broke',
  ],
])('after %s', (_, talk, kind) => {
  const usage = { input: 0, output: 1 }
  const before = { ...usage, read: 0, short: 33_300 }
  const after = { ...usage, read: 29_900, short: 6_000 }
  const watcher = createWatcher(rules)
  watcher.exchange(requestOf(thoughtful, 0), before)
  expect(watcher.exchange(requestOf(talk, 1_000), after).kind).toBe(kind)
})

/** Messages with so many tool calls, each with thinking before it. */
function callsOf(count: number): MessageList {
  const tail = Array.from({ length: count }, (_, index): TracedMessage => {
    const content = [
      { type: 'thinking', thinking: 'hm', signature: 's' },
      { type: 'tool_use', id: `call-${index}`, name: 'Read', input: {} },
    ]
    return { message: { role: 'assistant', content }, origins: ['', ''] }
  })
  return { frozen: AppendList.of<TracedMessage>(), tail }
}

describe('the context edits of a fork', () => {
  it.each([
    { what: 'what the parent kept and what is new', results: true, thinking: true, keeps: [4, 5] },
    { what: 'all where nothing was cleared', results: false, thinking: false, keeps: [10, 10] },
    { what: 'all thinking where only results were cleared', results: true, thinking: false, keeps: [10, 5] },
  ])('keep $what', ({ results, thinking, keeps }) => {
    const input = { parent: callsOf(8), fork: callsOf(10), isCleared: { results, thinking } }
    const made = [countKeptInFork('clear-thinking', 2, input), countKeptInFork('clear-results', 3, input)]
    expect(made).toEqual(keeps)
  })
})
