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

/**
 * A map from strings, as a value. `set` returns a larger map and leaves the smaller one as it was, at a cost that hardly
 * grows with the size, whichever map of a family is extended: `List` copies on the second extension of the same value,
 * this never does.
 */
export class Trie<V> {
  readonly #root: Node<V> | undefined

  private constructor(root: Node<V> | undefined) {
    this.#root = root
  }

  static empty<V>(): Trie<V> {
    return new Trie<V>(undefined)
  }

  get(key: string): V | undefined {
    const hash = hashOf(key)
    let node = this.#root
    for (let shift = 0; node !== undefined; shift += BITS) {
      if ('entries' in node) return node.entries.find((entry) => entry[0] === key)?.[1]
      node = node.children[slot(hash, shift)]
    }
    return undefined
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  set(key: string, value: V): Trie<V> {
    return new Trie(placed(this.#root, 0, { hash: hashOf(key), entries: [[key, value]] }))
  }

  /** In no particular order, though always the same one for the same keys. */
  *[Symbol.iterator](): Iterator<readonly [string, V]> {
    if (this.#root !== undefined) yield* entriesOf(this.#root)
  }
}

interface Leaf<V> {
  readonly hash: number
  /** More than one only where whole hashes are equal. */
  readonly entries: readonly (readonly [string, V])[]
}

interface Branch<V> {
  readonly children: readonly (Node<V> | undefined)[]
}

type Node<V> = Leaf<V> | Branch<V>

const BITS = 5
const WIDTH = 1 << BITS

function slot(hash: number, shift: number): number {
  return (hash >>> shift) & (WIDTH - 1)
}

function placed<V>(node: Node<V> | undefined, shift: number, leaf: Leaf<V>): Node<V> {
  if (node === undefined) return leaf
  if ('children' in node) return withChild(node, shift, leaf)
  if (node.hash === leaf.hash) return { hash: leaf.hash, entries: replaced(node.entries, leaf.entries) }
  return withChild(withChild({ children: new Array(WIDTH).fill(undefined) }, shift, node), shift, leaf)
}

function withChild<V>(branch: Branch<V>, shift: number, leaf: Leaf<V>): Branch<V> {
  const at = slot(leaf.hash, shift)
  return { children: branch.children.with(at, placed(branch.children[at], shift + BITS, leaf)) }
}

function replaced<V>(old: Leaf<V>['entries'], added: Leaf<V>['entries']): Leaf<V>['entries'] {
  return [...old.filter((entry) => added.every((other) => other[0] !== entry[0])), ...added]
}

function* entriesOf<V>(node: Node<V>): Generator<readonly [string, V]> {
  if ('entries' in node) yield* node.entries
  else for (const child of node.children) if (child !== undefined) yield* entriesOf(child)
}

/** FNV-1a over code units. */
function hashOf(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  return hash
}

/** From a key to the place of the first item that had it, as a value. */
export class IndexMap {
  readonly #places: Trie<number>

  private constructor(places: Trie<number>) {
    this.#places = places
  }

  static empty(): IndexMap {
    return new IndexMap(Trie.empty())
  }

  get(key: string): number | undefined {
    return this.#places.get(key)
  }

  /** The first place counts: adding a key again changes nothing. */
  add(key: string, place: number): IndexMap {
    return this.#places.has(key) ? this : new IndexMap(this.#places.set(key, place))
  }
}
