import { describe, expect, it } from 'vitest'
import { checkNames } from './argument-errors.ts'

const NAMES = ['instructions', 'pivot', 'signal', 'baseUrl']

describe('a name that is no option', () => {
  it.each([
    ['instruction', 'compact: there is no option instruction. Did you mean instructions?'],
    ['baseURL', 'compact: there is no option baseURL. Did you mean baseUrl?'],
    ['base_url', 'compact: there is no option base_url. Did you mean baseUrl?'],
    ['singal', 'compact: there is no option singal. Did you mean signal?'],
    ['colour', 'compact: there is no option colour. Those there are: instructions, pivot, signal, baseUrl.'],
  ])('%s', (name, message) => {
    expect(() => checkNames('compact', { [name]: 1 }, NAMES)).toThrow(
      expect.objectContaining({ code: 'bad-option', message, details: { option: name } }),
    )
  })

  it('is told apart from options that are none at all', () => {
    expect(() => checkNames('compact', 'all', NAMES)).toThrow('compact: expected an object, found "all".')
    expect(() => checkNames('compact', undefined, NAMES)).not.toThrow()
    expect(() => checkNames('compact', { pivot: undefined }, NAMES)).not.toThrow()
  })
})
