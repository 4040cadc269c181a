import { describe, expect, it } from 'vitest'
import { checkOptionNames } from './argument-errors.ts'

const NAMES = ['instructions', 'pivot', 'signal', 'baseUrl']

describe('an unknown option name', () => {
  it.each([
    ['instruction', 'compact: unknown option instruction. Did you mean instructions?'],
    ['baseURL', 'compact: unknown option baseURL. Did you mean baseUrl?'],
    ['base_url', 'compact: unknown option base_url. Did you mean baseUrl?'],
    ['singal', 'compact: unknown option singal. Did you mean signal?'],
    ['colour', 'compact: unknown option colour. Known: instructions, pivot, signal, baseUrl.'],
  ])('%s is reported with what was probably meant', (name, message) => {
    expect(() => checkOptionNames('compact', { [name]: 1 }, NAMES)).toThrow(
      expect.objectContaining({ code: 'bad-option', message, details: { option: name } }),
    )
  })

  it('is reported differently from options that are not an object', () => {
    expect(() => checkOptionNames('compact', 'all', NAMES)).toThrow(
      'compact: expected an object, found "all".',
    )
    expect(() => checkOptionNames('compact', undefined, NAMES)).not.toThrow()
    expect(() => checkOptionNames('compact', { pivot: undefined }, NAMES)).not.toThrow()
  })
})
