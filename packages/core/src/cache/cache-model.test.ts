import { describe, expect, it } from 'vitest'
import { RULES } from '../../test/breaks/rules.ts'
import { FIVE_MINUTES, longTalk, requestOf, rounded, TEXT, tailOf } from '../../test/breaks/talk.ts'
import type { Block } from '../log/block.ts'
import { AppendList } from '../log/persistent-collections.ts'
import { indexBlocks } from '../request/block-index.ts'
import {
  addRequestChain,
  type CachedPrefix,
  cacheExpiry,
  canReachPrefix,
  countReadableTokens,
  EMPTY_CACHE_MODEL,
  estimatePrefixSize,
  findLastCachedPrefix,
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
    const request = toCacheableSentRequest(marked(blocks), cache)
    expect(canReachPrefix(request, 1, { ...RULES.profile, cache })).toBe(is)
  })

  it('does not look forward', () => {
    const request = toCacheableSentRequest(marked([text, text]), RULES.profile.cache)
    expect(canReachPrefix(request, 3, RULES.profile)).toBe(false)
  })
})

describe('prefixes', () => {
  const talk = longTalk()
  const request = toCacheableSentRequest(requestOf(rounded(talk, 2, TEXT), 100_000), RULES.profile.cache)
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
    ...toCacheableSentRequest(requestOf(talk, 0), RULES.profile.cache),
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
    expect(cacheExpiry(addRequestChain(EMPTY_CACHE_MODEL, full, false))).toBe(300_007)
  })
})
