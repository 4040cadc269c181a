import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CHARACTER_CLASSES, type CharacterClass, countCharacterClasses } from './estimator.ts'

type Counted = Partial<Record<CharacterClass, readonly [characters: number, runs: number]>>

/** The classes that occur, each with its characters and runs. */
function counted(text: string): Counted {
  const counts = countCharacterClasses(text)
  const classes = CHARACTER_CLASSES.map((name, index) => {
    const pair = [counts[index] ?? 0, counts[CHARACTER_CLASSES.length + index] ?? 0] as const
    return [name, pair] as const
  })
  return Object.fromEntries(classes.filter(([, [characters]]) => characters > 0))
}

describe('countCharacters', () => {
  it.each<[string, string, Counted]>([
    ['nothing', '', {}],
    ['words', 'two words', { lower: [8, 2], space: [1, 1] }],
    ['a name in camel case', 'getURLFor2', { lower: [5, 2], upper: [4, 1], digit: [1, 1] }],
    ['indented lines', 'a\n\n  b\r\n', { lower: [2, 2], newline: [4, 2], space: [2, 1] }],
    ['tabs and controls', 'x\t\0\x7f', { lower: [1, 1], space: [3, 1] }],
    ['punctuation', 'f(x)=>{};', { lower: [2, 2], punctuation: [7, 2] }],
    ['JSON in JSON', '{\\"a\\"}', { punctuation: [4, 3], escape: [2, 2], lower: [1, 1] }],
    ['other alphabets', 'да é', { letter: [3, 2], space: [1, 1] }],
    ['symbols', '→──', { symbol: [3, 1] }],
    ['wide characters, and emoji as two halves', '漢字🙂', { wide: [4, 1] }],
  ])('%s', (_, text, classes) => {
    expect(counted(text)).toEqual(classes)
  })

  it('adds to earlier counts', () => {
    expect(countCharacterClasses('b', countCharacterClasses('a'))).toEqual(
      countCharacterClasses('a').map((count) => 2 * count),
    )
  })

  it('puts every character into one class, and appending never lowers a count', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (text, more) => {
        const before = countCharacterClasses(text)
        const after = countCharacterClasses(text + more)
        const characters = after.slice(0, CHARACTER_CLASSES.length).reduce((sum, count) => sum + count, 0)
        expect(characters).toBe((text + more).length)
        expect(after.every((count, index) => count >= (before[index] ?? 0))).toBe(true)
      }),
    )
  })
})
