import { strictProfile } from '@tidemark/wire/profiles/provider-profile'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createPolicy } from '../policy/create-policy.ts'
import type { SwitchName } from '../policy/switches.ts'
import {
  addCallGap,
  type ChooseTtlInput,
  chooseRequestTtl,
  chooseSnapshotTtl,
  computeLongTtlSavings,
  EMPTY_GAP_TALLY,
  type GapTally,
  type TimedCall,
} from './cache-ttl.ts'

const { cache } = strictProfile
const RATES = { input: 3, cacheRead: 0.3, writeShort: 3.75, writeLong: 6, output: 15 }
const MINUTE = 60_000
const policyOf = (ttl: '5m' | '1h' | 'auto', tailTtl: 'auto' | 'same' = 'same') =>
  createPolicy({ cache: { ttl, tailTtl } }).cache

function choose(given: Partial<ChooseTtlInput> = {}, ...set: readonly SwitchName[]) {
  return chooseSnapshotTtl({
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
const NO_TAIL = { added: 0, lapsed: 0, lost: 0 }
const paused: GapTally = { calls: 30, added: 30_000, lapsed: 10 * 100_000, lost: 0, tail: NO_TAIL }
const steady: GapTally = { calls: 30, added: 30_000, lapsed: 0, lost: 0, tail: NO_TAIL }

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
      { readGaps: () => paused, rates: { ...RATES, writeLong: null } },
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
    expect(chooseRequestTtl({ name: '1h', because: 'entitled' }, source, rules).name).toBe(expected)
    expect(chooseRequestTtl(undefined, source, rules).name).toBe('5m')
  })
})

describe('the lifetime of the newest messages', () => {
  /** Ten pauses that only an hour outlasts, with this much after the last rewrite each time. */
  const pausedWith = (tail: number): GapTally => ({
    ...paused,
    tail: { added: 30_000, lapsed: 10 * tail, lost: 0 },
  })
  const auto = policyOf('auto', 'auto')

  it.each<[string, Partial<ChooseTtlInput>, string | undefined]>([
    [
      'is short until pauses were seen, since it is written for less',
      { policy: policyOf('1h', 'auto') },
      '5m',
    ],
    ['is short in a new session of a user', { isInteractive: true }, '5m'],
    ['is short where pauses lose little of it', { readGaps: () => pausedWith(1_000) }, '5m'],
    ['is the same where pauses lose much of it', { readGaps: () => pausedWith(10_000) }, undefined],
    ['is the same by policy', { isInteractive: true, policy: policyOf('1h') }, undefined],
    [
      'is the same where an hour costs no more',
      { isInteractive: true, rates: { ...RATES, writeLong: 3.75 } },
      undefined,
    ],
    ['is the same where no price is known', { isInteractive: true, rates: null }, undefined],
    [
      'is the same where requests keep an idle cache alive',
      { isInteractive: true, policy: createPolicy({ cache: { idle: 'auto' } }).cache },
      undefined,
    ],
    ['is the same for an account with an hour for free', { entitlement: ENTITLED }, undefined],
  ])('%s', (_, given, tail) => {
    const chosen = choose({ policy: auto, ...given })
    expect([chosen.name, chosen.tail]).toEqual(['1h', tail])
  })

  it('decides whether an hour is worth it for the rest', () => {
    const few = { calls: 30, added: 100_000, lapsed: 50_000, lost: 0 }
    const short: GapTally = { ...few, tail: { added: 100_000, lapsed: 10_000, lost: 0 } }
    expect(choose({ policy: policyOf('auto'), readGaps: () => short }).name).toBe('5m')
    expect(choose({ policy: auto, readGaps: () => short })).toEqual({
      name: '1h',
      because: 'gaps',
      tail: '5m',
    })
  })

  it('is chosen again for each epoch, and holds for requests of the same lifetime', () => {
    const latched = { name: '1h', because: 'cache.ttl', tail: '5m' }
    const policy = policyOf('1h', 'auto')
    expect(choose({ policy, latched, readGaps: () => pausedWith(10_000) })).toEqual({
      name: '1h',
      because: 'cache.ttl',
    })
    const rules = { policy, cache }
    expect(chooseRequestTtl(latched, 'repl_main_thread', rules).tail).toBe('5m')
    expect(chooseRequestTtl(latched, 'session_memory', rules).tail).toBeUndefined()
  })
})

const CALL = fc
  .record({
    gapMs: fc.constantFrom(0, 299_999, 300_000, 20 * MINUTE, 3_599_999, 3_600_000, 90 * MINUTE),
    prefix: fc.nat(200_000),
    added: fc.nat(20_000),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
  })
  .map(({ share, ...call }) => ({ ...call, tail: Math.floor(call.prefix * share), isFirst: false }))

describe('what an hour saves', () => {
  /** What the calls cost with markers of one lifetime, worked out call by call. */
  function costOf(calls: readonly TimedCall[], seconds: number, write: number): number {
    return calls.reduce((sum, { gapMs, prefix, added }) => {
      const isThere = (gapMs ?? 0) < seconds * 1000
      return sum + added * write + prefix * (isThere ? RATES.cacheRead : write)
    }, 0)
  }

  it('is the difference between the two bills', () => {
    fc.assert(
      fc.property(fc.array(CALL, { maxLength: 40 }), (calls) => {
        const tally = calls.reduce((sum, each) => addCallGap(sum, each, cache), EMPTY_GAP_TALLY)
        const saved = costOf(calls, 300, RATES.writeShort) - costOf(calls, 3_600, RATES.writeLong)
        expect(computeLongTtlSavings(tally, RATES)).toBeCloseTo(saved, 3)
        expect(tally.calls).toBe(calls.length)
      }),
    )
  })

  it('and what five minutes for the newest messages save are both seen: the cheapest of three bills is chosen', () => {
    const sessions = fc
      .array(CALL, { minLength: 19, maxLength: 40 })
      .map((calls) => [{ gapMs: null, prefix: 0, added: 20_000, tail: 0, isFirst: true }, ...calls])
    fc.assert(
      fc.property(sessions, (calls) => {
        const tally = calls.reduce((sum, each) => addCallGap(sum, each, cache), EMPTY_GAP_TALLY)
        const inTail = calls.map(({ added, tail, ...call }) => ({
          ...call,
          prefix: tail,
          added: call.isFirst ? 0 : added,
          tail,
        }))
        const long = costOf(calls, 3_600, RATES.writeLong)
        const bills = {
          '5m': costOf(calls, 300, RATES.writeShort),
          '1h': long,
          '1h, 5m': long - costOf(inTail, 3_600, RATES.writeLong) + costOf(inTail, 300, RATES.writeShort),
        }
        const { name, tail } = choose({ policy: policyOf('auto', 'auto'), readGaps: () => tally })
        const chosen = bills[(tail === undefined ? name : `${name}, ${tail}`) as keyof typeof bills]
        expect(chosen).toBeCloseTo(Math.min(...Object.values(bills)), 3)
      }),
    )
  })
})
