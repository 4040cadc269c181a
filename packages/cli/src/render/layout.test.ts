import { expect, it } from 'vitest'
import { bar } from './layout.ts'
import { symbolsFor } from './screen.ts'

it.each([
  [0, 10, ''],
  [Number.NaN, 10, ''],
  [1, 0, ''],
  [0.0001, 10, '╸'],
  [0.5, 10, '━━━━━'],
  [0.54, 10, '━━━━━╸'],
  [1, 4, '━━━━'],
  [7, 4, '━━━━'],
])('%d of %d', (share, width, expected) => {
  expect(bar(share, width, symbolsFor({}))).toBe(expected)
})

it('in ASCII', () => {
  expect(bar(0.54, 10, symbolsFor({ LANG: 'C' }))).toBe('=====-')
})
