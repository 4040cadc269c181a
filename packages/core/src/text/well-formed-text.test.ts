import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { repairRecordText, replaceLoneSurrogates, sliceText } from './well-formed-text.ts'

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
          const [cut, plain] = [sliceText(given, from, to), given.slice(from, to)]
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
    expect(repairRecordText(broken)).toEqual({ message: { content: [{ type: 'text', text: '\ufffd' }] } })
    const whole = { message: { content: [{ type: 'text', text: EMOJI }] }, rawBlocks }
    expect(repairRecordText(whole)).toBe(whole)
  })
})
