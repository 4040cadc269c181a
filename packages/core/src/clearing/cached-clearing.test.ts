import { strictProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { Situation, warm } from '../../test/clear/situation.ts'
import {
  countCacheDeletedTokens,
  createCacheDeletionMessage,
  proposeCacheDeletion,
} from './cached-clearing.ts'
import { proposeBudgetClearing } from './propose-clearing.ts'

describe('cached', () => {
  it('fires at 12 results, deletes the oldest and keeps the 5 newest', () => {
    const situation = new Situation()
    const all = [...situation.reads(11, 1_000)]
    situation.say()
    expect(proposeCacheDeletion(situation.question({ cache: warm() }))).toEqual({
      proposal: null,
      why: '11 results stand in the cached prefix; deletion begins at 12',
    })
    all.push(...situation.reads(1, 1_000))
    situation.say()
    const anchor = situation.register.lastUserUuid
    const { proposal } = proposeCacheDeletion(situation.question({ cache: warm() }))
    expect(proposal).toMatchObject({
      way: 'cached',
      freedTokens: 7_000,
      rewrittenTokens: 0,
      cost: 0,
      breakEvenCalls: 0,
      metadata: { way: 'cached', anchorUuid: anchor, compactedToolIds: all.slice(0, 7), tokensSaved: 7_000 },
    })
    expect(proposal?.released.filePaths).toHaveLength(7)
  })

  it('fires again only once as many can go: neither tiny results nor pinned ones make it fire with every call', () => {
    const situation = new Situation()
    const ids = situation.reads(12, 5)
    situation.say()
    const { proposal } = proposeCacheDeletion(situation.question({ cache: warm() }))
    expect(proposal?.metadata.compactedToolIds).toEqual(ids.slice(0, 7))
    situation.clear(proposal?.metadata ?? never())
    situation.reads(6, 5)
    situation.say()
    expect(proposeCacheDeletion(situation.question({ cache: warm() })).proposal).toBeNull()
    const pins = situation.register.results.toArray().map(({ uuid }) => uuid)
    situation.reads(11, 1_000)
    situation.say()
    expect(proposeCacheDeletion(situation.question({ cache: warm(), pins }))).toEqual({
      proposal: null,
      why: '22 results stand in the cached prefix, but only 6 of them are neither pinned nor new',
    })
    situation.reads(1, 1_000)
    situation.say()
    const again = proposeCacheDeletion(situation.question({ cache: warm(), pins })).proposal
    expect(again?.metadata.compactedToolIds).toHaveLength(7)
  })

  it('pins what it deleted, and the set only grows', () => {
    const situation = new Situation()
    situation.reads(12, 1_000)
    situation.say()
    const before = JSON.stringify(situation.builder.view.entries.toArray())
    const first = proposeCacheDeletion(situation.question({ cache: warm() })).proposal
    if (first === null) throw new Error('nothing to delete')
    situation.clear(first.metadata)
    // The messages stay as they are.
    const shown = situation.builder.view.entries.toArray().slice(0, -1)
    expect(JSON.stringify(shown)).toBe(before)
    expect(situation.register.clearable).toEqual({ count: 5, tokens: 5_000 })
    expect(deleted(situation.register)).toEqual([7_000, 7_000])
    // The next response is counted without them.
    situation.say()
    expect(deleted(situation.register)).toEqual([0, 7_000])
    const one = situation.register.deletions
    expect(one.map(({ ids }) => ids)).toEqual([first.metadata.compactedToolIds])
    expect(
      createCacheDeletionMessage({ ...first.metadata, compactedToolIds: ['a', 'b'] }, strictProfile),
    ).toEqual({
      role: 'user',
      content: [
        {
          type: 'cache_edits',
          edits: [
            { type: 'delete', cache_reference: 'a' },
            { type: 'delete', cache_reference: 'b' },
          ],
        },
      ],
    })
    situation.reads(7, 1_000)
    situation.say()
    const second = proposeCacheDeletion(situation.question({ cache: warm() })).proposal
    if (second === null) throw new Error('nothing to delete')
    expect(
      second.metadata.compactedToolIds.filter((id) => first.metadata.compactedToolIds.includes(id)),
    ).toEqual([])
    situation.clear(second.metadata)
    expect(situation.register.deletions.slice(0, 1)).toEqual(one)
    expect(situation.register.deletions).toHaveLength(2)
  })

  it('is dropped when the cache has lapsed, and what was deleted counts again', () => {
    const situation = new Situation()
    const all = situation.reads(12, 10_000)
    situation.say()
    const { proposal } = proposeCacheDeletion(situation.question({ cache: warm() }))
    situation.clear(proposal?.metadata ?? never())
    expect(proposeBudgetClearing(situation.question()).proposal).toBeNull()
    expect(situation.register.deletions).not.toEqual([])
    situation.builder.notice('cache_edits_dropped')
    const { register } = situation
    expect([register.deletions, register.clearable, ...deleted(register)]).toEqual([
      [],
      { count: 12, tokens: 120_000 },
      0,
      0,
    ])
    expect(proposeBudgetClearing(situation.question()).proposal?.metadata.compactedToolIds).toEqual(
      all.slice(0, 8),
    )
  })

  it('is gone with a compaction', () => {
    const situation = new Situation()
    const { builder } = situation
    situation.reads(12, 1_000)
    situation.say()
    situation.clear(proposeCacheDeletion(situation.question({ cache: warm() })).proposal?.metadata ?? never())
    builder.batch(() => {
      const boundary = builder.notice('compact_boundary', {
        parentUuid: null,
        logicalParentUuid: builder.tip,
        compactMetadata: { trigger: 'auto', preTokens: 1 },
      })
      builder.user('Summary', { parentUuid: boundary.uuid, isCompactSummary: true })
    })
    expect(situation.register.deletions).toEqual([])
  })
})

/** Since the newest response, and of all deletions that stand. */
function deleted(register: Situation['register']): readonly number[] {
  return [true, false].map((sinceResponse) => countCacheDeletedTokens(register, { sinceResponse }))
}

function never(): never {
  throw new Error('nothing was proposed')
}
