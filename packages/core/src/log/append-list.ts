/**
 * A list that only grows, as a value. `push` gives a longer list and leaves the shorter one as it was; both
 * share one array, so a push costs the same at ten and at ten thousand items. Pushing onto a list that
 * already has a successor copies it.
 */
export class List<T> implements Iterable<T> {
  readonly length: number
  readonly #items: T[]
  readonly #line: Line

  private constructor(items: T[], line: Line) {
    this.#items = items
    this.#line = line
    this.length = items.length
  }

  static of<T>(items: Iterable<T> = []): List<T> {
    return new List([...items], { from: null, shared: 0 })
  }

  at(index: number): T | undefined {
    const from = index < 0 ? this.length + index : index
    return from < this.length ? this.#items[from] : undefined
  }

  get last(): T | undefined {
    return this.at(-1)
  }

  push(item: T): List<T> {
    const isFree = this.#items.length === this.length
    const items = isFree ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new List(items, isFree ? this.#line : { from: this.#line, shared: this.length })
  }

  /**
   * This list grew out of `other` by pushes alone, so the first `other.length` items are the same. That other
   * lists grew out of it too makes no difference: one that was only tried out leaves the real one an heir.
   */
  extends(other: List<T>): boolean {
    if (other.length === 0) return true
    let [line, shared]: [Line | null, number] = [this.#line, this.length]
    for (; line !== null && line !== other.#line; line = line.from) shared = Math.min(shared, line.shared)
    return line !== null && other.length <= shared
  }

  toArray(from = 0, to: number = this.length): T[] {
    return this.#items.slice(from, Math.min(to, this.length))
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let index = 0; index < this.length; index += 1) yield this.#items[index] as T
  }
}

/** The identity of an array: what it was copied from, and how many items of that. */
interface Line {
  readonly from: Line | null
  readonly shared: number
}
