/**
 * Persistent collections: an update returns a new collection and leaves the old one unchanged. An update costs about
 * the same for every size, so a long session stays as fast as a short one.
 */

/**
 * An append-only list. `push` returns a longer list that shares the array of the shorter one. Pushing onto a list that
 * was already extended copies its array.
 */
export class AppendList<T> implements Iterable<T> {
  readonly length: number
  readonly #items: T[]
  readonly #line: SharedArray

  private constructor(items: T[], line: SharedArray) {
    this.#items = items
    this.#line = line
    this.length = items.length
  }

  static of<T>(items: Iterable<T> = []): AppendList<T> {
    return new AppendList([...items], { from: null, shared: 0 })
  }

  at(index: number): T | undefined {
    const from = index < 0 ? this.length + index : index
    return from < this.length ? this.#items[from] : undefined
  }

  get last(): T | undefined {
    return this.at(-1)
  }

  push(item: T): AppendList<T> {
    const isFree = this.#items.length === this.length
    const items = isFree ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new AppendList(items, isFree ? this.#line : { from: this.#line, shared: this.length })
  }

  /**
   * Returns true if this list was made from `other` by pushes alone, so that its first `other.length` items are the
   * same. Other lists that were made from `other` do not change the result.
   */
  extends(other: AppendList<T>): boolean {
    if (other.length === 0) return true
    let [line, shared]: [SharedArray | null, number] = [this.#line, this.length]
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

/** Identity of a list's array: the array it was copied from, and how many items were copied. */
interface SharedArray {
  readonly from: SharedArray | null
  readonly shared: number
}

/**
 * A map with string keys, in layers. Versions that extend each other share the native map of their layer, and each sees
 * the entries set before it was made. Extending a version a second time starts a new layer and copies no large one.
 */
export class PersistentMap<V> {
  readonly #below: PersistentMap<V> | null
  readonly #layer: Map<string, OrderedEntry<V>>
  /** Number of entries of the layer that this version sees. */
  readonly #size: number

  private constructor(layer: Map<string, OrderedEntry<V>>, below: PersistentMap<V> | null) {
    this.#layer = layer
    this.#size = layer.size
    this.#below = below
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(new Map(), null)
  }

  get(key: string): V | undefined {
    const entry = this.#layer.get(key)
    return entry !== undefined && entry.order < this.#size ? entry.value : this.#below?.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  set(key: string, value: V): PersistentMap<V> {
    const isFree = this.#layer.size === this.#size && !this.#layer.has(key)
    const layer = isFree ? this.#layer : new Map<string, OrderedEntry<V>>()
    layer.set(key, { value, order: layer.size })
    return new PersistentMap(layer, isFree ? this.#below : this.#mergeLayers())
  }

  /** Returns a map with this value for the key, or this map if the key already has a value. */
  setIfAbsent(key: string, value: V): PersistentMap<V> {
    return this.has(key) ? this : this.set(key, value)
  }

  *[Symbol.iterator](): Iterator<readonly [string, V]> {
    const own = this.#listLayer().map(([key, { value }]) => [key, value] as const)
    yield* new Map([...(this.#below ?? []), ...own])
  }

  /** Merges layers until each is less than half as large as the one below it, so that a lookup passes few of them. */
  #mergeLayers(): PersistentMap<V> {
    const below = this.#below
    if (below === null || this.#size * 2 < below.#size) return this
    const merged = new Map([...below.#listLayer(), ...this.#listLayer()])
    return new PersistentMap(merged, below.#below).#mergeLayers()
  }

  #listLayer(): (readonly [string, OrderedEntry<V>])[] {
    return [...this.#layer].slice(0, this.#size)
  }
}

/** A value with the number of entries that its layer had before. */
interface OrderedEntry<V> {
  readonly value: V
  readonly order: number
}
