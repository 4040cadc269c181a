import { describe, expect, it } from 'vitest'
import { BINDING, PLAIN, Situation, warm } from '../../test/clear/situation.ts'
import { COLD } from '../cache/cache-temperature.ts'
import type { ClearWay } from '../log/record.ts'
import { createProfile } from '../policy/provider-profile.ts'
import { NO_SWITCHES } from '../policy/switches.ts'
import { chooseWay, type WayQuestion } from './propose-clearing.ts'

const EDITS = { clearThinking: 'a', clearToolUses: 'b' }
const DELETES = createProfile({ capabilities: { cacheEdits: true }, thinking: { binding: 'none' } })
const NATIVE = createProfile({ contextEdits: EDITS, thinking: { binding: 'none' } })
const BOUND = createProfile({ contextEdits: EDITS, thinking: { binding: 'prefix' } })
const LOW = { expected: 1, high: 1 }
const HIGH = { expected: 147_000, high: 147_000 }
const HOUR = 61 * 60_000
const ALL: readonly ClearWay[] = ['idle', 'budget', 'cached', 'native']

function way(ways: readonly ClearWay[], overrides: Partial<WayQuestion>): ClearWay | null {
  return chooseWay(new Situation({ clear: { ways } }).question(overrides)).way
}

describe('the way in force', () => {
  it.each<readonly [string, readonly ClearWay[], Partial<WayQuestion>, ClearWay | null]>([
    ['warm and low', ALL, { cache: warm(), context: LOW }, null],
    ['warm and high', ALL, { cache: warm(), context: HIGH }, 'budget'],
    ['cold and high', ALL, { cache: COLD, context: HIGH }, 'budget'],
    ['idle and low', ALL, { cache: COLD, idleMs: HOUR, context: LOW }, 'idle'],
    ['idle and high', ALL, { cache: COLD, idleMs: HOUR, context: HIGH }, 'idle'],
    ['idle, policy without it', ['budget'], { cache: COLD, idleMs: HOUR, context: HIGH }, 'budget'],
    ['deletes, warm', ALL, { profile: DELETES, cache: warm(), context: LOW }, 'cached'],
    ['deletes, warm and high', ALL, { profile: DELETES, cache: warm(), context: HIGH }, 'cached'],
    ['deletes, cold and high', ALL, { profile: DELETES, cache: COLD, context: HIGH }, 'budget'],
    ['deletes, policy without it', ['budget'], { profile: DELETES, cache: warm(), context: HIGH }, 'budget'],
    ['native, unbound', ALL, { profile: NATIVE, thinks: true, context: HIGH }, 'budget'],
    ['native alone', ['native'], { profile: NATIVE, context: LOW }, 'native'],
    ['native, bound and thinking', ALL, { profile: BOUND, thinks: true, context: LOW }, 'native'],
    [
      'native, bound, and the request does not name what it takes',
      ALL,
      { profile: BOUND, thinks: true, canEdit: false, context: HIGH },
      'budget',
    ],
    ['native, bound and idle', ALL, { profile: BOUND, thinks: true, idleMs: HOUR, cache: COLD }, 'native'],
    ['native, bound, not thinking', ALL, { profile: BOUND, context: HIGH }, 'budget'],
    ['bound, but not native', ALL, { profile: BINDING, thinks: true, context: HIGH }, 'budget'],
    ['native alone, and not offered', ['native'], { profile: PLAIN, context: HIGH }, null],
    ['none allowed', [], { context: HIGH }, null],
    ['a person asks', [], { context: LOW, target: 5 }, 'budget'],
  ])('%s', (_, ways, overrides, expected) => {
    expect(way(ways, overrides)).toBe(expected)
  })

  it('is none where a switch is off, and the switch is named', () => {
    const off = new Situation({ switches: { microcompactEnabled: false } })
    expect(chooseWay(off.question({ context: HIGH, target: 1 }))).toEqual({
      way: null,
      why: 'clearing is switched off by switches.microcompactEnabled',
    })
    const switches = { ...NO_SWITCHES, set: ['DISABLE_COMPACT' as const] }
    expect(chooseWay(new Situation().question({ context: HIGH, switches })).why).toBe(
      'clearing is switched off by DISABLE_COMPACT',
    )
  })
})
