import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OpenFile } from './file-system.ts'
import { createLineSplitter, type LinesEnd, readLines, type SplitLine } from './split-lines.ts'

/** A file that returns at most `most` bytes per read. */
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
  readonly lines: readonly SplitLine[]
}

async function read(
  bytes: Uint8Array,
  { most = 1 << 30, limit = Number.POSITIVE_INFINITY } = {},
): Promise<Read> {
  const lines: SplitLine[] = []
  const end = await readLines(fileOf(bytes, most), limit, (read) => lines.push(...read))
  return { lines, ...end }
}

const plain = (text: string): SplitLine => ({ text, problem: null })

describe('readLines', () => {
  it('gives the same lines however the bytes arrive', async () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '\n', '\r\n', 'é', '漢', '🙂', '\0', '\uFFFD'),
      maxLength: 60,
    })
    await fc.assert(
      fc.asyncProperty(text, fc.integer({ min: 1, max: 7 }), async (whole, most) => {
        const bytes = Buffer.from(whole)
        const lines = whole.split('\n')
        expect(await read(bytes, { most })).toEqual({
          lines: lines.slice(0, -1).map(plain),
          rest: plain(lines.at(-1) ?? ''),
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
      lines: [plain('one')],
      rest: plain('tw'),
      sizeBytes: 6,
      endsInNewline: false,
    })
  })

  it('reads lines longer than a chunk', async () => {
    const long = 'x'.repeat(3_500_000)
    const { lines, rest } = await read(Buffer.from(`${long}\nshort\n${long}`))
    expect(lines.map(({ text }) => text.length)).toEqual([3_500_000, 5])
    expect(rest).toEqual(plain(long))
  })

  it('says which line has bytes that are not UTF-8, and still gives its text', async () => {
    const bytes = Buffer.concat([Buffer.from('a\n"'), Buffer.from([0xff]), Buffer.from('"\n\uFFFD\n')])
    expect((await read(bytes)).lines).toEqual([
      plain('a'),
      { text: '"\uFFFD"', problem: 'the line has bytes that are not UTF-8; each was read as U+FFFD' },
      plain('\uFFFD'),
    ])
  })
})

function split(pieces: readonly Uint8Array[], maxLineBytes = 100): readonly SplitLine[] {
  const splitter = createLineSplitter(maxLineBytes)
  const lines = pieces.flatMap((piece) => {
    // The reader reuses one buffer.
    const shared = Buffer.from(piece)
    const given = splitter.push(shared)
    shared.fill(0)
    return given
  })
  return [...lines, splitter.end()]
}

describe('bytes to lines', () => {
  it('gives the same lines wherever the bytes are cut', () => {
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
  ])('a line that is too long is left out, whether it comes %s', (_, pieces) => {
    expect(
      split(
        pieces.map((piece) => Buffer.from(piece)),
        5,
      ),
    ).toEqual([
      { text: '', problem: 'the line is 6 bytes long, more than the 5 that are allowed; it is left out' },
      plain('b'),
      plain(''),
    ])
  })

  it('a line that is too long and has no end is left out as well', () => {
    expect(split([Buffer.from('b\n'), ...Array.from({ length: 9 }, () => Buffer.from('aaaa'))], 5)).toEqual([
      plain('b'),
      { text: '', problem: 'the line is 36 bytes long, more than the 5 that are allowed; it is left out' },
    ])
  })

  it('bytes that are not UTF-8 are reported; U+FFFD itself is not', () => {
    expect(split([Buffer.from([0x61, 0xff, 0x0a]), Buffer.from('\uFFFD\n')])).toEqual([
      { text: 'a\uFFFD', problem: 'the line has bytes that are not UTF-8; each was read as U+FFFD' },
      plain('\uFFFD'),
      plain(''),
    ])
  })
})
