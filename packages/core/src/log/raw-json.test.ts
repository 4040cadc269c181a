import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { rawBlocksIn, survives } from './raw-json.ts'

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
    expect(rawBlocksIn(line(`{"type":"text","text":"a, ]}"},${text}`))).toEqual([{ index: 1, text }])
  })

  it('leaves alone what survives, whatever its white space and escapes', () => {
    expect(
      rawBlocksIn(line('{ "type" : "text", "text":"\\u0041\\/ \\"[{" } , {"type":"b","n":[1,-2.5,null]}')),
    ).toEqual([])
  })

  it('finds no blocks where there are none', () => {
    expect([
      rawBlocksIn('{"type":"user","message":{"content":"text"}}'),
      rawBlocksIn('{}'),
      rawBlocksIn('[1]'),
    ]).toEqual([[], [], []])
  })

  it('agrees with parse and stringify on every JSON value', () => {
    fc.assert(fc.property(fc.json(), (text) => survives(JSON.stringify(JSON.parse(text)))))
  })

  it('gives each block back from its text', () => {
    fc.assert(
      fc.property(fc.array(fc.json({ noUnicodeString: false })), (values) => {
        const blocks = values.map((value) => `{"type":"t","1":2,"v":${value},"0":1.50}`)
        expect(rawBlocksIn(line(blocks.join(' , ')))).toEqual(blocks.map((text, index) => ({ index, text })))
      }),
    )
  })
})
