import { expect, it } from 'vitest'
import { wrap } from './wrap.ts'

it.each([
  ['short', 20, '', ['short']],
  ['one two three four', 9, '', ['one two', 'three', 'four']],
  ['one two three', 9, '! ', ['! one two', '  three']],
  ['a-word-that-is-too-long b', 10, '', ['a-word-th…', 'b']],
  ['', 10, '! ', ['! ']],
])('%j in %d', (text, columns, mark, expected) => {
  expect(wrap(text, columns, mark)).toEqual(expected)
})
