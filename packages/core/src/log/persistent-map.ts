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
