import { countPropertyRuns } from '@tidemark/core/testing'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  countJsonBytes,
  findNonJsonPath,
  findUnstableBlockTexts,
  isNestedTooDeep,
  MAX_JSON_DEPTH,
  survivesJsonRoundTrip,
} from './json.ts'

function lists(levels: number): unknown {
  return JSON.parse('['.repeat(levels) + ']'.repeat(levels))
}

function objects(levels: number): unknown {
  return JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
}

const cycle: Record<string, unknown> = {}
cycle.within = { itself: cycle }

describe('isTooDeep', () => {
  it.each([
    [1, false],
    [MAX_JSON_DEPTH, false],
    [MAX_JSON_DEPTH + 1, true],
    [20_000, true],
  ])('%i levels: %s', (levels, expected) => {
    expect([isNestedTooDeep(lists(levels)), isNestedTooDeep(objects(levels))]).toEqual([expected, expected])
  })

  it('counts levels of nesting, not values', () => {
    expect(isNestedTooDeep(Array.from({ length: 5_000 }, () => ({ a: [1] })))).toBe(false)
    expect([isNestedTooDeep(null), isNestedTooDeep('text'), isNestedTooDeep(undefined)]).toEqual([
      false,
      false,
      false,
    ])
  })

  it('is true for a value that contains itself', () => {
    expect(isNestedTooDeep(cycle)).toBe(true)
  })
})

describe('firstNonJson', () => {
  // biome-ignore lint/suspicious/noSparseArray: that is what is asked about
  const gap = [, 1]
  it.each<[string, unknown, string | null]>([
    ['an object', { a: [1, 'x', null, { b: false }] }, null],
    ['an object without prototype', Object.assign(Object.create(null), { a: 1 }), null],
    ['an own key named __proto__', JSON.parse('{"__proto__":[1]}'), null],
    ['undefined', { a: [1, undefined] }, 'a.1'],
    ['NaN', { a: { b: Number.NaN } }, 'a.b'],
    ['a Date', new Date(0), '(value)'],
    ['a cycle', cycle, 'within.itself'],
    ['a gap in a list', { a: gap }, 'a.0'],
    ['a list of gaps', { a: new Array(3) }, 'a.0'],
    ['a list with a field of its own', { a: Object.assign([1], { extra: 1 }) }, 'a'],
    ['a gap that a field makes up for', Object.assign(gap.slice(), { extra: 1 }), '0'],
    ['as many levels as may be', lists(MAX_JSON_DEPTH), null],
  ])('of %s', (_name, value, expected) => {
    expect(findNonJsonPath(value)).toBe(expected)
  })

  it('returns a path in a value nested too deeply, however deep it is', () => {
    for (const levels of [MAX_JSON_DEPTH + 1, 20_000])
      expect(findNonJsonPath(lists(levels))).toBe(Array.from({ length: MAX_JSON_DEPTH }, () => '0').join('.'))
  })

  it('accepts exactly the values that a JSON round trip does not change', () => {
    fc.assert(
      fc.property(fc.anything({ withSparseArray: true, withNullPrototype: true }), (value) => {
        if (findNonJsonPath(value) === null)
          expect(JSON.parse(JSON.stringify(value))).toEqual(withoutMinus(value))
      }),
      { numRuns: countPropertyRuns(1000, 150) },
    )
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(findNonJsonPath(value)).toBe(null)
      }),
    )
  })
})

/** -0 is the only accepted value that JSON changes. */
function withoutMinus(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutMinus)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutMinus(item)]))
}

describe('jsonBytes', () => {
  it.each([
    ['a', 3],
    ['\u0080', 4],
    ['\u0800', 5],
    ['😀', 6],
    [{ text: '€' }, 14],
  ])('counts UTF-8: %j takes %i bytes', (value, bytes) => {
    expect(countJsonBytes(value)).toBe(bytes)
  })

  it('is null for a value without JSON', () => {
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    expect([cycle, 1n, { deep: [2n] }].map(countJsonBytes)).toEqual([null, null, null])
  })

  it('counts undefined as null', () => {
    expect(countJsonBytes(undefined)).toBe(4)
  })
})

const line = (blocks: string): string =>
  `{"type":"assistant", "message" : {"id":"m","content":[ ${blocks} ]} , "x":1}`

describe('rawBlocksIn', () => {
  it.each([
    ['integer-like keys', '{"type":"a","input":{"b":1,"1":2}}'],
    ['integers over 2^53', '{"type":"a","n":9007199254740993}'],
    ['a decimal written out', '{"type":"a","n":1.0}'],
    ['an exponent', '{"type":"a","n":1e3}'],
    ['duplicate keys', '{"type":"a","k":1,"k":1}'],
  ])('keeps the text of a block with %s', (_, text) => {
    expect(findUnstableBlockTexts(line(`{"type":"text","text":"a, ]}"},${text}`))).toEqual([
      { index: 1, text },
    ])
  })

  it('ignores blocks that survive, whatever their white space and escapes', () => {
    expect(
      findUnstableBlockTexts(
        line('{ "type" : "text", "text":"\\u0041\\/ \\"[{" } , {"type":"b","n":[1,-2.5,null]}'),
      ),
    ).toEqual([])
  })

  it('finds nothing in a line without blocks', () => {
    expect([
      findUnstableBlockTexts('{"type":"user","message":{"content":"text"}}'),
      findUnstableBlockTexts('{}'),
      findUnstableBlockTexts('[1]'),
    ]).toEqual([[], [], []])
  })

  it('agrees with parse and stringify on every JSON value', () => {
    fc.assert(fc.property(fc.json(), (text) => survivesJsonRoundTrip(JSON.stringify(JSON.parse(text)))))
  })

  it('returns the text of each block', () => {
    fc.assert(
      fc.property(fc.array(fc.json({ noUnicodeString: false })), (values) => {
        const blocks = values.map((value) => `{"type":"t","1":2,"v":${value},"0":1.50}`)
        expect(findUnstableBlockTexts(line(blocks.join(' , ')))).toEqual(
          blocks.map((text, index) => ({ index, text })),
        )
      }),
    )
  })
})
