/**
 * A map from strings, as a value. `set` gives a larger map and leaves the smaller one as it was, at a cost
 * that hardly grows with the size, whichever map of a family is extended: where `List` and `IndexMap` copy
 * on the second extension of the same value, this never does.
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

/**
 * From a key to the place of the first item that had it, as a value: the companion of `List`. `add` gives a
 * larger map and leaves the smaller one as it was; both share one table while there is one line of descent.
 */
export class IndexMap {
  /** Key → how many came before it; `#places` has the place of each in that order. */
  readonly #order: Map<string, number>
  readonly #places: number[]
  readonly #size: number

  private constructor(order: Map<string, number>, places: number[]) {
    this.#order = order
    this.#places = places
    this.#size = places.length
  }

  static empty(): IndexMap {
    return new IndexMap(new Map(), [])
  }

  get(key: string): number | undefined {
    const order = this.#order.get(key)
    return order !== undefined && order < this.#size ? this.#places[order] : undefined
  }

  /** The first place counts: adding a key again changes nothing. */
  add(key: string, place: number): IndexMap {
    if (this.get(key) !== undefined) return this
    const { order, places } = this.#places.length === this.#size ? this.#shared() : this.#copy()
    order.set(key, places.length)
    places.push(place)
    return new IndexMap(order, places)
  }

  #shared(): { readonly order: Map<string, number>; readonly places: number[] } {
    return { order: this.#order, places: this.#places }
  }

  #copy(): { readonly order: Map<string, number>; readonly places: number[] } {
    const own = [...this.#order].filter(([, order]) => order < this.#size)
    return { order: new Map(own), places: this.#places.slice(0, this.#size) }
  }
}
