import { isTooDeep, MAX_DEPTH } from '@tidemark/core'
import { expect, it } from 'vitest'

it.each([
  [MAX_DEPTH, false],
  [MAX_DEPTH + 1, true],
  [1_000_000, true],
])('%i levels: %s', (levels, expected) => {
  expect(isTooDeep(JSON.parse('['.repeat(levels) + ']'.repeat(levels)))).toBe(expected)
  expect(isTooDeep(JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`))).toBe(expected)
})

it.each([[null], ['x'], [{ a: [1, { b: null }] }]])('%j is not', (value) => {
  expect(isTooDeep(value)).toBe(false)
})
