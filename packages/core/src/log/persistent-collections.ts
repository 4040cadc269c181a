/**
 * Persistent collections: an update returns a new collection and leaves the old one unchanged. The cost of updating the
 * newest version does not grow with the size of the collection, on average; an update of an older version may copy it.
 */

/**
 * An append-only list. `push` returns a new list that shares its array with the old list. A second `push` onto the same
 * list copies the array, because the first one has already used the next place. An empty list shares nothing: a constant
 * would keep what is pushed onto it for as long as the process runs.
 */
export class AppendList<T> implements Iterable<T> {
  readonly length: number
  readonly #items: T[]
  readonly #line: SharedArray

  private constructor(items: T[], line: SharedArray, length: number = items.length) {
    this.#items = items
    this.#line = line
    this.length = length
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

  /** Returns the last item that matches; undefined if none does. Takes as long as there are items behind it. */
  findLast(matches: (item: T) => boolean): T | undefined {
    return this.#items[this.findLastIndex(matches)]
  }

  /** Returns the index of the last item that matches; -1 if there is none. */
  findLastIndex(matches: (item: T) => boolean): number {
    let index = this.length - 1
    while (index >= 0 && !matches(this.at(index) as T)) index -= 1
    return index
  }

  push(item: T): AppendList<T> {
    if (this.length === 0) return AppendList.of([item])
    const isFree = this.#items.length === this.length
    const items = isFree ? this.#items : this.#items.slice(0, this.length)
    items.push(item)
    return new AppendList(items, isFree ? this.#line : { from: this.#line, shared: this.length })
  }

  /** Returns the list of the first `length` items. It extends every list of at most `length` items that this one extends. */
  take(length: number): AppendList<T> {
    return length >= this.length ? this : new AppendList(this.#items, this.#line, Math.max(0, length))
  }

  /**
   * Returns true if this list was made from `other` only by calls of `push`, or of `take` that kept all items of
   * `other`. The first `other.length` items are then the same.
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

  /** Iterates over a copy of the items, which is faster than a generator. */
  [Symbol.iterator](): Iterator<T> {
    return this.toArray().values()
  }
}

/** Identifies the array behind a list: the array that it was copied from, and the number of items that were copied. */
interface SharedArray {
  readonly from: SharedArray | null
  readonly shared: number
}

/**
 * A map with string keys. `set` returns a new version of the map, which normally shares one layer with the old version. A
 * second `set` on the same version adds a new layer on top instead of copying a large map. An empty map shares nothing,
 * like an empty list.
 */
export class PersistentMap<V> {
  readonly #below: PersistentMap<V> | null
  readonly #layer: Layer<V>
  /** Number of entries of the shared layer that belong to this version; later entries belong to newer versions. */
  readonly #size: number

  private constructor(layer: Layer<V>, below: PersistentMap<V> | null) {
    this.#layer = layer
    this.#size = layer.values.length
    this.#below = below
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(createLayer([]), null)
  }

  get(key: string): V | undefined {
    const place = this.#layer.places.get(key)
    return place !== undefined && place < this.#size ? this.#layer.values[place] : this.#below?.get(key)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  set(key: string, value: V): PersistentMap<V> {
    if (this.#size === 0) return new PersistentMap(createLayer([[key, value]]), this.#below)
    const { places, values } = this.#layer
    const isFree = values.length === this.#size && !places.has(key)
    if (!isFree) return new PersistentMap(createLayer([[key, value]]), this.#mergeLayers())
    places.set(key, values.length)
    values.push(value)
    return new PersistentMap(this.#layer, this.#below)
  }

  /** Returns a map in which the key has this value. Returns the same map if the key already has a value. */
  setIfAbsent(key: string, value: V): PersistentMap<V> {
    return this.has(key) ? this : this.set(key, value)
  }

  *[Symbol.iterator](): Iterator<readonly [string, V]> {
    yield* new Map([...(this.#below ?? []), ...this.#listLayer()])
  }

  /**
   * Merges layers until each layer is less than half as large as the one below it, so that a lookup searches only a few
   * layers.
   */
  #mergeLayers(): PersistentMap<V> {
    const below = this.#below
    if (below === null || this.#size * 2 < below.#size) return this
    const merged = new Map([...below.#listLayer(), ...this.#listLayer()])
    return new PersistentMap(createLayer(merged), below.#below).#mergeLayers()
  }

  #listLayer(): (readonly [string, V])[] {
    const keys = [...this.#layer.places.keys()].slice(0, this.#size)
    return keys.map((key, place) => [key, this.#layer.values[place] as V])
  }
}

/** The entries of a layer in the order in which they were added: the place of each key, and the value at each place. */
interface Layer<V> {
  readonly places: Map<string, number>
  readonly values: V[]
}

function createLayer<V>(entries: Iterable<readonly [string, V]>): Layer<V> {
  const all = [...entries]
  return {
    places: new Map(all.map(([key], place) => [key, place])),
    values: all.map(([, value]) => value),
  }
}
