/** Creates filler text of any size. The same seed gives the same text, which includes some characters beyond ASCII. */
import { createSeededRandom } from '../protocol/clock-and-ids.ts'
import { BYTES_PER_TOKEN } from '../protocol/tokenizer.ts'

const SUBJECTS = [
  'The limit',
  'This module',
  'The café fixture',
  'The reader',
  'Its caller',
  'The naïve version',
  'The test',
  'A second look',
]
const VERBS = ['keeps', 'moves', 'checks', 'needs', 'reads', 'explains', 'repeats', 'narrows']
const OBJECTS = [
  'the value at its edge',
  'what the caller passed → nothing more',
  'an order that arrives late',
  'the total before rounding',
  'one case we had not covered',
  'the same path twice',
  'the result of the last run',
  'the name that people know',
]

type RandomSource = () => number

function pickOne<T>(random: RandomSource, choices: readonly [T, ...T[]] | readonly T[]): T {
  const chosen = choices[Math.floor(random() * choices.length)]
  if (chosen === undefined) throw new RangeError('There is nothing to pick from.')
  return chosen
}

export function createSentence(random: RandomSource): string {
  return `${pickOne(random, SUBJECTS)} ${pickOne(random, VERBS)} ${pickOne(random, OBJECTS)}.`
}

/** Creates whole sentences of at least `tokens` tokens, as the simulator counts them; empty for 0. */
export function createFillerText(seed: string | RandomSource, tokens: number): string {
  const random = typeof seed === 'string' ? createSeededRandom(seed) : seed
  const sentences: string[] = []
  for (let bytes = 0; bytes < tokens * BYTES_PER_TOKEN; ) {
    const next = createSentence(random)
    sentences.push(next)
    bytes += Buffer.byteLength(next) + 1
  }
  return sentences.join(' ')
}
