import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeUtf8, endUtf8, utf8Start } from './utf8.ts'

function decode(chunks: readonly Uint8Array[]): string {
  let state = utf8Start
  let text = ''
  for (const chunk of chunks) {
    const [next, piece] = decodeUtf8(state, chunk)
    state = next
    text += piece
  }
  return text + endUtf8(state).text
}

const platform = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes that are likely to be nearly right: lead and continuation bytes at the edges of their ranges. */
const nearly = fc.array(
  fc.constantFrom(
    0x41,
    0x80,
    0x8f,
    0x90,
    0x9f,
    0xa0,
    0xbf,
    0xc1,
    0xc2,
    0xdf,
    0xe0,
    0xed,
    0xef,
    0xf0,
    0xf4,
    0xf5,
    0xff,
  ),
)

describe('decodeUtf8', () => {
  it('says what the platform says, also of broken bytes', () => {
    fc.assert(
      fc.property(nearly, (numbers) => {
        const bytes = Uint8Array.from(numbers)
        expect(decode([bytes])).toBe(platform.decode(bytes))
      }),
      { numRuns: 2000 },
    )
  })

  it('says the same byte by byte', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nearly.map((numbers) => Uint8Array.from(numbers)),
          fc.uint8Array(),
        ),
        (bytes) => {
          expect(decode([...bytes].map((byte) => Uint8Array.of(byte)))).toBe(platform.decode(bytes))
        },
      ),
    )
  })

  it('decodes what was encoded, longer than one run', () => {
    const text = 'naïve 漢字 👩‍👩‍👧\u{10ffff}\ufeff'.repeat(2000)
    expect(decode([new TextEncoder().encode(text)])).toBe(text)
  })

  it.each([
    ['between characters', [0x41], { text: '', cut: false }],
    ['after one byte of two', [0x41, 0xc3], { text: '\ufffd', cut: true }],
    ['after three bytes of four', [0xf0, 0x9f, 0x91], { text: '\ufffd', cut: true }],
  ])('tells an end %s', (_, bytes, end) => {
    expect(endUtf8(decodeUtf8(utf8Start, Uint8Array.from(bytes))[0])).toEqual(end)
  })
})
