import { describe, expect, it } from 'vitest'
import { NO_SWITCHES, readSwitches } from './switches.ts'

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

  it('with another word in it is reported and ignored', () => {
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

  it('is taken from our own name first, unless that holds nonsense', () => {
    const both = (own: string) =>
      readSwitches({ TIDEMARK_AUTOCOMPACT_PCT: own, CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: '60' })
    expect(both('70')).toEqual({ switches: { set: [], autoCompactPercent: 70 }, notices: [] })
    expect(both('')).toEqual({ switches: { set: [], autoCompactPercent: 60 }, notices: [] })
    expect(both('x').switches.autoCompactPercent).toBe(60)
    expect(both('x').notices.map(({ variable }) => variable)).toEqual(['TIDEMARK_AUTOCOMPACT_PCT'])
  })
})
