import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { EMPTY_CACHE_LAPSE_TALLY, updateCacheLapseTally } from '../cache/cache-model.ts'
import {
  createCacheMonitor,
  EMPTY_CALLER_STATE,
  withAnnouncedRewrite,
  withCallerState,
} from '../cache/cache-monitor.ts'

import { type ContextEntry, findThinkingResponseIds } from '../context/context-entry.ts'
import type { MicrocompactMetadata, SessionRecord } from '../log/record.ts'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import {
  announceRewriteToMonitor,
  applyPinRecords,
  measureCompactionSpacing,
  NO_PINS,
  resetCompactionTracking,
} from './session-state.ts'

const { auto } = DEFAULT_POLICY.turn

describe('tracking', () => {
  it('counts turns since the last compaction and names the turn it was made in', () => {
    const started = { turns: 2, turnId: 'c', compactedIn: null }
    expect(measureCompactionSpacing(started, auto)).toEqual({
      isClose: false,
      turnsBetween: 2,
      previousTurn: null,
    })
    const compacted = resetCompactionTracking(started, 'd')
    expect(compacted).toEqual({ turns: 0, turnId: 'd', compactedIn: 'c' })
    expect(measureCompactionSpacing({ ...compacted, turns: 1, turnId: 'e' }, auto)).toEqual({
      isClose: true,
      turnsBetween: 1,
      previousTurn: 'c',
    })
  })

  it.each([
    [auto.closeTurns, true],
    [auto.closeTurns + 1, false],
  ])('is close after %i turns: %s', (turns, isClose) => {
    const compacted = resetCompactionTracking({ turns: 0, turnId: 'a', compactedIn: null }, 'b')
    expect(measureCompactionSpacing({ ...compacted, turns }, auto).isClose).toBe(isClose)
  })
})

const MINUTE = 60_000
const at = (minutes: number) => ({ timestamp: new Date(minutes * MINUTE).toISOString() })

describe('the calls of a session', () => {
  const builder = new SessionBuilder('told')
  builder.user('one', at(0))
  builder.assistant('a', [{ type: 'text', text: 'x' }], at(1))
  builder.assistant('a', [{ type: 'text', text: 'of the same response' }], at(2))
  const early = updateCacheLapseTally(EMPTY_CACHE_LAPSE_TALLY, builder.session, 5 * MINUTE)
  builder.assistant('b', 'y', at(3))
  builder.assistant('c', 'after lunch', at(60))
  builder.assistant('side', 'another conversation', { ...at(200), isSidechain: true })
  builder.assistant('error', 'API error', {
    ...at(300),
    isApiErrorMessage: true,
    message: { id: 'error', role: 'assistant', model: '<synthetic>', content: 'API error' },
  })

  it('are counted as they come, and the gaps that outlasted the cache', () => {
    const grown = updateCacheLapseTally(early, builder.session, 5 * MINUTE)
    expect(early.runs).toEqual({ calls: 1, lapses: 0 })
    expect(grown.runs).toEqual({ calls: 3, lapses: 1 })
    expect(updateCacheLapseTally(EMPTY_CACHE_LAPSE_TALLY, builder.session, 5 * MINUTE)).toEqual(grown)
  })

  it('are counted anew for another lifetime', () => {
    expect(updateCacheLapseTally(early, builder.session, 60 * MINUTE).runs).toEqual({ calls: 3, lapses: 0 })
  })
})

const SOURCES = ['repl_main_thread', 'agent:review']
const watched = SOURCES.reduce(
  (watch, source) => withCallerState(watch, source, EMPTY_CALLER_STATE),
  createCacheMonitor(),
)

function announced(record: SessionRecord, builder = new SessionBuilder()) {
  const { sources } = announceRewriteToMonitor(watched, record, builder.view)
  return [...sources.values()].map((source) => source.announced)
}

const CLEARING: MicrocompactMetadata = {
  trigger: 'auto',
  preTokens: 9_000,
  tokensSaved: 5_000,
  compactedToolIds: ['a', 'b'],
  clearedAttachmentUUIDs: [],
}

