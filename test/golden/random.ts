/** Seeded choices for the golden sessions: the same key gives the same choices on every machine. */
import { createHash } from 'node:crypto'
import { createRandomNumbers } from '@tidemark/core/testing'

export interface Random {
  /** From `least` to `most`, both included. */
  between(least: number, most: number): number
  chance(percent: number): boolean
  pick<T>(items: readonly [T, ...T[]]): T
  /** Text of about so many characters. */
  text(characters: number): string
}

const WORDS = (
  'order invoice total price cache parser route handler session token window login account search index ' +
  'the a of in to is was not and but when where because after before while each every'
).split(' ')

export function createRandom(key: string): Random {
  const next = createRandomNumbers(createHash('sha256').update(key).digest().readUInt32LE(0))
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    between,
    chance: (percent) => next() * 100 < percent,
    pick: (items) => items[between(0, items.length - 1)] ?? items[0],
    text(characters) {
      let text = ''
      while (text.length < characters) {
        const word = WORDS[between(0, WORDS.length - 1)]
        const end = next()
        text += `${word}${end < 0.06 ? '.\n' : end < 0.1 ? `_${between(1, 999)} ` : ' '}`
      }
      return text.slice(0, characters).trimEnd()
    },
  }
}
