import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy } from '../policy/create-policy.ts'
import { strictProfile } from '../policy/provider-profile.ts'
import type { SwitchName } from '../policy/switches.ts'
import {
  addCallGap,
  type ChooseTtlInput,
  chooseRequestTtl,
  chooseTtl,
  computeLongTtlSavings,
  EMPTY_GAP_TALLY,
  type GapTally,
  type TimedCall,
} from './cache-ttl.ts'

const { cache } = strictProfile
const RATES = { input: 3, cacheRead: 0.3, write5m: 3.75, write1h: 6, output: 15 }
const MINUTE = 60_000
const policyOf = (ttl: '5m' | '1h' | 'auto') => createPolicy({ cache: { ttl } }).cache

function choose(given: Partial<ChooseTtlInput> = {}, ...set: readonly SwitchName[]) {
  return chooseTtl({
    policy: policyOf('auto'),
    cache,
    switches: { set, autoCompactPercent: null },
    source: 'repl_main_thread',
    readGaps: () => EMPTY_GAP_TALLY,
    rates: RATES,
    isInteractive: false,
    ...given,
  })
}

const ENTITLED = { isEntitled: true, isOverage: false }
/** Every third call comes after six minutes, or every call in turn. */
const paused: GapTally = { calls: 30, added: 30_000, lapsed: 10 * 100_000, lost: 0 }
const steady: GapTally = { calls: 30, added: 30_000, lapsed: 0, lost: 0 }

describe('the lifetime of an epoch', () => {
  it.each<[string, Partial<ChooseTtlInput>, readonly SwitchName[], string, string]>([
    ['nothing known, nobody there', {}, [], '5m', 'unattended'],
    ['nothing known, a person answers', { isInteractive: true }, [], '1h', 'interactive'],
    ['gaps that an hour outlasts', { readGaps: () => paused }, [], '1h', 'gaps'],
    ['no gaps', { readGaps: () => steady, isInteractive: true }, [], '5m', 'gaps'],
    ['too few calls to tell', { readGaps: () => ({ ...paused, calls: 19 }) }, [], '5m', 'unattended'],
    ['no prices', { readGaps: () => paused, rates: null }, [], '5m', 'unattended'],
    [
      'a price is missing',
      { readGaps: () => paused, rates: { ...RATES, write1h: null } },
      [],
      '5m',
      'unattended',
    ],
    ['the policy says an hour', { policy: policyOf('1h') }, [], '1h', 'cache.ttl'],
    [
      'the policy says five minutes',
      { policy: policyOf('5m'), readGaps: () => paused },
      [],
      '5m',
      'cache.ttl',
    ],
    ['opted in', {}, ['ENABLE_PROMPT_CACHING_1H'], '1h', 'ENABLE_PROMPT_CACHING_1H'],
    [
      'opted in, against the policy',
      { policy: policyOf('5m') },
      ['ENABLE_PROMPT_CACHING_1H'],
      '1h',
      'ENABLE_PROMPT_CACHING_1H',
    ],
    ['opted in for another platform', {}, ['ENABLE_PROMPT_CACHING_1H_BEDROCK'], '5m', 'unattended'],
    [
      'opted in for this platform',
      { isBedrock: true },
      ['ENABLE_PROMPT_CACHING_1H_BEDROCK'],
      '1h',
      'ENABLE_PROMPT_CACHING_1H_BEDROCK',
    ],
    [
      'forced, whatever else says',
      { policy: policyOf('1h'), entitlement: ENTITLED },
      ['ENABLE_PROMPT_CACHING_1H', 'FORCE_PROMPT_CACHING_5M'],
      '5m',
      'FORCE_PROMPT_CACHING_5M',
    ],
    ['entitled', { entitlement: ENTITLED }, [], '1h', 'entitled'],
    ['entitled, an agent', { entitlement: ENTITLED, source: 'agent:review' }, [], '1h', 'entitled'],
    ['entitled, another source', { entitlement: ENTITLED, source: 'agents' }, [], '5m', 'unattended'],
    ['in overage', { entitlement: { isEntitled: true, isOverage: true } }, [], '5m', 'unattended'],
  ])('%s', (_, given, set, name, because) => {
    expect(choose(given, ...set)).toEqual({ name, because })
  })

  it('does not look at the gaps where something stronger answers', () => {
    const gaps = (): GapTally => {
      throw new Error('looked')
    }
    expect(choose({ policy: policyOf('1h'), readGaps: gaps }).because).toBe('cache.ttl')
    expect(choose({ latched: { name: '5m', because: 'entitled' }, readGaps: gaps }).because).toBe('entitled')
    expect(choose({ rates: null, readGaps: gaps }).because).toBe('unattended')
  })

  it('an answer of switch, policy or account holds for the session, one of gaps for the epoch', () => {
    const entitled = { name: '1h', because: 'entitled' }
    const lost = { isEntitled: false, isOverage: false }
    expect(choose({ latched: entitled, entitlement: lost }, 'FORCE_PROMPT_CACHING_5M')).toEqual(entitled)
    expect(choose({ latched: { name: '5m', because: 'gaps' }, readGaps: () => paused })).toEqual({
      name: '1h',
      because: 'gaps',
    })
  })

  it('is the longest or the default one a provider has, whatever they are called', () => {
    const ttls = [
      { name: '12h', seconds: 43_200 },
      { name: '30m', seconds: 1_800 },
    ]
    const other = { ...cache, ttls, defaultTtl: '30m' }
    expect([choose({ cache: other, isInteractive: true }).name, choose({ cache: other }).name]).toEqual([
      '12h',
      '30m',
    ])
    const one = { ...cache, ttls: [{ name: '5m', seconds: 300 }] }
    expect(choose({ cache: one, policy: policyOf('1h') }).name).toBe('5m')
  })

  it.each([
    ['repl_main_thread:print', '1h'],
    ['compact', '1h'],
    ['session_memory', '5m'],
    ['speculation', '5m'],
    ['prompt_suggestion', '5m'],
  ])('a request of %s asks for %s in an epoch of an hour', (source, expected) => {
    const rules = { policy: policyOf('auto'), cache }
    expect(chooseRequestTtl({ name: '1h', because: 'entitled' }, source, rules)).toBe(expected)
    expect(chooseRequestTtl(undefined, source, rules)).toBe('5m')
  })
})

describe('what an hour saves', () => {
  /** What the calls cost with markers of one lifetime, worked out call by call. */
  function costOf(calls: readonly TimedCall[], seconds: number, write: number): number {
    return calls.reduce((sum, { gapMs, prefix, added }) => {
      const isThere = (gapMs ?? 0) < seconds * 1000
      return sum + added * write + prefix * (isThere ? RATES.cacheRead : write)
    }, 0)
  }

  it('is the difference between the two bills', () => {
    const call = fc.record({
      gapMs: fc.constantFrom(null, 0, 299_999, 300_000, 20 * MINUTE, 3_599_999, 3_600_000, 90 * MINUTE),
      prefix: fc.nat(200_000),
      added: fc.nat(20_000),
    })
    fc.assert(
      fc.property(fc.array(call, { maxLength: 40 }), (calls) => {
        const tally = calls.reduce((sum, each) => addCallGap(sum, each, cache), EMPTY_GAP_TALLY)
        const saved = costOf(calls, 300, RATES.write5m) - costOf(calls, 3_600, RATES.write1h)
        expect(computeLongTtlSavings(tally, RATES)).toBeCloseTo(saved, 3)
        expect(tally.calls).toBe(calls.length)
      }),
    )
  })
})
