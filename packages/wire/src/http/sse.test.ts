import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeSseBytes,
  decodeSseText,
  encodeSseFrame,
  finishSse,
  initialSseState,
  type SseFrame,
  type SseRemainder,
} from './sse.ts'

/** Returns the data of one line, decoded from chunks of bytes. The bytes must not contain a line ending. */
function decode(chunks: readonly Uint8Array[]): string {
  let [state] = decodeSseText(initialSseState, 'data: ')
  for (const chunk of chunks) [state] = decodeSseBytes(state, chunk)
  return finishSse(state).rest?.data ?? ''
}

const platform = new TextDecoder('utf-8', { ignoreBOM: true })

/** Bytes that are likely to form almost valid UTF-8: lead and continuation bytes at the edges of their ranges. */
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

describe('bytes', () => {
  it('are decoded as by the platform, broken bytes included', () => {
    fc.assert(
      fc.property(nearly, (numbers) => {
        const bytes = Uint8Array.from(numbers)
        expect(decode([bytes])).toBe(platform.decode(bytes))
      }),
      { numRuns: 2000 },
    )
  })

  it('give the same text byte by byte', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nearly.map((numbers) => Uint8Array.from(numbers)),
          fc.uint8Array().map((bytes) => bytes.filter((byte) => byte !== 0x0a && byte !== 0x0d)),
        ),
        (bytes) => {
          expect(decode([...bytes].map((byte) => Uint8Array.of(byte)))).toBe(platform.decode(bytes))
        },
      ),
    )
  })

  it('decodes a long text', () => {
    const text = 'naïve 漢字 👩‍👩‍👧\u{10ffff}\ufeff'.repeat(20_000)
    const bytes = new TextEncoder().encode(text)
    expect(decode([bytes])).toBe(text)
    expect(decode([bytes.slice(0, 3), bytes.slice(3)])).toBe(text)
  })

  it.each([
    ['between characters', [0x41], { rest: { data: 'A' }, cutCharacter: false }],
    ['after one byte of two', [0x41, 0xc3], { rest: { data: 'A\ufffd' }, cutCharacter: true }],
    ['after three bytes of four', [0xf0, 0x9f, 0x91], { rest: { data: '\ufffd' }, cutCharacter: true }],
    ['after broken bytes', [0xe0, 0x80], { rest: { data: '\ufffd\ufffd' }, cutCharacter: false }],
  ])('report an end %s', (_, bytes, end) => {
    const [state] = decodeSseText(initialSseState, 'data: ')
    expect(finishSse(decodeSseBytes(state, Uint8Array.from(bytes))[0])).toEqual(end)
  })
})

function decodeSse2(pieces: readonly string[]): {
  readonly frames: readonly SseFrame[]
  readonly end: SseRemainder
} {
  let state = initialSseState
  const frames: SseFrame[] = []
  for (const piece of pieces) {
    const [next, news] = decodeSseText(state, piece)
    state = next
    frames.push(...news)
  }
  return { frames, end: finishSse(state) }
}

const CLEAN: SseRemainder = { rest: null, cutCharacter: false }

describe('decodeSseText', () => {
  it.each<[string, string, readonly SseFrame[]]>([
    ['a named frame', 'event: ping\ndata: {}\n\n', [{ event: 'ping', data: '{}' }]],
    ['no space after the colon', 'event:ping\ndata:{}\n\n', [{ event: 'ping', data: '{}' }]],
    ['only the first space', 'data:  two\n\n', [{ data: ' two' }]],
    ['lines joined', 'data: a\ndata\ndata: b\n\n', [{ data: 'a\n\nb' }]],
    ['CRLF', 'event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n', [{ event: 'a', data: '1' }, { data: '2' }]],
    ['CR', 'data: 1\r\rdata: 2\r\r', [{ data: '1' }, { data: '2' }]],
    ['mixed ends', 'data: 1\r\n\ndata: 2\n\r\n', [{ data: '1' }, { data: '2' }]],
    ['comments', ': hello\ndata: 1\n: again\ndata: 2\n\n:\n\n', [{ data: '1\n2' }]],
    ['one byte order mark', '\ufeffdata: 1\n\n\ufeffdata: 2\n\n', [{ data: '1' }]],
    ['the last event name', 'event: a\nevent: b\ndata: 1\n\n', [{ event: 'b', data: '1' }]],
    ['a name without data', 'event: ping\n\n', [{ event: 'ping', data: '' }]],
    ['empty data', 'data\n\n', [{ data: '' }]],
    ['id and retry', 'id: 7\nretry: 1500\ndata: x\n\n', [{ data: 'x', id: '7', retry: 1500 }]],
    ['retry that is no number, id with NUL', 'id: a\0\nretry: soon\ndata: x\n\n', [{ data: 'x' }]],
    ['unknown fields and blank lines', '\n\nfoo: bar\n\ndata: x\n\n\n', [{ data: 'x' }]],
  ])('reads %s', (_, text, frames) => {
    expect(decodeSse2([text])).toEqual({ frames, end: CLEAN })
    expect(decodeSse2([...text])).toEqual({ frames, end: CLEAN })
  })

  it('returns a frame as soon as its blank line is read', () => {
    const [state, frames] = decodeSseText(initialSseState, 'data: 1\r\n\r')
    expect(frames).toEqual([{ data: '1' }])
    expect(decodeSseText(state, '\ndata: 2\n\n')[1]).toEqual([{ data: '2' }])
  })
})

describe('endSse', () => {
  it.each<[string, SseRemainder]>([
    ['data: 1\n\n', CLEAN],
    ['data: 1\n', { rest: { data: '1' }, cutCharacter: false }],
    ['event: a\ndata: {"x', { rest: { event: 'a', data: '{"x' }, cutCharacter: false }],
    ['dat', CLEAN],
    [': comment', CLEAN],
  ])('returns what is left of %j', (text, end) => {
    expect(decodeSse2([text]).end).toEqual(end)
  })

  it('reports a character cut in the middle', () => {
    const bytes = new TextEncoder().encode('data: é').subarray(0, -1)
    const [state, frames] = decodeSseBytes(initialSseState, bytes)
    expect([frames, finishSse(state)]).toEqual([[], { rest: { data: '\ufffd' }, cutCharacter: true }])
  })
})

const line = fc.string({ unit: 'binary' }).map((text) => text.replace(/[\r\n\0]/g, ''))
const frame: fc.Arbitrary<SseFrame> = fc.record(
  {
    event: line.filter((text) => text !== ''),
    data: fc.array(line).map((lines) => lines.join('\n')),
    id: line,
    retry: fc.nat(),
  },
  { requiredKeys: ['data'] },
)

describe('encodeFrame', () => {
  it('writes what is read back', () => {
    fc.assert(
      fc.property(fc.array(frame), (frames) => {
        const text = frames.map((each) => `${encodeSseFrame(each)}: alive\n\n`).join('')
        expect(decodeSse2([text])).toEqual({ frames, end: CLEAN })
      }),
    )
  })

  it('keeps a name with a newline in its line', () => {
    expect(encodeSseFrame({ event: 'a\ndata: b', data: 'c' })).toBe('event: a data: b\ndata: c\n\n')
  })
})
