import { describe, expect, it } from 'vitest'
import {
  formatBytes,
  formatCost,
  formatCount,
  formatDollars,
  formatDuration,
  formatTokenLimit,
  formatTokens,
  formatWholePercent,
} from './format-numbers.ts'

describe('figures', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1.0k'],
    [12_449, '12.4k'],
    [99_949, '99.9k'],
    [99_950, '100k'],
    [155_440, '155k'],
    [999_499, '999k'],
    [999_500, '1.00M'],
    [1_269_717, '1.27M'],
    [26_673_664, '26.7M'],
    [145_000_000, '145M'],
    [2_990_000_000, '2.99G'],
  ])('%d tokens are %s', (amount, expected) => {
    expect(formatTokens(amount)).toBe(expected)
  })

  it.each([
    [200_000, '200k'],
    [1_000_000, '1M'],
    [5_000, '5k'],
    [258_400, '258k'],
    [2_500, '2.5k'],
  ])('a limit of %d is %s', (amount, expected) => {
    expect(formatTokenLimit(amount)).toBe(expected)
  })

  it.each([
    [0, '$0'],
    [0.0004, '<$0.01'],
    [0.005, '$0.01'],
    [12.784, '$12.78'],
    [-3, '-$3.00'],
    [5_050.234, '$5,050.23'],
    [12_345.6, '$12,346'],
  ])('%d dollars are %s', (amount, expected) => {
    expect(formatDollars(amount)).toBe(expected)
  })

  it.each([
    [1.5, 1.5, '$1.50'],
    [null, 1.5, '>$1.50'],
    [null, 0.001, '?'],
  ])('a cost of %s, of which %d is known, is %s', (total, priced, expected) => {
    expect(formatCost(total, priced)).toBe(expected)
  })

  it.each([
    [0, '0%'],
    [0.004, '<1%'],
    [0.777, '78%'],
  ])('a share of %d is %s', (share, expected) => {
    expect(formatWholePercent(share)).toBe(expected)
  })

  it.each([
    [42_000, '42 s'],
    [14 * 60_000, '14 min'],
    [2 * 3_600_000, '2 h'],
    [5.93 * 3_600_000, '5 h 56 min'],
    [50.16 * 3_600_000, '2 d 2 h'],
  ])('%d ms are %s', (ms, expected) => {
    expect(formatDuration(ms)).toBe(expected)
  })

  it('counts of things have their plural, sizes their unit', () => {
    expect([
      formatCount(1, 'call'),
      formatCount(1_901, 'call'),
      formatBytes(12),
      formatBytes(3_400),
      formatBytes(999_499),
      formatBytes(999_500),
      formatBytes(52_400_000),
    ]).toEqual(['1 call', '1,901 calls', '12 B', '3 kB', '999 kB', '1.0 MB', '52.4 MB'])
  })
})
