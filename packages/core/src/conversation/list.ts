/**
 * A list that only grows, as a value. `push` gives a longer list and leaves the shorter one as it was; both
 * share one array, so a push costs the same at ten and at ten thousand items. Pushing onto a list that
 * already has a successor copies it.
 */
export class List<T> implements Iterable<T> {
  readonly length: number
  readonly #items: T[]

  private constructor(items: T[], length: number) {
    this.#items = items
    this.length = length
  }

  static of<T>(items: Iterable<T> = []): List<T> {
    const own = [...items]
    return new List(own, own.length)
  }

  at(index: number): T | undefined {
    const from = index < 0 ? this.length + index : index
    return from < this.length ? this.#items[from] : undefined
  }

  get last(): T | undefined {
    return this.at(-1)
  }

  push(item: T): List<T> {
    const items = this.#items.length === this.length ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new List(items, items.length)
  }

  /** This list grew out of `other` by pushes alone, so the first `other.length` items are the same. */
  extends(other: List<T>): boolean {
    return other.length === 0 || (this.#items === other.#items && this.length >= other.length)
  }

  toArray(from = 0, to: number = this.length): T[] {
    return this.#items.slice(from, Math.min(to, this.length))
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = 0; index < this.length; index += 1) yield this.#items[index] as T
  }
}
