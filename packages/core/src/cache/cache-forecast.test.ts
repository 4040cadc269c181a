import { Teller } from 'tidemark/testing'
import { describe, expect, it } from 'vitest'
import { POLICY, PRESENT, PROFILE } from '../../test/prompt/conversation.ts'
import { flatten } from '../context/flatten.ts'
import type { Block } from '../log/block.ts'
import { frontOf, openEpoch } from '../request/prefix.ts'
import { recallLineage } from './cache-forecast.ts'
import { cacheExpiry, type Lineage, NO_LINEAGE } from './cache-model.ts'

const MINUTE = 60_000
const epoch = openEpoch(PRESENT, PROFILE)
const front = frontOf({ uuid: 'e', epoch, parameters: epoch.parameters, isFresh: false })
const BOUNDARY = { compactMetadata: { trigger: 'auto' as const, preTokens: 1 } }

const at = (minutes: number) => ({ timestamp: new Date(minutes * MINUTE).toISOString() })

function answer(teller: Teller, id: string, minutes: number, content: readonly Block[]): void {
  const usage = { input_tokens: 5, output_tokens: 1, cache_creation_input_tokens: 9_000 }
  const message = { id, role: 'assistant' as const, model: 'model-a', content, usage }
  teller.assistant(id, content, { message, ...at(minutes) })
}

function recalled(teller: Teller): Lineage {
  const { markers } = POLICY.cache
  const flat = flatten(teller.view)
  return recallLineage({ front, flat, profile: PROFILE, markers, ttl: '5m', clears: true }, teller.view)
}

const words = [{ type: 'text', text: 'words' }]
const call = (id: string): readonly Block[] => [{ type: 'tool_use', id, name: 'Read', input: {} }]

describe('the cache, recalled from the log', () => {
  it.each<[string, (teller: Teller) => void]>([
    [
      'a response that had begun before a rewrite',
      (teller) => {
        answer(teller, 'm1', 1, words)
        teller.notice('epoch', { epoch: { sections: [], tools: [], model: 'm', parameters: {} } })
        answer(teller, 'm1', 2, words)
      },
    ],
    [
      'a response whose first record a compaction took away',
      (teller) => {
        answer(teller, 'm1', 1, words)
        teller.notice('compact_boundary', BOUNDARY)
        teller.user('summary', { isCompactSummary: true, ...at(2) })
        answer(teller, 'm1', 3, words)
      },
    ],
    [
      'a response that was kept across a boundary',
      (teller) => {
        answer(teller, 'm1', 1, words)
        const preservedMessages = { anchorUuid: 'summary', uuids: [teller.tip ?? ''] }
        teller.notice('compact_boundary', {
          compactMetadata: { ...BOUNDARY.compactMetadata, preservedMessages },
        })
        teller.user('summary', { uuid: 'summary', isCompactSummary: true })
      },
    ],
  ])('%s tells nothing of it', (_, tell) => {
    const teller = new Teller()
    teller.user('go', at(0))
    tell(teller)
    expect(recalled(teller)).toEqual(NO_LINEAGE)
  })

  it('the next response after a boundary does', () => {
    const teller = new Teller()
    teller.user('go', at(0))
    answer(teller, 'm1', 1, words)
    teller.notice('compact_boundary', BOUNDARY)
    teller.user('summary', { isCompactSummary: true, ...at(2) })
    answer(teller, 'm2', 3, words)
    expect(cacheExpiry(recalled(teller))).toBe(7 * MINUTE)
  })

  it('its life is counted from the request, though results lie between the records of the response', () => {
    const teller = new Teller()
    teller.user('go', at(0))
    answer(teller, 'm1', 1, call('a'))
    teller.result('a', 'done', at(3))
    answer(teller, 'm1', 4, call('b'))
    expect(cacheExpiry(recalled(teller))).toBe(5 * MINUTE)
  })
})
