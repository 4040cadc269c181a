import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLineSplitter, type FedLine } from './line-splitter.ts'

function split(pieces: readonly Uint8Array[], maxLineBytes = 100): readonly FedLine[] {
  const splitter = createLineSplitter(maxLineBytes)
  const lines = pieces.flatMap((piece) => {
    // The reader fills one buffer over and over.
    const shared = Buffer.from(piece)
    const given = splitter.push(shared)
    shared.fill(0)
    return given
  })
  return [...lines, splitter.end()]
}

const plain = (text: string): FedLine => ({ text, flaw: null })

describe('bytes to lines', () => {
  it('however the bytes are cut, the lines are the same', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '🦭', '\n', '\r', ' ') })
    fc.assert(
      fc.property(text, fc.array(fc.nat(20)), (given, cuts) => {
        const bytes = Buffer.from(given)
        const pieces: Uint8Array[] = []
        let at = 0
        for (const cut of cuts) {
          pieces.push(bytes.subarray(at, at + cut))
          at += cut
        }
        expect(split([...pieces, bytes.subarray(at)], 1000)).toEqual(given.split('\n').map(plain))
      }),
    )
  })

  it.each([
    ['at once', ['aaaaaa\nb\n']],
    ['in pieces', ['aaa', 'aa', 'a\nb', '\n']],
  ])('a line that is too long is set aside, given %s', (_, pieces) => {
    expect(
      split(
        pieces.map((piece) => Buffer.from(piece)),
        5,
      ),
    ).toEqual([
      { text: '', flaw: 'the line is 6 bytes long, more than the 5 that are allowed; it is set aside' },
      plain('b'),
      plain(''),
    ])
  })

  it('so is one without an end', () => {
    expect(split([Buffer.from('b\n'), ...Array.from({ length: 9 }, () => Buffer.from('aaaa'))], 5)).toEqual([
      plain('b'),
      { text: '', flaw: 'the line is 36 bytes long, more than the 5 that are allowed; it is set aside' },
    ])
  })

  it('bytes that are not UTF-8 are told; U+FFFD itself is not', () => {
    expect(split([Buffer.from([0x61, 0xff, 0x0a]), Buffer.from('\uFFFD\n')])).toEqual([
      { text: 'a\uFFFD', flaw: 'the line has bytes that are not UTF-8; each was read as U+FFFD' },
      plain('\uFFFD'),
      plain(''),
    ])
  })
})
