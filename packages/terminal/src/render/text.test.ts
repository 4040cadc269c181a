import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  alignLeft,
  alignRight,
  cutTextEnd,
  cutTextStart,
  formatProjectName,
  measureTextWidth,
  toOneLinePreview,
  wrapMarkdownLine,
  wrapText,
} from './text.ts'

describe('the width of a text', () => {
  it.each([
    ['', 0],
    ['plain', 5],
    ['naïve café', 10],
    ['cafe\u0301', 4],
    ['日本語', 6],
    ['한국어', 6],
    ['ｆｕｌｌ', 8],
    ['👩‍💻', 2],
    ['❤️', 2],
    ['🇩🇪', 2],
    ['a\u200bb', 2],
    ['│─▁█', 4],
    ['\u001b[1mbold\u001b[22m', 4],
    ['\u001b[36m日本\u001b[39m', 4],
  ])('%j is %d', (text, width) => {
    expect(measureTextWidth(text)).toBe(width)
  })
})

describe('cut', () => {
  it.each([
    ['exactly', 7, 'exactly'],
    ['too long', 6, 'too l…'],
    ['日本語です', 7, '日本語…'],
    ['日本語です', 6, '日本…'],
    ['ab', 1, '…'],
    ['ab', 0, ''],
  ])('%j at its end to %d', (text, width, expected) => {
    expect(cutTextEnd(text, width)).toBe(expected)
  })

  it.each([
    ['src/login/route.ts', 11, '…n/route.ts'],
    ['route.ts', 11, 'route.ts'],
    ['資料/日本語.md', 9, '…本語.md'],
  ])('%j at its start to %d', (text, width, expected) => {
    expect(cutTextStart(text, width)).toBe(expected)
  })

  it('never takes more room than it is given', () => {
    const text = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(text, fc.nat({ max: 30 }), (given, width) => {
        for (const cut of [cutTextEnd, cutTextStart])
          expect(measureTextWidth(cut(given, width))).toBeLessThanOrEqual(width)
      }),
    )
  })
})

it('is filled up with blanks at either side, by what is seen of it', () => {
  expect([alignLeft('日本', 6), alignRight('日本', 6), alignLeft('longer', 3)]).toEqual([
    '日本  ',
    '  日本',
    'longer',
  ])
})

it.each([
  ['short', 20, '', ['short']],
  ['one two three four', 9, '', ['one two', 'three', 'four']],
  ['one two three', 9, '! ', ['! one two', '  three']],
  ['a-word-that-is-too-long b', 10, '', ['a-word-tha', 't-is-too-l', 'ong b']],
  ['', 10, '! ', ['! ']],
  // A path is never broken, so that it can be copied; a list mark stays beside it.
  ['see src/screen/draw-items.ts: read', 12, '', ['see', 'src/screen/draw-items.ts:', 'read']],
  ['- src/screen/draw-items.ts', 12, '  ', ['  - src/screen/draw-items.ts']],
])('%j in %d', (text, columns, mark, expected) => {
  expect(wrapText(text, columns, mark)).toEqual(expected)
})

it.each([
  ['> one two three four', 11, '  ', ['  > one two', '  > three', '  > four']],
  ['> > one two three', 11, '', ['> > one two', '> > three']],
  ['- one two three', 9, '', ['- one two', '  three']],
  ['12. one two three', 11, '', ['12. one two', '    three']],
  ['  - one two three', 11, '', ['  - one two', '    three']],
  ['> ', 10, '', ['> ']],
  ['one two three', 9, '  ', ['  one two', '  three']],
])('%j in %d is still a quotation or an item on every line', (text, columns, indent, expected) => {
  expect(wrapMarkdownLine(text, columns, indent)).toEqual(expected)
})

it.each([
  ['short', 10, 'short'],
  ['exactly ten', 11, 'exactly ten'],
  ['a longer text', 8, 'a longe…'],
  ['two\n  lines\tand tabs ', 40, 'two lines and tabs'],
  ['\u001b[2J\u001b]0;title\u0007gone\u009b1m', 40, '[2J ]0;title gone 1m'],
  ['👩‍💻👩‍💻', 2, '👩…'],
  ['text', 0, '…'],
])('%j in %d', (text, width, expected) => {
  expect(toOneLinePreview(text, width)).toBe(expected)
})

it.each([
  ['/home/user/tides', 'tides'],
  ['D:\\tides', 'tides'],
  ['/', '/'],
])('the project %s is called %s', (folder, name) => expect(formatProjectName(folder)).toBe(name))
