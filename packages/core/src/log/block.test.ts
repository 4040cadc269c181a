import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readImageSize } from './image-size.ts'

const encoded = (...parts: readonly (string | readonly number[])[]): string =>
  Buffer.concat(
    parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))),
  ).toString('base64')

const png = (width: readonly number[], height: readonly number[]): string =>
  encoded('\x89PNG\r\n\x1a\n', [0, 0, 0, 13], 'IHDR', width, height, [8, 6, 0, 0, 0])

describe('imageSize', () => {
  it.each<[string, string, unknown]>([
    ['a PNG', png([0, 0, 8, 0], [0, 1, 0, 1]), { width: 2048, height: 65537 }],
    ['a GIF', encoded('GIF89a', [0x34, 0x12, 0x02, 0x00]), { width: 0x1234, height: 2 }],
    [
      'a lossy WebP',
      encoded(
        'RIFF',
        [0, 0, 0, 0],
        'WEBPVP8 ',
        [0, 0, 0, 0, 0, 0, 0, 0x9d, 0x01, 0x2a, 0x40, 0x41, 0xf0, 0x00],
      ),
      { width: 0x140, height: 240 },
    ],
    [
      'a lossless WebP',
      encoded('RIFF', [0, 0, 0, 0], 'WEBPVP8L', [0, 0, 0, 0, 0x2f, 0xff, 0xc0, 0x02, 0x00]),
      { width: 256, height: 12 },
    ],
    [
      'an extended WebP',
      encoded('RIFF', [0, 0, 0, 0], 'WEBPVP8X', [10, 0, 0, 0, 0, 0, 0, 0, 0xcf, 0x07, 0, 0x0f, 0x27, 0]),
      { width: 2000, height: 10_000 },
    ],
    [
      'a JPEG behind a comment, padding and a marker without a body',
      encoded([
        0xff, 0xd8, 0xff, 0xfe, 0, 4, 1, 2, 0xff, 0x01, 0xff, 0xff, 0xc2, 0, 17, 8, 0x02, 0x00, 0x03, 0x00,
      ]),
      { width: 768, height: 512 },
    ],
    ['a JPEG cut off before its frame', encoded([0xff, 0xd8, 0xff, 0xe0, 0, 16]), null],
    ['a JPEG cut off within a length', encoded([0xff, 0xd8, 0xff, 0xe0]), null],
    ['a PNG cut off', png([0, 0], []).slice(0, 20), null],
    ['a PNG of no width', png([0, 0, 0, 0], [0, 0, 0, 1]), null],
    ['a text', encoded('hello, world, this is no picture'), null],
    ['nothing', '', null],
    ['no base64', '§§§§', null],
  ])('%s', (_, base64, size) => {
    expect(readImageSize(base64)).toEqual(size)
  })

  it('terminates on any input', () => {
    const heads = fc.constantFrom(
      [0xff, 0xd8],
      [0x89, 0x50, 0x4e, 0x47, 13, 10, 26, 10],
      [0x47, 0x49, 0x46, 0x38],
      [],
    )
    fc.assert(
      fc.property(heads, fc.uint8Array({ maxLength: 80 }), (head, rest) => {
        const size = readImageSize(encoded(head, [...rest]))
        expect(size === null || (size.width > 0 && size.height > 0)).toBe(true)
      }),
    )
  })
})
