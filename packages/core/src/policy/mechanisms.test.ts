import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import { mechanismStates } from './mechanisms.ts'
import { NO_SWITCHES, readSwitches, type Switches } from './switches.ts'

const on = { on: true } as const
const off = (because: string) => ({ on: false, because }) as const
const allOn = { clear: on, auto: on, reactive: on, manual: on, notes: on, caching: on }
const set = (...names: readonly string[]): Switches =>
  readSwitches(Object.fromEntries(names.map((name) => [name, '1']))).switches

describe('mechanismStates', () => {
  it('has everything on by default', () => {
    expect(mechanismStates(DEFAULT_POLICY, NO_SWITCHES)).toEqual(allOn)
  })

  it.each([
    ['DISABLE_COMPACT', ['clear', 'auto', 'reactive', 'manual', 'notes']],
    ['DISABLE_AUTO_COMPACT', ['auto', 'reactive']],
    ['DISABLE_MICROCOMPACT', ['clear']],
    ['DISABLE_PROMPT_CACHING', ['caching']],
    ['FORCE_PROMPT_CACHING_5M', []],
  ])('%s switches off %j and is named', (variable, mechanisms) => {
    const changed = Object.fromEntries(mechanisms.map((mechanism) => [mechanism, off(variable)]))
    expect(mechanismStates(DEFAULT_POLICY, set(variable))).toEqual({ ...allOn, ...changed })
  })

  it.each([
    [
      { switches: { compactEnabled: false } },
      'switches.compactEnabled',
      ['clear', 'auto', 'reactive', 'manual', 'notes'],
    ],
    [{ switches: { autoCompactEnabled: false } }, 'switches.autoCompactEnabled', ['auto', 'reactive']],
    [{ switches: { microcompactEnabled: false } }, 'switches.microcompactEnabled', ['clear']],
    [{ switches: { promptCachingEnabled: false } }, 'switches.promptCachingEnabled', ['caching']],
    [{ turn: { reactive: { enabled: false } } }, 'turn.reactive.enabled', ['reactive']],
    [{ notes: { enabled: false } }, 'notes.enabled', ['notes']],
  ])('%j', (overrides, because, mechanisms) => {
    const changed = Object.fromEntries(mechanisms.map((mechanism) => [mechanism, off(because)]))
    expect(mechanismStates(createPolicy(overrides), NO_SWITCHES)).toEqual({ ...allOn, ...changed })
  })

  it('names the widest variable first, and variables before settings', () => {
    const policy = createPolicy({ switches: { autoCompactEnabled: false, compactEnabled: false } })
    const auto = (switches: Switches) => mechanismStates(policy, switches).auto
    expect(auto(set('DISABLE_AUTO_COMPACT', 'DISABLE_COMPACT'))).toEqual(off('DISABLE_COMPACT'))
    expect(auto(set('DISABLE_AUTO_COMPACT'))).toEqual(off('DISABLE_AUTO_COMPACT'))
    expect(auto(NO_SWITCHES)).toEqual(off('switches.compactEnabled'))
  })
})
