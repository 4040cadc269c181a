import { describe, expect, it } from 'vitest'
import { createPolicy, DEFAULT_POLICY } from './create-policy.ts'
import { findFeatureStates, NO_SWITCHES, readSwitches, type Switches } from './switches.ts'

const quiet = (environment: Record<string, string | undefined>) => {
  const { switches, notices } = readSwitches(environment)
  expect(notices).toEqual([])
  return switches
}

describe('a switch', () => {
  it.each([
    'DISABLE_COMPACT',
    'DISABLE_AUTO_COMPACT',
    'DISABLE_MICROCOMPACT',
    'ENABLE_PROMPT_CACHING_1H',
    'ENABLE_PROMPT_CACHING_1H_BEDROCK',
    'FORCE_PROMPT_CACHING_5M',
    'DISABLE_PROMPT_CACHING',
  ])('%s is set by 1, true, yes and on, in any case', (variable) => {
    for (const value of ['1', 'true', 'TRUE', 'Yes', 'on', ' oN ']) {
      expect(quiet({ [variable]: value })).toEqual({ set: [variable], autoCompactPercent: null })
    }
    for (const value of ['', '0', 'false', 'No', 'OFF', undefined]) {
      expect(quiet({ [variable]: value })).toEqual(NO_SWITCHES)
    }
  })

  it('with any other value is reported and ignored', () => {
    expect(readSwitches({ DISABLE_COMPACT: 'y', PATH: '/bin' })).toEqual({
      switches: NO_SWITCHES,
      notices: [
        {
          variable: 'DISABLE_COMPACT',
          value: 'y',
          message:
            'DISABLE_COMPACT is "y" and was ignored: expected 1, true, yes or on to set it, 0, false, no or off not to.',
        },
      ],
    })
  })
})

describe('the percentage', () => {
  it.each([
    ['80', 80],
    [' 80 ', 80],
    ['0.5', 0.5],
    ['.5', 0.5],
    ['92.', 92],
    ['100', 100],
  ])('%j is %d, under either name', (value, percent) => {
    expect(quiet({ TIDEMARK_AUTOCOMPACT_PCT: value }).autoCompactPercent).toBe(percent)
    expect(quiet({ CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: value }).autoCompactPercent).toBe(percent)
  })

  it.each(['0', '-5', '101', '100.01', '80%', '1e1', '0x10', 'NaN', 'Infinity', 'eighty', '8 0', '+80', '.'])(
    '%j is reported and ignored',
    (value) => {
      expect(readSwitches({ CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: value })).toEqual({
        switches: NO_SWITCHES,
        notices: [
          {
            variable: 'CLAUDE_AUTOCOMPACT_PCT_OVERRIDE',
            value,
            message: `CLAUDE_AUTOCOMPACT_PCT_OVERRIDE is "${value}" and was ignored: expected a number above 0 and at most 100, as in 80.`,
          },
        ],
      })
    },
  )

  it('is read from our own variable first, unless its value is invalid', () => {
    const both = (own: string) =>
      readSwitches({ TIDEMARK_AUTOCOMPACT_PCT: own, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: '60' })
    expect(both('70')).toEqual({ switches: { set: [], autoCompactPercent: 70 }, notices: [] })
    expect(both('')).toEqual({ switches: { set: [], autoCompactPercent: 60 }, notices: [] })
    expect(both('x').switches.autoCompactPercent).toBe(60)
    expect(both('x').notices.map(({ variable }) => variable)).toEqual(['TIDEMARK_AUTOCOMPACT_PCT'])
  })
})

const on = { on: true } as const
const off = (because: string) => ({ on: false, because }) as const
const allOn = { clear: on, auto: on, reactive: on, manual: on, notes: on, caching: on }
const set = (...names: readonly string[]): Switches =>
  readSwitches(Object.fromEntries(names.map((name) => [name, '1']))).switches

describe('mechanismStates', () => {
  it('are all on by default', () => {
    expect(findFeatureStates(DEFAULT_POLICY, NO_SWITCHES)).toEqual(allOn)
  })

  it.each([
    ['DISABLE_COMPACT', ['clear', 'auto', 'reactive', 'manual', 'notes']],
    ['DISABLE_AUTO_COMPACT', ['auto', 'reactive']],
    ['DISABLE_MICROCOMPACT', ['clear']],
    ['DISABLE_PROMPT_CACHING', ['caching']],
    ['FORCE_PROMPT_CACHING_5M', []],
  ])('%s switches off %j and is named', (variable, mechanisms) => {
    const changed = Object.fromEntries(mechanisms.map((mechanism) => [mechanism, off(variable)]))
    expect(findFeatureStates(DEFAULT_POLICY, set(variable))).toEqual({ ...allOn, ...changed })
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
  ])('%j', (overrides, because, mechanisms) => {
    const changed = Object.fromEntries(mechanisms.map((mechanism) => [mechanism, off(because)]))
    expect(findFeatureStates(createPolicy(overrides), NO_SWITCHES)).toEqual({ ...allOn, ...changed })
  })

  it('name the broadest variable first, and variables before settings', () => {
    const policy = createPolicy({ switches: { autoCompactEnabled: false, compactEnabled: false } })
    const auto = (switches: Switches) => findFeatureStates(policy, switches).auto
    expect(auto(set('DISABLE_AUTO_COMPACT', 'DISABLE_COMPACT'))).toEqual(off('DISABLE_COMPACT'))
    expect(auto(set('DISABLE_AUTO_COMPACT'))).toEqual(off('DISABLE_AUTO_COMPACT'))
    expect(auto(NO_SWITCHES)).toEqual(off('switches.compactEnabled'))
  })
})
