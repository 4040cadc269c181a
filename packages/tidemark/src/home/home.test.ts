import { describe, expect, it } from 'vitest'
import { type HomeVariables, homeOr, tidemarkHome } from './home.ts'

describe('tidemarkHome', () => {
  it.each<[HomeVariables, string]>([
    [{}, '/u/.local/share/tidemark'],
    [{ TIDEMARK_HOME: '', XDG_DATA_HOME: '' }, '/u/.local/share/tidemark'],
    [{ XDG_DATA_HOME: '/data' }, '/data/tidemark'],
    [{ TIDEMARK_HOME: '/own' }, '/own'],
    [{ TIDEMARK_HOME: '/own/', XDG_DATA_HOME: '/data' }, '/own'],
    [{ TIDEMARK_HOME: '/own/../other' }, '/other'],
    [{ TIDEMARK_HOME: '/own', XDG_DATA_HOME: 'relative' }, '/own'],
  ])('%j is %s', (variables, home) => {
    expect(tidemarkHome(variables, '/u')).toBe(home)
  })

  it.each<[HomeVariables, string]>([
    [
      { TIDEMARK_HOME: 'here' },
      'TIDEMARK_HOME is "here": it has to be an absolute path. Set it to one, or unset it.',
    ],
    [
      { XDG_DATA_HOME: '~/x' },
      'XDG_DATA_HOME is "~/x": it has to be an absolute path. Set it to one, or unset it.',
    ],
  ])('%j is refused in one line', (variables, message) => {
    expect(() => tidemarkHome(variables, '/u')).toThrow(
      expect.objectContaining({ code: 'bad-home', message }),
    )
  })
})

describe('a home that is given', () => {
  it('is taken as it is, and where none is, the usual one', () => {
    expect([homeOr('/own/'), homeOr(undefined)]).toEqual(['/own', tidemarkHome()])
  })

  it.each<[unknown, string]>([
    ['here', 'The home is "here": it has to be an absolute path. Give one, or leave it out.'],
    ['', 'The home is "": it has to be an absolute path. Give one, or leave it out.'],
    [7, 'The home is 7: it has to be an absolute path. Give one, or leave it out.'],
    [null, 'The home is null: it has to be an absolute path. Give one, or leave it out.'],
  ])('as %j is refused in one line', (home, message) => {
    expect(() => homeOr(home as string)).toThrow(expect.objectContaining({ code: 'bad-home', message }))
  })
})
