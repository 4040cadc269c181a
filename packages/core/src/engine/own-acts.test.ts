import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { announceAct, emptyCacheWatch, UNWATCHED, withWatched } from '../breaks/watch.ts'
import type { MicrocompactMetadata } from '../conversation/metadata.ts'
import type { SessionRecord } from '../conversation/record.ts'
import { announceEpoch, watchAct } from './own-acts.ts'

const SOURCES = ['repl_main_thread', 'agent:review']
const watched = SOURCES.reduce((watch, source) => withWatched(watch, source, UNWATCHED), emptyCacheWatch())

function announced(record: SessionRecord, teller = new Teller()) {
  const { sources } = watchAct(watched, record, teller.view)
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
    const record = new Teller().notice('microcompact_boundary', { microcompactMetadata: CLEARING })
    const clearing = { kind: 'clearing', act: 'cleared 2 results', freedTokens: 5_000 }
    expect(announced(record)).toEqual([[clearing], [clearing]])
  })

  it('name what the provider had deleted before where it deletes again', () => {
    const teller = new Teller()
    teller.user('Go.')
    const usage = { input_tokens: 1, output_tokens: 1 }
    const message = (id: string, more: object) => ({
      message: { id, role: 'assistant' as const, model: 'm', content: 'Yes.', usage: { ...usage, ...more } },
    })
    teller.assistant('m1', 'Yes.', message('m1', { cache_deleted_input_tokens: 700 }))
    teller.assistant('m2', 'Yes.', message('m2', {}))
    const microcompactMetadata = { ...CLEARING, way: 'cached' as const, compactedToolIds: ['a'] }
    const record = teller.notice('microcompact_boundary', { microcompactMetadata })
    const edits = { kind: 'cache-edits', act: 'cleared 1 result', freedTokens: 5_000, deletedBefore: 700 }
    expect(announced(record, teller)[0]).toEqual([edits])
  })

  it.each(['compact_boundary', 'compact_undone', 'clear_undone'])(
    '%s leaves nothing to expect',
    (subtype) => {
      const record = new Teller().notice(subtype, { of: 'x' })
      const clearing = { kind: 'clearing', act: 'cleared 1 result' } as const
      const before = announceAct(watched, 'sdk', clearing)
      const { sources } = watchAct(before, record, new Teller().view)
      expect([...sources.values()].map((source) => [source.last, source.announced])).toEqual([
        [null, []],
        [null, []],
      ])
    },
  )

  it.each([
    ['what somebody said', () => new Teller().user('Go.')],
    ['another notice', () => new Teller().notice('pin', {})],
    ['an act of a side agent', () => new Teller().notice('compact_boundary', { isSidechain: true })],
    ['a line of another kind', (): SessionRecord => ({ type: 'file-history' })],
  ])('are none in %s', (_, record) => {
    expect(watchAct(watched, record(), new Teller().view)).toBe(watched)
  })

  it('announce nothing where nothing is watched', () => {
    const watch = emptyCacheWatch()
    expect(watchAct(watch, new Teller().notice('compact_boundary', {}), new Teller().view)).toBe(watch)
  })
})

describe('a new epoch', () => {
  it('is announced for whatever lies in front of the messages, with all its causes', () => {
    const names = ['a', 'b', 'c', 'd', 'e']
    const { sources } = announceEpoch(emptyCacheWatch(), 'sdk', [
      { kind: 'model', from: 'x', to: 'y' },
      { kind: 'tools', names },
      { kind: 'sections', names: ['git'] },
      { kind: 'parameters', names: ['betas', 'speed'] },
    ])
    const act =
      'changed the model from x to y, defined tools a, b, c and 2 more, rewrote section git, changed parameters betas, speed'
    const zones = ['model', 'tools', 'system', 'other']
    expect(sources.get('repl_main_thread')?.announced).toEqual(
      zones.map((zone) => ({ kind: 'rewrite', zone, act })),
    )
  })
})
