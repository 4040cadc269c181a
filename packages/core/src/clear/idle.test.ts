import { describe, expect, it } from 'vitest'
import { Situation, warm } from '../../test/clear/situation.ts'
import { notIdle, proposeIdle } from './idle.ts'
import { COLD } from './temperature.ts'

const MINUTE = 60_000

describe('idle', () => {
  it.each([
    [60, 60, true],
    [60, 59, false],
    ['ttl', 5, true],
    ['ttl', 4, false],
  ] as const)('after %s: idle for %i minutes: %s', (afterMinutes, waited, expected) => {
    const situation = new Situation({ clear: { idle: { afterMinutes } } })
    const cache = { ...COLD, ttlMs: 5 * MINUTE }
    expect(notIdle(situation.question({ cache, idleMs: waited * MINUTE })) === null).toBe(expected)
  })

  it('is not while the cache is warm, nor before anything was said', () => {
    const situation = new Situation()
    expect(notIdle(situation.question({ cache: warm(), idleMs: 90 * MINUTE }))).toBe(
      'the cache is still warm',
    )
    expect(notIdle(situation.question({ idleMs: null }))).toBe('nothing has been answered yet')
  })

  it('clears all but the five newest, however full the window is', () => {
    const situation = new Situation()
    const all = situation.reads(9, 2_000)
    situation.say()
    const question = situation.question({ idleMs: 61 * MINUTE, context: { expected: 20, high: 20 } })
    const { proposal } = proposeIdle(question)
    expect(proposal?.metadata).toMatchObject({
      way: 'idle',
      trigger: 'auto',
      compactedToolIds: all.slice(0, 4),
    })
    expect(proposal?.freedTokens).toBe(4 * 1_992)
    expect(proposal?.why).toBe(
      'the newest answer is 61 minutes old and the cache has lapsed: clearing 4 old results frees 7,968 tokens; nothing is written again',
    )
  })

  it.each([
    [2_508, 5_000],
    [2_507, null],
  ])('frees 5,000 or nothing: two of %i tokens', (tokens, freed) => {
    const situation = new Situation()
    situation.reads(2, tokens)
    situation.reads(5, 10)
    situation.say()
    const { proposal } = proposeIdle(situation.question({ idleMs: 61 * MINUTE }))
    expect(proposal?.freedTokens ?? null).toBe(freed)
  })
})
