import { describe, expect, it } from 'vitest'
import { placePieces, type SummaryPiece } from './summary-pieces.ts'

/** One token a character. */
const countTokens = (text: string): number => text.length

function createPiece(given: Partial<SummaryPiece>): SummaryPiece {
  return { section: 1, rank: 0, order: 0, full: '', short: null, groups: [], id: null, ...given }
}

function fitTexts(
  pieces: readonly SummaryPiece[],
  total: number,
  caps: readonly (readonly [string, number])[] = [],
) {
  const { placed, leftOut } = placePieces(pieces, { tokens: total, caps: new Map(caps), countTokens })
  return [placed.map(({ text }) => text).join(' '), leftOut.map(({ full }) => full).join(' ')]
}

describe('pieces in a room', () => {
  const pieces = [
    createPiece({ rank: 1, order: 2, full: 'dddddd', short: 'd' }),
    createPiece({ rank: 0, order: 1, full: 'aaaa', short: 'a' }),
    createPiece({ rank: 0, order: 0, full: 'bbbb', short: 'b' }),
    createPiece({ rank: 2, order: 3, full: 'ccc' }),
  ]
  it.each([
    [99, 'bbbb aaaa dddddd ccc', ''],
    [14, 'bbbb aaaa dddddd', 'ccc'],
    [12, 'bbbb aaaa d ccc', ''],
    [7, 'b aaaa d', 'ccc'],
    [2, 'b a', 'dddddd ccc'],
    [1, 'a', 'dddddd bbbb ccc'],
    [0, '', 'dddddd aaaa bbbb ccc'],
  ])('of %d: each of a rank in short before any in full', (total, placed, leftOut) => {
    expect(fitTexts(pieces, total)).toEqual([placed, leftOut])
  })

  it('share the cap of their group', () => {
    const grouped = [
      createPiece({ full: 'aaaa', groups: ['g'] }),
      createPiece({ full: 'bb', groups: ['g'], order: 1 }),
      createPiece({ full: 'cc', groups: ['h'], order: 2 }),
    ]
    expect(fitTexts(grouped, 99, [['g', 4]])).toEqual(['aaaa cc', 'bb'])
  })

  it('stand by section, then in order', () => {
    expect(
      fitTexts([createPiece({ section: 2, full: 'z' }), createPiece({ section: 1, order: 9, full: 'y' })], 9),
    ).toEqual(['y z', ''])
  })
})
