import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Conversation, POLICY, PROFILE } from '../../test/prompt/conversation.ts'
import { flattenContext } from '../context/flatten.ts'
import {
  type CacheLapseCounts,
  type CacheTemperature,
  countCallGap,
  estimateRemainingCalls,
  measureCacheTemperature,
  NO_CACHE_LAPSES,
} from './cache-temperature.ts'

const CONTEXT = 1_000_000

function temperatureOf(conversation: Conversation, ttl: string | null = '5m'): CacheTemperature {
  const { lineage, previous, builder, now } = conversation
  return measureCacheTemperature({
    cacheModel: lineage,
    sent: previous ?? null,
    flat: flattenContext(builder.view),
    profile: PROFILE,
    policy: POLICY.clear,
    ttl,
    now,
    contextTokens: CONTEXT,
  })
}

/** So many turns, each with a read; the ids of the reads. */
function talked(turns: number): { readonly conversation: Conversation; readonly ids: readonly string[] } {
  const conversation = new Conversation()
  const { builder } = conversation
  builder.user('begin')
  const ids = Array.from({ length: turns }, () => {
    conversation.ask()
    const id = builder.id('call')
    conversation.answer([
      { type: 'text', text: 'let me look' },
      { type: 'tool_use', id, name: 'Read', input: { file_path: `/${id}` } },
    ])
    builder.result(id, `text of ${id} `.repeat(30))
    conversation.now += 30_000
    return id
  })
  conversation.ask()
  conversation.answer([{ type: 'text', text: 'done' }])
  builder.user('go on')
  return { conversation, ids }
}

/** What the last request left in the cache, as its usage told. */
function tokensLeft({ lineage }: Conversation): number {
  const [chain] = lineage.chains
  const blocks = chain?.prefixes.at(-1)?.blocks
  return chain?.sizes.toArray().findLast((size) => size.blocks === blocks)?.tokens ?? Number.NaN
}

describe('the temperature of the cache', () => {
  it('is warm until what was kept lapses', () => {
    const { conversation } = talked(3)
    const { expiresAt } = temperatureOf(conversation)
    expect(expiresAt).not.toBeNull()
    expect(temperatureOf(conversation)).toMatchObject({ isWarm: true, ttlMs: 300_000, expectedCalls: 27 })
    conversation.now = expiresAt ?? 0
    expect(temperatureOf(conversation).isWarm).toBe(false)
    expect(temperatureOf(conversation, null)).toMatchObject({ isWarm: false, expiresAt: null })
    expect(temperatureOf(conversation, '1h')).toMatchObject({ ttlMs: 3_600_000, expectedCalls: 200 })
  })

  it('all is written again where nothing was sent, or the change was never seen', () => {
    const fresh = new Conversation()
    expect(temperatureOf(fresh).tokensBehind({ toolUseId: 'x', part: 'result' })).toBe(CONTEXT)
    const { conversation } = talked(2)
    expect(temperatureOf(conversation).tokensBehind({ toolUseId: 'x', part: 'result' })).toBe(CONTEXT)
  })

  it('tells beforehand what is foreseen of the first request after a clearing, and never more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 30 }), fc.nat({ max: 29 }), (turns, at) => {
        const { conversation, ids } = talked(turns)
        const first = ids[at % ids.length] ?? ''
        const { tokensBehind } = temperatureOf(conversation)
        // All that the last request left in the cache, and nothing of what has come since.
        const left = tokensLeft(conversation)
        const foreseen = left - tokensBehind({ toolUseId: first, part: 'result' })
        conversation.builder.notice('microcompact_boundary', {
          microcompactMetadata: {
            trigger: 'auto',
            preTokens: 2,
            tokensSaved: 1,
            compactedToolIds: ids.slice(at % ids.length),
            clearedAttachmentUUIDs: [],
          },
        })
        const { forecast } = conversation.ask()
        expect(foreseen).toBeLessThanOrEqual(forecast.read)
        // From the first result on: the edge stands right before it.
        if (at % ids.length === 0) expect(foreseen).toBe(forecast.read)
      }),
      { numRuns: 30, examples: [[29, 23]] },
    )
  })
})

const TTL = 300_000

function after(gaps: readonly (number | null)[]): CacheLapseCounts {
  return gaps.reduce<CacheLapseCounts>((runs, gap) => countCallGap(runs, gap, TTL), NO_CACHE_LAPSES)
}

describe('calls before the cache goes cold', () => {
  it.each([
    ['nothing seen: the policy’s word', [], 27],
    ['three calls and no lapse', [null, 1_000, 299_999], 30],
    ['a lapse at the very end of its life', [null, 300_000], 14.5],
    ['a person who comes back once an hour', [null, 3_600_000, 3_600_000, 3_600_000], 7.75],
  ])('%s', (_, gaps, expected) => {
    expect(estimateRemainingCalls(after(gaps), 27)).toBe(expected)
  })
})
