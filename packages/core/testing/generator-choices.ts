/**
 * Input of property tests: the numbers that a session generator uses instead of random numbers, and how often each test
 * runs.
 */

/**
 * A list of numbers that a generator reads instead of random numbers. A property-testing library can shrink the list,
 * and the same list always gives the same session.
 */
export class GeneratorChoices {
  readonly #numbers: readonly number[]
  #at = 0

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers
  }

  get isSpent(): boolean {
    return this.#at >= this.#numbers.length
  }

  /**
   * Takes the next number of the list, reduced to the range from 0 to `count - 1`. Returns 0 once the list is used up.
   */
  below(count: number): number {
    const number = this.#numbers[this.#at] ?? 0
    this.#at += 1
    return Math.abs(Math.trunc(number)) % Math.max(1, count)
  }

  /**
   * Takes the next number of the list and returns true in one of `count` cases. Returns false once the list is used up.
   */
  oneIn(count: number): boolean {
    return this.below(count) === 1 % count
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }
}

/** Creates a list of `length` pseudo-random numbers from a seed, for tests that use no property-testing library. */
export function createChoices(seed: number, length: number): GeneratorChoices {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const numbers = Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
    return state ^ (state >>> 13)
  })
  return new GeneratorChoices(numbers)
}

/** Returns a function that gives numbers from 0 to below 1; the same seed always gives the same numbers (mulberry32). */
export function createRandomNumbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

let share = 1

/**
 * Sets which share of its runs each property test makes from now on: 1 in `npm run test:full`, less in `npm test`. A
 * share above 1 makes more runs than usual.
 */
export function setPropertyRunShare(next: number): void {
  share = next
}

/**
 * Returns how many times a property test runs: `full` times in `npm run test:full`, otherwise a share of `full`, but at
 * least `least` times.
 */
export function countPropertyRuns(full: number, least = 10): number {
  return Math.max(Math.min(full, least), Math.ceil(full * share))
}

/** Returns true in `npm run test:full`. */
export function isFullRun(): boolean {
  return share >= 1
}

/** Returns all cases in `npm run test:full`, otherwise `count` of them, always the same ones, spread over the list. */
export function sampleCases<T>(cases: readonly T[], count: number): readonly T[] {
  if (isFullRun() || cases.length <= count) return cases
  return cases.filter(
    (_, index) =>
      Math.floor((index * count) / cases.length) !== Math.floor(((index + 1) * count) / cases.length),
  )
}
