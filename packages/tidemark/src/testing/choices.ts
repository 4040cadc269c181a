/**
 * Choices as data: a list of numbers that a generator reads instead of throwing dice. A property-testing
 * library can shrink the list, and the same list always tells the same story.
 */
export class Choices {
  readonly #numbers: readonly number[]
  #at = 0

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers
  }

  get isSpent(): boolean {
    return this.#at >= this.#numbers.length
  }

  /** A whole number from 0 up to, not including, `count`; 0 once the list is spent. */
  below(count: number): number {
    const number = this.#numbers[this.#at] ?? 0
    this.#at += 1
    return Math.abs(Math.trunc(number)) % Math.max(1, count)
  }

  /** True in one of `count` cases. Spent choices say no. */
  oneIn(count: number): boolean {
    return this.below(count) === 1 % count
  }

  pick<T>(items: readonly [T, ...T[]]): T {
    return items[this.below(items.length)] ?? items[0]
  }
}

/** `length` numbers from a seed, for those who want a session without a property-testing library. */
export function choicesFrom(seed: number, length: number): Choices {
  let state = (seed ^ 0x9e3779b9) >>> 0
  const numbers = Array.from({ length }, () => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x6d2b79f5) >>> 0
    return state ^ (state >>> 13)
  })
  return new Choices(numbers)
}
