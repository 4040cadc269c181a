import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY } from '../policy/create-policy.ts'
import { createDefaultWeights, createEstimator } from '../tokens/estimator.ts'
import {
  repairRecordSurrogates,
  replaceLoneSurrogates,
  sliceWholeCharacters,
  takeHeadWithinTokens,
  takeTailWithinTokens,
  toOneLine,
  truncateEnd,
  truncateMiddleWithPointer,
  truncateStart,
} from './truncate-text.ts'

const words = (text: string): number => text.split(/\s+/).filter((word) => word !== '').length
const { text: measure } = createEstimator(createDefaultWeights(DEFAULT_POLICY.estimate))

describe('the beginning of a text', () => {
  it.each([
    ['one two three', 2, 'one two '],
    ['one two', 2, 'one two'],
    ['a b\nc d\ne f', 5, 'a b\nc d\n'],
    ['a\nb c d e f g', 5, 'a\nb c d e '],
    ['one', 0, ''],
  ])('%j within %d', (text, tokens, head) => {
    expect(takeHeadWithinTokens(text, tokens, words)).toBe(head)
  })

  it('and its end are within their tokens, parts of the text, and cut no character in two', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 400 }), fc.nat(120), (text, tokens) => {
        const [head, tail] = [
          takeHeadWithinTokens(text, tokens, measure),
          takeTailWithinTokens(text, tokens, measure),
        ]
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
    expect(takeTailWithinTokens(text, tokens, words)).toBe(tail)
  })
})

describe('a text cut to a number of characters', () => {
  it.each([1, 2, 3, 4, 5])('at %d keeps whole characters', (each) => {
    const text = '😀'.repeat(20)
    for (const cut of [
      truncateEnd(text, each),
      truncateStart(text, each),
      truncateMiddleWithPointer(text, each, 'id'),
    ])
      expect([cut, cut.isWellFormed()]).toEqual([cut, true])
  })
})

const EMOJI = '😀'
const HALF = EMOJI.slice(0, 1)

describe('a text', () => {
  it('that is cut anywhere stays well formed, and loses at most half a character at each end', () => {
    const text = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(
        text,
        fc.integer({ min: -30, max: 30 }),
        fc.integer({ min: -30, max: 30 }),
        (given, from, to) => {
          const [cut, plain] = [sliceWholeCharacters(given, from, to), given.slice(from, to)]
          expect(cut.isWellFormed()).toBe(true)
          expect(plain).toContain(cut)
          expect(plain.length - cut.length).toBeLessThanOrEqual(2)
          if (plain.isWellFormed()) expect(cut).toBe(plain)
        },
      ),
    )
  })

  it.each([
    ['half a pair', HALF, '\ufffd'],
    ['in a list', ['a', HALF], ['a', '\ufffd']],
    ['in a field and its name', { [HALF]: { text: `a${HALF}` } }, { '\ufffd': { text: 'a\ufffd' } }],
  ])('is repaired: %s', (_, given, expected) => {
    expect(replaceLoneSurrogates<unknown>(given)).toEqual(expected)
  })

  it('that is well formed stays the same object', () => {
    const given = { content: [{ type: 'text', text: EMOJI }], count: 3, none: null }
    expect(replaceLoneSurrogates(given)).toBe(given)
  })
})

describe('a record', () => {
  it('loses the exact texts of its blocks only if it was repaired', () => {
    const rawBlocks = [{ index: 0, text: '{"type":"text","text":"\\ud83d"}' }]
    const broken = { message: { content: [{ type: 'text', text: HALF }] }, rawBlocks }
    expect(repairRecordSurrogates(broken)).toEqual({
      message: { content: [{ type: 'text', text: '\ufffd' }] },
    })
    const whole = { message: { content: [{ type: 'text', text: EMOJI }] }, rawBlocks }
    expect(repairRecordSurrogates(whole)).toBe(whole)
  })
})

describe('a text on one line', () => {
  it.each([
    ['a'.repeat(100), `${'a'.repeat(12)}…`],
    [`${'\n'.repeat(40)}first second third`, 'first second…'],
    [`one${' '.repeat(40)}two three four five`, 'one two thre…'],
    ['twelve chars', 'twelve chars'],
  ])('of %j begins with its words', (text, expected) => {
    expect(toOneLine(text, 12)).toBe(expected)
  })

  it('is as if the whole text were read, however much white space it begins with', () => {
    const piece = fc.constantFrom('word', ' ', '\n\n', '\t', '😀', 'a')
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.integer({ min: 12, max: 40 }), (pieces, most) => {
        const text = pieces.join('')
        expect(toOneLine(text, most)).toBe(truncateEnd(text.replace(/\s+/g, ' ').trim(), most))
      }),
    )
  })
})
