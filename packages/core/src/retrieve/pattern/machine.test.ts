import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { patternFinder, textFinder } from '../../history/search.ts'

function found(pattern: string, line: string): boolean | string {
  const finder = patternFinder(pattern)
  return typeof finder === 'string' ? finder : finder.isIn(line)
}

describe('a pattern', () => {
  it.each([
    ['error', 'An ERROR here', true],
    ['^error', 'an error', false],
    ['error$', 'an Error', true],
    ['e.r', 'eer', true],
    ['colou?r', 'color', true],
    ['(ab)+c', 'xababc', true],
    ['a{2,3}b', 'ab', false],
    ['a{2,3}b', 'aaab', true],
    ['a{2}', 'a', false],
    ['a{,2}', 'a{,2}', true],
    ['[^0-9]', '123', false],
    ['[A-F]+x', 'beefX', true],
    ['[]a]', ']', true],
    ['\\d+\\.\\d', 'v1.2', true],
    ['\\bfoo\\b', 'a foo.', true],
    ['\\bfoo\\b', 'afoo', false],
    ['a|b|', '', true],
    ['(?:x|y)z', 'yz', true],
    ['(?<name>x)z', 'xz', true],
    ['(a*)*b', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', false],
    ['\\S+@\\S+', 'mail me@here', true],
  ])('%s in %j: %s', (pattern, line, expected) => {
    expect(found(pattern, line)).toBe(expected)
  })

  it.each([
    ['(', 'a ( has no ) to it'],
    [')', 'there is a ) too many'],
    ['[a', 'a [ has no ] to it'],
    ['*a', 'nothing stands before *'],
    ['(?=a)', 'looking ahead or back is not offered'],
    ['(?<!a)', 'looking ahead or back is not offered'],
    ['(?', '(? must be followed by :'],
    ['(a)\\1', '\\1 is not offered'],
    ['a{3,2}', '{3,2} is no number of times from 0 to 200'],
    ['(a{200}){200}', 'it is too large'],
    ['[z-a]', 'z- is no range'],
    ['a\\', 'it ends in a \\'],
    ['('.repeat(60) + ')'.repeat(60), 'groups are nested too deep'],
  ])('%s is refused in words', (pattern, why) => {
    expect(found(pattern, '')).toBe(`The pattern cannot be used: ${why}. Give plain words as "text" instead.`)
  })

  it('finds what the platform finds', () => {
    const atom = fc.constantFrom(
      'a',
      'b',
      '.',
      '[ab]',
      '[^a]',
      '\\w',
      '\\d',
      '\\s',
      'A',
      '-',
      '\\b',
      '^',
      '$',
      '',
    )
    const pattern = fc.letrec<{ node: string }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        atom,
        fc.tuple(tie('node'), tie('node')).map(([one, other]) => one + other),
        fc.tuple(tie('node'), tie('node')).map(([one, other]) => `(${one}|${other})`),
        fc
          .tuple(tie('node'), fc.constantFrom('*', '+', '?', '{2}', '{0,2}', '{1,}', '*?'))
          .map(([one, sign]) => `(?:${one})${sign}`),
      ),
    })).node
    const line = fc.string({ unit: fc.constantFrom('a', 'b', 'B', '1', ' ', '-', '_'), maxLength: 12 })
    fc.assert(
      fc.property(pattern, line, (given, text) => {
        expect(found(given, text)).toBe(new RegExp(given, 'i').test(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('that would take a backtracking matcher for ever takes its states times the length', () => {
    expect(found('(a|a)*(a|aa)+(a*)*$!', 'a'.repeat(5_000))).toBe(false)
  })
})

it('plain words are found in any case', () => {
  expect([textFinder('Naïve (x').isIn('a NAÏVE (X)'), textFinder('b').isIn('a')]).toEqual([true, false])
})
