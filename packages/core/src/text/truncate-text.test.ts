import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { createEstimator, createFixedWeights } from '../tokens/estimator.ts'
import { takeHead, takeTail, truncateEnd, truncateMiddle, truncateStart } from './truncate-text.ts'

const words = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length
const { text: measure } = createEstimator(createFixedWeights(DEFAULT_POLICY.estimate))

describe('the beginning of a text', () => {
  it.each([
    ['one two three', 2, 'one two '],
    ['one two', 2, 'one two'],
    ['a b\nc d\ne f', 5, 'a b\nc d\n'],
    ['a\nb c d e f g', 5, 'a\nb c d e '],
    ['one', 0, ''],
  ])('%j within %d', (text, tokens, head) => {
    expect(takeHead(text, tokens, words)).toBe(head)
  })

  it('and its end are within their tokens, parts of the text, and cut no character in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.nat(120), (text, tokens) => {
        const [head, tail] = [takeHead(text, tokens, measure), takeTail(text, tokens, measure)]
        expect([text.startsWith(head), text.endsWith(tail)]).toEqual([true, true])
        for (const part of [head, tail].filter((piece) => piece !== ''))
          expect(measure(part)).toBeLessThanOrEqual(tokens)
        for (const part of [head, tail]) expect(part.isWellFormed()).toBe(true)
      }),
    )
  })
})

describe('the end of a text', () => {
  it.each([
    ['one two three', 2, ' two three'],
    ['a b\nc d\ne f', 5, 'c d\ne f'],
    ['one', 0, ''],
  ])('%j within %d', (text, tokens, tail) => {
    expect(takeTail(text, tokens, words)).toBe(tail)
  })
})

describe('a text cut to a number of characters', () => {
  it.each([1, 2, 3, 4, 5])('at %d keeps whole characters', (each) => {
    const text = '😀'.repeat(20)
    for (const cut of [truncateEnd(text, each), truncateStart(text, each), truncateMiddle(text, each, 'id')])
      expect([cut, cut.isWellFormed()]).toEqual([cut, true])
  })
})
