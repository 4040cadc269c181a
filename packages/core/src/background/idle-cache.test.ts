import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { CacheModel } from '../cache/cache-model.ts'
import {
  countPayingRenewals,
  findRenewalTime,
  isSummaryCheaperThanPause,
  listPauses,
  pricePausePerMillion,
  type RenewalInput,
} from './idle-cache.ts'

const MINUTE = 60_000
const FIVE = 5 * MINUTE
const RATES = { input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }

type Changes = Partial<RenewalInput> & { readonly pauses?: readonly number[] }

function describeRenewals({ pauses = [], ...rest }: Changes = {}): RenewalInput {
  return {
    mode: 'keep-alive',
    rates: RATES,
    write: 'writeShort',
    ttlMs: FIVE,
    maximum: 100,
    readPauses: () => pauses,
    ...rest,
  }
}

function count(changes: Changes = {}): number {
  return countPayingRenewals(describeRenewals(changes))
}

const toMinutes = (...minutes: readonly number[]): readonly number[] => minutes.map((each) => each * MINUTE)

describe('how often an idle cache is renewed', () => {
  it.each<[string, number, Parameters<typeof count>[0]]>([
    ['off', 0, { mode: 'off' }],
    ['a read for a tenth of the input price, a write for 1.25', 11, {}],
    ['a write for an hour', 19, { write: 'writeLong', ttlMs: 12 * FIVE }],
    ['at most by policy', 4, { maximum: 4 }],
    ['reads as dear as writes', 0, { rates: { ...RATES, cacheRead: 3.75 } }],
    ['prices that are not known', 0, { rates: null }],
    ['a read price that is not known', 0, { rates: { ...RATES, cacheRead: null } }],
    ['auto, without pauses', 0, { mode: 'auto' }],
    ['auto, too few pauses', 0, { mode: 'auto', pauses: toMinutes(8, 8, 3, 3) }],
    ['auto, pauses of eight minutes', 1, { mode: 'auto', pauses: toMinutes(8, 8, 8) }],
    ['auto, pauses of half an hour', 6, { mode: 'auto', pauses: toMinutes(30, 30, 8) }],
    ['auto, nights', 0, { mode: 'auto', pauses: toMinutes(600, 700, 800) }],
  ])('%s: %i', (_, expected, input) => {
    expect(count(input)).toBe(expected)
  })

  it('never costs more than twice what the better of both would have cost', () => {
    const pause = fc.integer({ min: FIVE, max: 600 * MINUTE })
    fc.assert(
      fc.property(pause, (ms) => {
        const prices = { read: 0.3, write: 3.75 }
        const letGo = pricePausePerMillion(ms, 0, FIVE, prices)
        const always = pricePausePerMillion(ms, Number.POSITIVE_INFINITY, FIVE, prices)
        expect(pricePausePerMillion(ms, count(), FIVE, prices)).toBeLessThanOrEqual(
          2 * Math.min(letGo, always) + 0.3,
        )
      }),
    )
  })
})

describe('a summary that is due is written instead of a renewal', () => {
  // Of 100,000 tokens a read costs $0.03, and writing them again $0.345 more than that.
  it.each<[string, boolean, number | null, Changes]>([
    ['keep-alive, cheaper than writing the cache again', true, 0.34, {}],
    ['keep-alive, dearer', false, 0.35, {}],
    ['keep-alive, a price that is not known', false, null, {}],
    ['keep-alive, no renewal by policy', false, 0.1, { maximum: 0 }],
    ['off', false, 0.01, { mode: 'off' }],
    ['auto, too few pauses', false, 0.01, { mode: 'auto', pauses: toMinutes(30, 30) }],
    ['auto, one renewal is cheaper', false, 0.1, { mode: 'auto', pauses: toMinutes(8, 8, 8) }],
    ['auto, cheaper than six renewals', true, 0.1, { mode: 'auto', pauses: toMinutes(30, 30, 30) }],
    ['auto, dearer than six renewals', false, 0.2, { mode: 'auto', pauses: toMinutes(30, 30, 30) }],
    [
      'auto, nights, which no renewal outlasts',
      false,
      0.1,
      { mode: 'auto', pauses: toMinutes(600, 700, 800) },
    ],
  ])('%s: %s', (_, expected, price, changes) => {
    expect(isSummaryCheaperThanPause(describeRenewals(changes), { price, tokens: 100_000 })).toBe(expected)
  })
})

it.each([
  [300, 270],
  [3_600, 3_570],
  [100, 90],
])('a cache that lives %i seconds after its last use is renewed after %i', (seconds, expected) => {
  const last = { blocks: 1, level: 'messages', tokens: 1, isDoubtful: false, ttl: 'any', seconds, usedAt: 0 }
  const cacheModel = { chains: [{ prefixes: [last] }] } as unknown as CacheModel
  expect(findRenewalTime({ cacheModel })).toBe(expected * 1000)
  expect(findRenewalTime({ cacheModel: null })).toBeNull()
})

it('pauses are counted from response to response, whatever lies between', () => {
  const builder = new SessionBuilder('pauses')
  builder.user('one')
  builder.answer('first')
  builder.user('two')
  builder.answer('second')
  expect(listPauses(builder.session)).toHaveLength(1)
})
