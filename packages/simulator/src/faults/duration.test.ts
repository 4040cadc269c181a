import { expect, it } from 'vitest'
import { durationOf } from './duration.ts'

it.each([
  ['50ms', 50],
  ['2s', 2_000],
  ['1.5s', 1_500],
  ['1m', 60_000],
  ['0', 0],
  ['70', 70],
  [70, 70],
  [' 5 s ', 5_000],
  ['', null],
  ['fast', null],
  ['-1s', null],
  ['1h', null],
  [-1, null],
  [Number.NaN, null],
  [null, null],
  [{}, null],
])('%j is %j ms', (written, ms) => {
  expect(durationOf(written)).toBe(ms)
})
