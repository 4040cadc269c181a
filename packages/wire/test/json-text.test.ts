import {
  findJsonMember,
  findUnstableBlockTexts,
  findUnstableJsonText,
  formatJsonObject,
  parseJson,
  splitJsonArray,
  splitJsonObject,
  survivesJsonRoundTrip,
  withJsonMember,
} from '@tidemark/core/log/json'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonText } from './arbitrary.ts'

describe('survives', () => {
  it.each([
    ['{"b":1,"a":[true,null,"x"]}', true],
    [' { "b" : 1 ,\n"a" : [ ] } ', true],
    ['"\\u00e9\\/\\ud83d\\ude00"', true],
    ['"\\ud800"', true],
    ['{"__proto__":1}', true],
    ['{"b":1,"10":2}', false],
    ['{"10":2,"b":1}', true],
    ['{"10":1,"2":2}', false],
    ['{"a":1,"a":2}', false],
    ['9007199254740993', false],
    ['9007199254740991', true],
    ['1.0', false],
    ['1e3', false],
    ['-0', false],
    ['0.1', true],
    ['{', false],
  ])('%s: %s', (text, expected) => {
    expect(survivesJsonRoundTrip(text)).toBe(expected)
  })

  it('is the same rule as for lines of a log', () => {
    fc.assert(
      fc.property(jsonText, (text) => {
        const block = `{"type":"x","value":${text}}`
        const raw = findUnstableJsonText(block)
        expect(findUnstableBlockTexts(`{"message":{"content":[${block}]}}`)).toEqual(
          raw === undefined ? [] : [{ index: 0, text: raw }],
        )
      }),
      { numRuns: 500 },
    )
  })
})

describe('taking apart', () => {
  it('gives members in the order they were written, each of a duplicate', () => {
    expect(splitJsonObject(' {"10" : "a}\\"" , "2":[1, {"x":2}],"10":-1.50 } ')).toEqual([
      { key: '10', text: '"a}\\""' },
      { key: '2', text: '[1, {"x":2}]' },
      { key: '10', text: '-1.50' },
    ])
  })

  it('gives elements', () => {
    expect(splitJsonArray('[ 1 ,"]", [ ] ,{"a":[]}]')).toEqual(['1', '"]"', '[ ]', '{"a":[]}'])
    expect([splitJsonArray('[]'), splitJsonArray('[ ]')]).toEqual([[], []])
  })

  it('takes the last member of a name, as a parser does', () => {
    expect([findJsonMember('{"a":1,"a":2}', 'a'), findJsonMember('{}', 'a')]).toEqual(['2', undefined])
  })

  it('goes as deep as the text does', () => {
    const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
    expect(findJsonMember(`{"a":${deep},"b":1}`, 'b')).toBe('1')
  })

  it('keeps a replaced member once', () => {
    const members = splitJsonObject('{"a":1,"b":2,"a":3}')
    expect(formatJsonObject(withJsonMember(members, 'a', '4'))).toBe('{"b":2,"a":4}')
    expect(formatJsonObject(withJsonMember(members, 'c', '5'))).toBe('{"a":1,"b":2,"a":3,"c":5}')
  })
})

describe('readJson', () => {
  it('distinguishes null from invalid JSON', () => {
    expect([parseJson('null'), parseJson('nul')]).toEqual([null, undefined])
  })
})
