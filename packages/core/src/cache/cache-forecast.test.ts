import { SessionBuilder } from '@tidemark/core/testing'
import { describe, expect, it } from 'vitest'
import { POLICY, PRESENT, PROFILE } from '../../test/prompt/conversation.ts'
import { flattenContext } from '../context/flatten-context.ts'
import type { Block } from '../log/block.ts'
import { buildRequestPrefix, createPrefixSnapshot } from '../request/prefix-snapshot.ts'
import { restoreCacheModel } from './cache-forecast.ts'
import { type CacheModel, EMPTY_CACHE_MODEL, findNewestPrefixExpiry } from './cache-model.ts'

const MINUTE = 60_000
const epoch = createPrefixSnapshot(PRESENT, PROFILE)
const front = buildRequestPrefix({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })
const BOUNDARY = { compactMetadata: { trigger: 'auto' as const, preTokens: 1 } }

const at = (minutes: number) => ({ timestamp: new Date(minutes * MINUTE).toISOString() })

function answer(builder: SessionBuilder, id: string, minutes: number, content: readonly Block[]): void {
  const usage = { input: 5, output: 1, short: 9_000 }
  const message = { id, role: 'assistant' as const, model: 'model-a', content, usage }
  builder.assistant(id, content, { message, ...at(minutes) })
}

function recalled(builder: SessionBuilder): CacheModel {
  const { markers } = POLICY.cache
  const flat = flattenContext(builder.view)
  return restoreCacheModel({ front, flat, profile: PROFILE, markers, ttl: '5m', clears: true }, builder.view)
}

const words = [{ type: 'text', text: 'words' }]
const call = (id: string): readonly Block[] => [{ type: 'tool_use', id, name: 'Read', input: {} }]

describe('the cache, recalled from the log', () => {
  it.each<[string, (builder: SessionBuilder) => void]>([
    [
      'a response that had begun before a rewrite',
      (builder) => {
        answer(builder, 'm1', 1, words)
        builder.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
        answer(builder, 'm1', 2, words)
      },
    ],
    [
      'a response whose first record a compaction took away',
      (builder) => {
        answer(builder, 'm1', 1, words)
        builder.notice('compact_boundary', BOUNDARY)
        builder.user('summary', { isCompactSummary: true, ...at(2) })
        answer(builder, 'm1', 3, words)
      },
    ],
    [
      'a response that was kept across a boundary',
      (builder) => {
        answer(builder, 'm1', 1, words)
        const preservedMessages = { anchorUuid: 'summary', uuids: [builder.tip ?? ''] }
        builder.notice('compact_boundary', {
          compactMetadata: { ...BOUNDARY.compactMetadata, preservedMessages },
        })
        builder.user('summary', { uuid: 'summary', isCompactSummary: true })
      },
    ],
  ])('%s tells nothing of it', (_, tell) => {
    const builder = new SessionBuilder()
    builder.user('go', at(0))
    tell(builder)
    expect(recalled(builder)).toEqual(EMPTY_CACHE_MODEL)
  })

  it('the next response after a boundary does', () => {
    const builder = new SessionBuilder()
    builder.user('go', at(0))
    answer(builder, 'm1', 1, words)
    builder.notice('compact_boundary', BOUNDARY)
    builder.user('summary', { isCompactSummary: true, ...at(2) })
    answer(builder, 'm2', 3, words)
    expect(findNewestPrefixExpiry(recalled(builder))).toBe(7 * MINUTE)
  })

  it('its life is counted from the request, though results lie between the records of the response', () => {
    const builder = new SessionBuilder()
    builder.user('go', at(0))
    answer(builder, 'm1', 1, call('a'))
    builder.result('a', 'done', at(3))
    answer(builder, 'm1', 4, call('b'))
    expect(findNewestPrefixExpiry(recalled(builder))).toBe(5 * MINUTE)
  })
})
