import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OpenFile } from '../files/file-port.ts'
import { type LinesEnd, readLines } from './read-lines.ts'

/** A file that gives at most `most` bytes at a time. */
function fileOf(bytes: Uint8Array, most: number): OpenFile {
  return {
    async read(into, position) {
      const piece = bytes.subarray(position, position + Math.min(into.length, most))
      into.set(piece)
      return piece.length
    },
    append: async () => 0,
    sync: async () => {},
    facts: async () => ({ kind: 'file', sizeBytes: bytes.length, modifiedMs: 0, identity: '' }),
    close: async () => {},
  }
}

interface Read extends LinesEnd {
  readonly lines: readonly string[]
  readonly flaws: readonly string[]
}

async function read(
  bytes: Uint8Array,
  { most = 1 << 30, limit = Number.POSITIVE_INFINITY } = {},
): Promise<Read> {
  const lines: string[] = []
  const flaws: string[] = []
  const end = await readLines(fileOf(bytes, most), limit, {
    line: (text) => lines.push(text),
    flaw: (why) => flaws.push(`${lines.length + 1}: ${why}`),
    piece: () => {},
  })
  return { lines, flaws, ...end }
}

describe('readLines', () => {
  it('gives the same lines however the bytes come in', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '\n', '\r\n', 'é', '漢', '🙂', '\0', '\uFFFD'),
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 7 }), async (whole, most) => {
        const bytes = Buffer.from(whole)
        const lines = whole.split('\n')
        expect(await read(bytes, { most })).toEqual({
          lines: lines.slice(0, -1),
          rest: lines.at(-1),
          flaws: [],
          sizeBytes: bytes.length,
          endsInNewline: whole === '' || whole.endsWith('\n'),
        })
      }),
    )
  })

  it('stops at the limit', async () => {
    const { lines, rest, sizeBytes, endsInNewline } = await read(Buffer.from('one\ntwo\nthree\n'), {
      limit: 6,
    })
    expect({ lines, rest, sizeBytes, endsInNewline }).toEqual({
      lines: ['one'],
      rest: 'tw',
      sizeBytes: 6,
      endsInNewline: false,
    })
  })

  it('gives lines longer than a piece', async () => {
    const long = 'x'.repeat(3_500_000)
    const { lines, rest } = await read(Buffer.from(`${long}\nshort\n${long}`))
    expect(lines.map((line) => line.length)).toEqual([3_500_000, 5])
    expect(rest).toBe(long)
  })

  it('says which line has bytes that are not UTF-8, and gives it all the same', async () => {
    const bytes = Buffer.concat([Buffer.from('a\n"'), Buffer.from([0xff]), Buffer.from('"\n\uFFFD\n')])
    const { lines, flaws } = await read(bytes)
    expect(lines).toEqual(['a', '"\uFFFD"', '\uFFFD'])
    expect(flaws).toEqual(['2: the line has bytes that are not UTF-8; each was read as U+FFFD'])
  })
})
