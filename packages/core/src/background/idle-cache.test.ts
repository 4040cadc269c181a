import { SessionBuilder } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countPayingRenewals, listPauses, pricePause, type RenewalInput } from './idle-cache.ts'

const MINUTE = 60_000
const FIVE = 5 * MINUTE
const RATES = { input: 3, cacheRead: 0.3, write5m: 3.75, write1h: 6, output: 15 }

function count(changes: Partial<RenewalInput> & { readonly pauses?: readonly number[] } = {}): number {
  const { pauses = [], ...rest } = changes
  return countPayingRenewals({
    mode: 'keep-alive',
    rates: RATES,
    write: 'write5m',
    ttlMs: FIVE,
    maximum: 100,
    readPauses: () => pauses,
    ...rest,
  })
}

describe('how often an idle cache is renewed', () => {
  it.each<[string, number, Parameters<typeof count>[0]]>([
    ['off', 0, { mode: 'off' }],
    ['a read for a tenth of the input price, a write for 1.25', 11, {}],
    ['a write for an hour', 19, { write: 'write1h', ttlMs: 12 * FIVE }],
    ['at most by policy', 4, { maximum: 4 }],
    ['reads as dear as writes', 0, { rates: { ...RATES, cacheRead: 3.75 } }],
    ['prices that are not known', 0, { rates: null }],
    ['a read price that is not known', 0, { rates: { ...RATES, cacheRead: null } }],
    ['auto, without pauses', 0, { mode: 'auto' }],
    ['auto, too few pauses', 0, { mode: 'auto', pauses: [8, 8, 3, 3].map((each) => each * MINUTE) }],
    ['auto, pauses of eight minutes', 1, { mode: 'auto', pauses: [8, 8, 8].map((each) => each * MINUTE) }],
    ['auto, pauses of half an hour', 6, { mode: 'auto', pauses: [30, 30, 8].map((each) => each * MINUTE) }],
    ['auto, nights', 0, { mode: 'auto', pauses: [600, 700, 800].map((each) => each * MINUTE) }],
  ])('%s: %i', (_, expected, input) => {
    expect(count(input)).toBe(expected)
  })

  it('never costs more than twice what the better of both would have cost', () => {
    const pause = fc.integer({ min: FIVE, max: 600 * MINUTE })
    fc.assert(
      fc.property(pause, (ms) => {
        const prices = { read: 0.3, write: 3.75 }
        const letGo = pricePause(ms, 0, FIVE, prices)
        const always = pricePause(ms, Number.POSITIVE_INFINITY, FIVE, prices)
        expect(pricePause(ms, count(), FIVE, prices)).toBeLessThanOrEqual(2 * Math.min(letGo, always) + 0.3)
      }),
    )
  })
})

it('pauses are counted from response to response, whatever lies between', () => {
  const builder = new SessionBuilder('pauses')
  builder.user('one')
  builder.answer('first')
  builder.user('two')
  builder.answer('second')
  expect(listPauses(builder.session)).toHaveLength(1)
})
