import { describe, expect, it } from 'vitest'
import { findMissing } from './installed-packages.ts'

const asked = {
  packages: {
    '': { version: '0.0.0' },
    'node_modules/a': { version: '1.0.0' },
    'node_modules/b': { version: '2.0.0', optional: true },
  },
}

describe('findMissing', () => {
  it.each([
    ['nothing is installed', null, 'the packages are not installed'],
    ['all of it is', { packages: { 'node_modules/a': { version: '1.0.0' } } }, null],
    [
      'another version is',
      { packages: { 'node_modules/a': { version: '0.9.0' } } },
      'node_modules/a is not the one of the lockfile',
    ],
    ['a package is not', { packages: {} }, 'node_modules/a is not the one of the lockfile'],
  ])('where %s', (_, installed, expected) => {
    expect(findMissing(asked, installed)).toBe(expected)
  })

  it('wants a lockfile', () => {
    expect(() => findMissing(null, null)).toThrow('restore it')
  })
})
