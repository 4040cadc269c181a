import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeUtf8, encodeUtf8 } from './utf8-text.ts'

describe('text as UTF-8', () => {
  it('is what the platform makes of it, and comes back the same', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (text) => {
        const bytes = encodeUtf8(text)
        expect(bytes).toEqual(new TextEncoder().encode(text))
        expect(decodeUtf8(bytes ?? new Uint8Array())).toBe(text)
      }),
    )
  })

  it('is long as well', () => {
    const text = 'añ€𝄞'.repeat(5_000)
    expect(decodeUtf8(encodeUtf8(text) ?? new Uint8Array())).toBe(text)
  })

  it.each(['\ud800', 'a\udc00b', '\udc00\ud800'])('cannot hold half a character: %j', (text) => {
    expect(encodeUtf8(text)).toBe(null)
  })

  it('that is none is refused as the platform refuses it', () => {
    const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 8 }), (bytes) => {
        expect(decodeUtf8(bytes)).toBe(attempt(() => strict.decode(bytes)))
      }),
      {
        numRuns: 2_000,
        examples: [
          [Uint8Array.of(0xe0, 0x80, 0x80)],
          [Uint8Array.of(0xed, 0xa0, 0x80)],
          [Uint8Array.of(0xf4, 0x90, 0x80, 0x80)],
          [Uint8Array.of(0xc3)],
        ],
      },
    )
  })
})

function attempt(decode: () => string): string | null {
  try {
    return decode()
  } catch {
    return null
  }
}
