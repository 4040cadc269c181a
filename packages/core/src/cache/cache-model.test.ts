import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RULES } from '../../test/breaks/rules.ts'
import { FIVE_MINUTES, longTalk, requestOf, rounded, TEXT, tailOf } from '../../test/breaks/talk.ts'
import { Conversation, POLICY, PROFILE } from '../../test/prompt/conversation.ts'
import { flattenContext } from '../context/flatten-context.ts'
import type { Block } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { indexBlocks } from '../request/block-index.ts'
import {
  addCallToLapses,
  addRequestChain,
  type CachedPrefix,
  type CacheLapseCounts,
  type CacheTemperature,
  canReachPrefix,
  countReadableTokens,
  EMPTY_CACHE_MODEL,
  estimateCallsBeforeExpiry,
  estimatePrefixSize,
  findLastCachedPrefix,
  findNewestPrefixExpiry,
  measureCacheTemperature,
  NO_CACHE_LAPSES,
  type RequestChain,
} from './cache-model.ts'
import { type SentRequest, toCacheableSentRequest } from './sent-request.ts'

const text: Block = { type: 'text', text: 'x' }
const call: Block = { type: 'tool_use', id: 'c', name: 'n', input: {} }
const result: Block = { type: 'tool_result', tool_use_id: 'c', content: 'x' }

/** One message of these blocks, marked at its end, and nothing before it. */
function marked(blocks: readonly Block[]): SentRequest {
  const messages = {
    frozen: AppendList.of([{ message: { role: 'user' as const, content: blocks }, origins: [] }]),
    tail: [],
  }
  return {
    ...requestOf(longTalk(), 0),
    tools: [],
    system: [],
    messages,
    markers: [{ zone: 'messages', ...tailOf(messages), ...FIVE_MINUTES }],
  }
}

describe('a marker', () => {
  it.each([
    { name: '19 positions back', blocks: Array(20).fill(text), collapsed: true, is: true },
    { name: '20 positions back', blocks: Array(21).fill(text), collapsed: true, is: false },
    {
      name: 'over a run of calls and one of results',
      blocks: [text, ...Array(30).fill(call), ...Array(30).fill(result)],
      collapsed: true,
      is: true,
    },
    {
      name: 'over such runs where each block counts',
      blocks: [text, ...Array(30).fill(call)],
      collapsed: false,
      is: false,
    },
  ])('finds a prefix $name: $is', ({ blocks, collapsed, is }) => {
    const cache = { ...RULES.profile.cache, collapsesToolRuns: collapsed }
    const request = toCacheableSentRequest(marked(blocks), { ...RULES.profile, cache })
    expect(canReachPrefix(request, 1, { ...RULES.profile, cache })).toBe(is)
  })

  it('does not look forward', () => {
    const request = toCacheableSentRequest(marked([text, text]), RULES.profile)
    expect(canReachPrefix(request, 3, RULES.profile)).toBe(false)
  })
})

