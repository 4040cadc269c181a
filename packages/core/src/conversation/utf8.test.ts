import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonBytes, utf8Length } from './utf8.ts'

const encoder = new TextEncoder()

describe('utf8Length', () => {
  it.each([
    ['', 0],
    ['a', 1],
    ['\u007f', 1],
    ['\u0080', 2],
    ['\u07ff', 2],
    ['\u0800', 3],
    ['\uffff', 3],
    ['😀', 4],
    ['\ud83d', 3],
    ['\ude00', 3],
    ['\ud83d\ud83d\ude00', 7],
    ['a\ud83d', 4],
  ])('%j takes %i bytes', (text, bytes) => {
    expect(utf8Length(text)).toBe(bytes)
  })

  it('agrees with the platform on any string', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
    )
    fc.assert(
      fc.property(text, (value) => {
        expect(utf8Length(value)).toBe(encoder.encode(value).length)
      }),
    )
  })
})

describe('jsonBytes', () => {
  it('agrees with the platform on any JSON', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(jsonBytes(value)).toBe(encoder.encode(JSON.stringify(value)).length)
      }),
    )
  })

  it('says null where there is no JSON', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    expect([cycle, 1n, { deep: [2n] }].map(jsonBytes)).toEqual([null, null, null])
  })

  it('counts what is left out as the null that stands for it in a list', () => {
    expect(jsonBytes(undefined)).toBe(4)
  })
})