describe('acts read off the log', () => {
  it('are announced to every source that is watched', () => {
    const record = new SessionBuilder().notice('microcompact_boundary', { microcompactMetadata: CLEARING })
    const clearing = { kind: 'clearing', act: 'cleared 2 results', freedTokens: 5_000 }
    expect(announced(record)).toEqual([[clearing], [clearing]])
  })

  it('name what the provider had deleted before where it deletes again', () => {
    const builder = new SessionBuilder()
    builder.user('Go.')
    const usage = { input: 1, output: 1 }
    const message = (id: string, more: object) => ({
      message: { id, role: 'assistant' as const, model: 'm', content: 'Yes.', usage: { ...usage, ...more } },
    })
    builder.assistant('m1', 'Yes.', message('m1', { removed: 700 }))
    builder.assistant('m2', 'Yes.', message('m2', {}))
    const microcompactMetadata = { ...CLEARING, way: 'cached' as const, compactedToolIds: ['a'] }
    const record = builder.notice('microcompact_boundary', { microcompactMetadata })
    const edits = { kind: 'cache-edits', act: 'cleared 1 result', freedTokens: 5_000, deletedBefore: 700 }
    expect(announced(record, builder)[0]).toEqual([edits])
  })

  it.each(['compact_boundary', 'compact_undone', 'clear_undone'])(
    '%s leaves nothing to expect',
    (subtype) => {
      const record = new SessionBuilder().notice(subtype, { of: 'x' })
      const clearing = { kind: 'clearing', act: 'cleared 1 result' } as const
      const before = withAnnouncedRewrite(watched, 'sdk', clearing)
      const { sources } = announceRewriteToMonitor(before, record, new SessionBuilder().view)
      expect([...sources.values()].map((source) => [source.last, source.announced])).toEqual([
        [null, []],
        [null, []],
      ])
    },
  )

  it.each([
    ['what somebody said', () => new SessionBuilder().user('Go.')],
    ['another notice', () => new SessionBuilder().notice('pin', {})],
    ['an act of a side agent', () => new SessionBuilder().notice('compact_boundary', { isSidechain: true })],
    ['a line of another kind', (): SessionRecord => ({ type: 'file-history' })],
  ])('are none in %s', (_, record) => {
    expect(announceRewriteToMonitor(watched, record(), new SessionBuilder().view)).toBe(watched)
  })

  it('announce nothing where nothing is watched', () => {
    const watch = createCacheMonitor()
    expect(
      announceRewriteToMonitor(
        watch,
        new SessionBuilder().notice('compact_boundary', {}),
        new SessionBuilder().view,
      ),
    ).toBe(watch)
  })
})

const word = (target: unknown, pinned: boolean, more: object = {}) =>
  ({ type: 'system', subtype: 'pin', pin: { target, pinned }, ...more }) as never

describe('pins', () => {
  it('are by the newest word on each, in the order of pinning', () => {
    const pins = applyPinRecords(NO_PINS, [
      word('a', true),
      word('b', true),
      word('a', false),
      word('a', true),
    ])
    expect([...pins]).toEqual(['b', 'a'])
    expect([...applyPinRecords(pins, [word('b', false)])]).toEqual(['a'])
  })

  it('count on whatever branch they were set', () => {
    const builder = new SessionBuilder()
    builder.user('one', { uuid: 'p1' })
    builder.notice('pin', { pin: { target: 'p1', pinned: true } })
    builder.notice('pin', { pin: { target: 'p9', pinned: true } })
    builder.notice('pin', { pin: { target: 'p9', pinned: false } })
    builder.user('anew', { uuid: 'p2', parentUuid: null })
    expect(builder.pins).toEqual(['p1'])
  })

  it('stay the same object where nothing is said of them', () => {
    const others = [word(7, true), word('a', true, { isSidechain: true }), { type: 'user' } as never]
    expect(applyPinRecords(NO_PINS, others)).toBe(NO_PINS)
  })
})

function entries(...ids: readonly string[]): readonly ContextEntry[] {
  const builder = new SessionBuilder('told')
  for (const id of ids) {
    if (id.startsWith('note')) builder.attachment({ type: 'todo', content: id }, { uuid: id })
    else
      builder.assistant(id, [
        { type: 'thinking', thinking: id, signature: 's' },
        { type: 'text', text: 'x' },
      ])
  }
  return builder.view.entries.toArray()
}

describe('thinking that entries show', () => {
  it('counts each response once, and none whose thinking is gone', () => {
    const [first] = entries('a')
    if (first === undefined) throw new Error('there is one')
    const cleared = { whole: false, thinking: true, results: [], inputs: [] }
    expect(findThinkingResponseIds([first, first, { ...first, cleared }])).toEqual(['a'])
    expect(findThinkingResponseIds([{ ...first, cleared }])).toEqual([])
  })
})