describe('prefixes', () => {
  const talk = longTalk()
  const request = toCacheableSentRequest(requestOf(rounded(talk, 2, TEXT), 100_000), RULES.profile)
  const front = request.front.length
  const prefix = (inMessages: number, usedAt: number): CachedPrefix => ({
    blocks: front + inMessages,
    level: 'messages',
    tokens: 0,
    isDoubtful: false,
    ttl: '5m',
    seconds: 300,
    usedAt,
  })
  const chain = (prefixes: readonly CachedPrefix[]): RequestChain => ({
    ...toCacheableSentRequest(requestOf(talk, 0), RULES.profile),
    prefixes,
    sizes: AppendList.of(prefixes.map(({ blocks }) => ({ blocks, tokens: (blocks - front) * 100 }))),
  })

  it('have the same estimated size whether or not the index counts bytes', () => {
    const { messages, collapsesRuns } = request.blockIndex
    const counted = { ...request, blockIndex: indexBlocks(messages, collapsesRuns) }
    const sizes = AppendList.of([{ blocks: front + 4, tokens: 900 }])
    const estimate = (of: typeof request) => estimatePrefixSize(of, sizes, front + 9)
    expect(estimate(request).tokens).toBeGreaterThan(900)
    expect(estimate(request)).toEqual(estimate(counted))
  })

  it('are read if they live, end within the limit, and are within reach', () => {
    const tokens = (...prefixes: readonly CachedPrefix[]) =>
      countReadableTokens(chain(prefixes), request, RULES.profile, { within: 38, at: 100_000 })
    expect([
      tokens(prefix(28, 0), prefix(36, 0), prefix(40, 0)),
      tokens(prefix(28, 0), prefix(36, -200_001)),
      tokens(prefix(28, 0), prefix(36, -200_000)),
      tokens(prefix(2, 0)),
    ]).toEqual([3_600, 2_800, 2_800, 0])
  })

  it('of unknown size are not counted on', () => {
    const unknown = { ...chain([prefix(36, 0)]), sizes: AppendList.of<never>() }
    expect(countReadableTokens(unknown, request, RULES.profile, { within: 38 })).toBe(0)
  })

  it('that live longest are kept, and never more than so many', () => {
    const many = Array.from({ length: 300 }, (_, index) => prefix(index, index))
    const [kept] = addRequestChain(EMPTY_CACHE_MODEL, chain(many), false).chains
    expect([kept?.prefixes.length, kept?.prefixes[0]?.usedAt]).toEqual([256, 44])
  })

  it('of a very long session are measured by the sizes of those that are still cached', () => {
    const sizes = Array.from({ length: 600 }, (_, index) => ({
      blocks: front + (index % 300),
      tokens: index,
    }))
    const long = { ...chain([prefix(7, 0), prefix(299, 0)]), sizes: AppendList.of(sizes) }
    const [kept] = addRequestChain(EMPTY_CACHE_MODEL, long, true).chains
    expect(kept?.sizes.toArray()).toEqual([
      { blocks: front + 7, tokens: 307 },
      { blocks: front + 299, tokens: 599 },
    ])
  })

  it('end with the one that the newest request left', () => {
    const last = chain([]).markedPrefixes.at(-1)?.blocks ?? 0
    const full = chain([prefix(2, 0), prefix(last - front, 7)])
    expect(findLastCachedPrefix(full)).toEqual({ ...prefix(last - front, 7), tokens: (last - front) * 100 })
    expect(findLastCachedPrefix(chain([prefix(2, 0)]))).toBeNull()
    expect(findNewestPrefixExpiry(addRequestChain(EMPTY_CACHE_MODEL, full, false))).toBe(300_007)
  })
})

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
    expect(temperatureOf(fresh).countTokensToRewrite({ toolUseId: 'x', part: 'result' })).toBe(CONTEXT)
    const { conversation } = talked(2)
    expect(temperatureOf(conversation).countTokensToRewrite({ toolUseId: 'x', part: 'result' })).toBe(CONTEXT)
  })

  it('tells beforehand what is foreseen of the first request after a clearing, and never more', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 30 }), fc.nat({ max: 29 }), (turns, at) => {
        const { conversation, ids } = talked(turns)
        const first = ids[at % ids.length] ?? ''
        const { countTokensToRewrite: tokensBehind } = temperatureOf(conversation)
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
      { numRuns: countPropertyRuns(30), examples: [[29, 23]] },
    )
  })
})

const TTL = 300_000

function after(gaps: readonly (number | null)[]): CacheLapseCounts {
  return gaps.reduce<CacheLapseCounts>((runs, gap) => addCallToLapses(runs, gap, TTL), NO_CACHE_LAPSES)
}

describe('calls before the cache goes cold', () => {
  it.each([
    ['nothing seen: the policy’s word', [], 27],
    ['three calls and no lapse', [null, 1_000, 299_999], 30],
    ['a lapse at the very end of its life', [null, 300_000], 14.5],
    ['a person who comes back once an hour', [null, 3_600_000, 3_600_000, 3_600_000], 7.75],
  ])('%s', (_, gaps, expected) => {
    expect(estimateCallsBeforeExpiry(after(gaps), 27)).toBe(expected)
  })
})
