import { describe, expect, it } from 'vitest'
import { findNearestName } from './policy-fields.ts'

const known = ['keep', 'targetTokens', 'minimumFreedTokens', 'ttl']

describe('nearest', () => {
  it.each([
    ['keeep', 'keep'],
    ['kepe', 'keep'],
    ['ekpe', 'keep'],
    ['KEEP', 'keep'],
    ['tragetTokens', 'targetTokens'],
    ['targetToken', 'targetTokens'],
    ['minimumFreeTokens', 'minimumFreedTokens'],
    ['tll', 'ttl'],
    ['t', 'ttl'],
    ['unheardOf', null],
    ['xyz', null],
    ['', null],
  ])('%s → %s', (given, expected) => {
    expect(findNearestName(given, known)).toBe(expected)
  })

  it('finds nothing if nothing is known', () => {
    expect(findNearestName('keep', [])).toBe(null)
  })
})
