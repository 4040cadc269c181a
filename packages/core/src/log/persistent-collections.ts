/**
 * Persistent collections: an update returns a new value and leaves the old one unchanged. Updates cost about the
 * same whatever the size, which keeps a long session as fast as a short one.
 */

/**
 * An append-only list. `push` returns a longer list that shares the array of the shorter one; pushing onto a list
 * that was already extended copies it.
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
   * True if this list came from `other` by pushes alone, so that the first `other.length` items are the same. Other
   * lists made from `other` do not matter: a discarded attempt does not break the relation.
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

/** Identity of an array: the array it was copied from, and how many items were copied. */
interface SharedArray {
  readonly from: SharedArray | null
  readonly shared: number
}

/** A map with string keys, as a hash trie. Never copies the whole map, whichever version is extended. */
export class PersistentMap<V> {
  readonly #root: TrieNode<V> | undefined

  private constructor(root: TrieNode<V> | undefined) {
    this.#root = root
  }

  static empty<V>(): PersistentMap<V> {
    return new PersistentMap<V>(undefined)
  }

  get(key: string): V | undefined {
    const hash = hashKey(key)
    let node = this.#root
    for (let shift = 0; node !== undefined; shift += BITS_PER_LEVEL) {
      if ('entries' in node) return node.entries.find((entry) => entry[0] === key)?.[1]
      node = node.children[findSlot(hash, shift)]
    }
    return undefined
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  set(key: string, value: V): PersistentMap<V> {
    return new PersistentMap(insertLeaf(this.#root, 0, { hash: hashKey(key), entries: [[key, value]] }))
  }

  /** Sets the value unless the key has one: the first value stays. */
  setIfAbsent(key: string, value: V): PersistentMap<V> {
    return this.has(key) ? this : this.set(key, value)
  }

  /** In an order that depends only on the keys. */
  *[Symbol.iterator](): Iterator<readonly [string, V]> {
    if (this.#root !== undefined) yield* iterateEntries(this.#root)
  }
}

interface TrieLeaf<V> {
  readonly hash: number
  /** Several entries only if their full hashes are equal. */
  readonly entries: readonly (readonly [string, V])[]
}

interface TrieBranch<V> {
  readonly children: readonly (TrieNode<V> | undefined)[]
}

type TrieNode<V> = TrieLeaf<V> | TrieBranch<V>

const BITS_PER_LEVEL = 5
const CHILDREN_PER_NODE = 1 << BITS_PER_LEVEL

function findSlot(hash: number, shift: number): number {
  return (hash >>> shift) & (CHILDREN_PER_NODE - 1)
}

function insertLeaf<V>(node: TrieNode<V> | undefined, shift: number, leaf: TrieLeaf<V>): TrieNode<V> {
  if (node === undefined) return leaf
  if ('children' in node) return withChild(node, shift, leaf)
  if (node.hash !== leaf.hash)
    return withChild(
      withChild({ children: new Array(CHILDREN_PER_NODE).fill(undefined) }, shift, node),
      shift,
      leaf,
    )
  const others = node.entries.filter(([key]) => leaf.entries.every((entry) => entry[0] !== key))
  return { hash: leaf.hash, entries: [...others, ...leaf.entries] }
}

function withChild<V>(branch: TrieBranch<V>, shift: number, leaf: TrieLeaf<V>): TrieBranch<V> {
  const at = findSlot(leaf.hash, shift)
  return { children: branch.children.with(at, insertLeaf(branch.children[at], shift + BITS_PER_LEVEL, leaf)) }
}

function* iterateEntries<V>(node: TrieNode<V>): Generator<readonly [string, V]> {
  if ('entries' in node) yield* node.entries
  else for (const child of node.children) if (child !== undefined) yield* iterateEntries(child)
}

/** FNV-1a over UTF-16 code units. */
function hashKey(key: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < key.length; index += 1) {
    hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193)
  }
  return hash
}
