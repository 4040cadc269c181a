import { defineMessagesProfile } from '@tidemark/wire/profiles/provider-profile'
import { describe, expect, it } from 'vitest'
import { BINDING, PLAIN, POLICY, Situation, warm } from '../../test/clear/situation.ts'
import { computeScaledLimits } from '../policy/scale-policy.ts'
import { NO_SWITCHES, type Switches } from '../policy/switches.ts'
import {
  canPayOff,
  estimateBenefitingCalls,
  findInvalidatedThinking,
  priceRewrite,
} from './clear-proposal.ts'

const rates = (read: number) => ({ input: 1, cacheRead: read, writeShort: 1.25, writeLong: 2, output: 5 })

describe('break-even of a rewrite', () => {
  it.each([
    [0.1, 'writeShort', 11.5],
    [0.05, 'writeShort', 24],
    [0.025, 'writeShort', 49],
    [0.1, 'writeLong', 19],
    [0.05, 'writeLong', 39],
    [0.025, 'writeLong', 79],
  ] as const)('reads at %f, %s: %f calls for each token behind one freed', (read, write, factor) => {
    const { breakEvenCalls } = priceRewrite(1_000, 1_000, { rates: rates(read), write })
    expect(breakEvenCalls).toBeCloseTo(factor)
    expect(priceRewrite(2_000, 1_000, { rates: rates(read), write }).breakEvenCalls).toBeCloseTo(factor / 2)
  })

  it('costs what writing costs above reading', () => {
    expect(priceRewrite(1, 1_000_000, { rates: rates(0.1), write: 'writeShort' }).cost).toBeCloseTo(1.15)
  })

  it.each([
    ['nothing behind', 5, 0, 0.1, 0],
    ['nothing freed', 0, 5, 0.1, null],
    ['reads for nothing', 5, 5, 0, null],
    ['writes no dearer than reads', 5, 5, 1.25, 0],
  ] as const)('%s', (_, freed, behind, read, expected) => {
    expect(priceRewrite(freed, behind, { rates: rates(read), write: 'writeShort' }).breakEvenCalls).toBe(
      expected,
    )
  })

  it('takes the usual proportion where prices are not known, and says so', () => {
    expect(priceRewrite(10, 10, { rates: null, write: 'writeShort' })).toEqual({
      breakEvenCalls: 11.5,
      cost: null,
      isAssumed: true,
    })
  })

  it('must have paid before the calls are over', () => {
    const weighed = { breakEvenCalls: 23, cost: 0, isAssumed: false }
    expect([
      canPayOff(weighed, 24),
      canPayOff(weighed, 23),
      canPayOff({ ...weighed, breakEvenCalls: null }, 1e9),
    ]).toEqual([true, false, false])
  })
})

const LEADING = defineMessagesProfile({ thinking: { binding: 'prefix', firstInModes: ['enabled'] } })

function thinking(): Situation {
  const situation = new Situation()
  situation.reads(3, 10, { thinks: true })
  situation.builder.user('and now')
  situation.reads(2, 10, { thinks: true })
  return situation
}

describe('thinking bound to what is cleared', () => {
  it('is that of all responses behind, oldest first', () => {
    const { register } = thinking()
    const behind = (changed: number) =>
      findInvalidatedThinking({ register, profile: BINDING, thinkingMode: null }, changed)
    const all = [...register.thinkingResponses].map(({ id }) => id)
    expect(behind(0)).toEqual({ ok: true, responses: all.slice(1), tokens: 4 })
    expect(behind(3)).toEqual({ ok: true, responses: all.slice(4), tokens: 1 })
    expect(behind(4)).toEqual({ ok: true, responses: [], tokens: 0 })
  })

  it('is none where nothing is bound', () => {
    const { register } = thinking()
    expect(findInvalidatedThinking({ register, profile: PLAIN, thinkingMode: null }, 0)).toMatchObject({
      responses: [],
    })
  })

  it('cannot go where the turn under way must begin with it', () => {
    const { register } = thinking()
    const behind = (mode: 'enabled' | 'adaptive', changed: number) =>
      findInvalidatedThinking({ register, profile: LEADING, thinkingMode: mode }, changed).ok
    expect([behind('enabled', 0), behind('adaptive', 0), behind('enabled', 3)]).toEqual([false, true, true])
  })
})

describe('the calls in which a clearing can pay for itself', () => {
  // 150,000 tokens are in use; after 50,000 are freed, 67,000 are left before the compaction at 167,000.
  const situation = new Situation()
  const count = (growthPerCall: number | null, set: Switches['set'] = []): number => {
    const window = { window: 200_000, maxOutput: 64_000 }
    const scaled = computeScaledLimits(POLICY, window, { ...NO_SWITCHES, set })
    return estimateBenefitingCalls(situation.question({ cache: warm(), growthPerCall, scaled }), 50_000)
  }

  it('end with the cache or with the next compaction, which replaces what was written again', () => {
    expect([count(null), count(0), count(2_000), count(6_700)]).toEqual([27, 27, 27, 10])
  })

  it('end with the cache alone where nothing is compacted automatically', () => {
    expect(count(6_700, ['DISABLE_AUTO_COMPACT'])).toBe(27)
  })
})
