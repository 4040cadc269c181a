/**
 * All prompts received so far, as a prefix tree: a node is a block after a certain prefix, and its `chain` is a hash
 * of the whole prefix. A request that extends an earlier one compares the known blocks and hashes only the new
 * ones, so that a long conversation stays cheap to check.
 */
import { type Block, isObject, textField } from '../protocol/api.ts'
import { digest } from '../protocol/clock-and-ids.ts'

export interface PromptTree {
  readonly root: PromptNode
  /** The node of `block` after `parent`; it is created if there is none. */
  place(parent: PromptNode, zone: Zone, block: Block): PromptNode
  /** A node for a prefix of which only the chain is known. */
  resume(chain: string): PromptNode
  /** Bytes of rendered blocks in memory. */
  readonly bytes: number
}

interface TreeOptions {
  /** Tokens of a block in a zone, given the zone of the block before it. */
  readonly countTokens: (block: Block, zone: Zone, before: Zone | null) => number
  /** Above this the least recently used prompts are dropped. Cache entries are not affected. */
  readonly maxBytes: number
}

export function createPromptTree({ countTokens, maxBytes }: TreeOptions): PromptTree {
  const root = rootNode()
  let walks = 0
  let sweptAt = 0
  let bytes = 0

  function grow(parent: GrowingNode, zone: Zone, block: Block): GrowingNode {
    const rendered = render(block)
    const size = Buffer.byteLength(rendered)
    const before = parent === root ? null : parent.zone
    const node: GrowingNode = {
      parent,
      zone,
      block,
      chain: digest(`${parent.chain}${zone}${rendered}`),
      tokens: parent.tokens + countTokens(block, zone, before),
      bytes: parent.bytes + size,
      depth: parent.depth + 1,
      children: [],
      index: null,
      usedAt: walks,
    }
    addChild(parent, node)
    bytes += size
    return node
  }

  function sweep(): void {
    // Once per prompt is enough: the nodes of the current prompt cannot be dropped.
    if (bytes <= maxBytes || sweptAt === walks) return
    bytes = forget(root, sweptAt + Math.ceil((walks - sweptAt) / 2))
    sweptAt = walks
  }

  return {
    root,
    get bytes() {
      return bytes
    },
    resume: (chain) => ({ ...rootNode(), chain, usedAt: walks }),
    place(parent, zone, block) {
      // The cast holds because callers only pass nodes of this tree.
      const from = parent as GrowingNode
      if (from === root) {
        sweep()
        walks += 1
      }
      const known = childOf(from, zone, block) ?? grow(from, zone, block)
      known.usedAt = walks
      return known
    },
  }
}

/**
 * Drops all paths not used since. A node was last used no later than its parent, so dropping by age never leaves
 * a gap. Returns the remaining bytes.
 */
function forget(root: GrowingNode, since: number): number {
  let left = 0
  const open: GrowingNode[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const kept = node.children.filter((child) => child.usedAt >= since)
    if (kept.length < node.children.length) keepChildren(node, kept)
    for (const child of kept) {
      left += child.bytes - node.bytes
      open.push(child)
    }
  }
  return left
}

/** The part of the prompt a block belongs to. `notice` is a system message in mid-conversation. */
export type Zone = 'tools' | 'system' | 'user' | 'assistant' | 'notice'

export interface PromptNode {
  readonly parent: PromptNode | null
  readonly zone: Zone
  readonly block: Block
  /** Hash of this block and all before it. */
  readonly chain: string
  /** Tokens and rendered bytes of the prefix that ends with this block. */
  readonly tokens: number
  readonly bytes: number
  readonly depth: number
}

/** A node as the tree itself sees it, with its children and the time of its last use. */
interface GrowingNode extends PromptNode {
  readonly parent: GrowingNode | null
  children: GrowingNode[]
  /** Children by fingerprint, if there are more than a few. */
  index: Map<string, GrowingNode[]> | null
  usedAt: number
}

const FEW = 16

function rootNode(): GrowingNode {
  return {
    parent: null,
    zone: 'tools',
    block: { type: 'root' },
    chain: '',
    tokens: 0,
    bytes: 0,
    depth: 0,
    children: [],
    index: null,
    usedAt: 0,
  }
}

function childOf(parent: GrowingNode, zone: Zone, block: Block): GrowingNode | undefined {
  const among = parent.index === null ? parent.children : (parent.index.get(fingerprint(block)) ?? [])
  // The child added last is the most likely match.
  for (let at = among.length - 1; at >= 0; at -= 1) {
    const child = among[at]
    if (child !== undefined && child.zone === zone && sameBlock(child.block, block)) return child
  }
  return undefined
}

function addChild(parent: GrowingNode, child: GrowingNode): void {
  parent.children.push(child)
  if (parent.index !== null) addTo(parent.index, child)
  else if (parent.children.length > FEW) parent.index = indexOf(parent.children)
}

function keepChildren(parent: GrowingNode, kept: GrowingNode[]): void {
  parent.children = kept
  parent.index = kept.length > FEW ? indexOf(kept) : null
}

function indexOf(children: readonly GrowingNode[]): Map<string, GrowingNode[]> {
  const index = new Map<string, GrowingNode[]>()
  for (const child of children) addTo(index, child)
  return index
}

function addTo(index: Map<string, GrowingNode[]>, child: GrowingNode): void {
  const key = fingerprint(child.block)
  const there = index.get(key)
  if (there === undefined) index.set(key, [child])
  else there.push(child)
}

/** Equal for equal blocks and different for most others. Cheap: it never reads a whole text. */
function fingerprint(block: Block): string {
  const text = textField(block, 'text')
  const id = textField(block, 'id') || textField(block, 'tool_use_id') || textField(block, 'name')
  return `${block.type}/${id}/${text.length}/${text.slice(0, 40)}/${text.slice(-40)}`
}

type Fields = Readonly<Record<string, unknown>>

/**
 * The part of a block that counts for the cache, as text. Markers and null fields do not count, a string equals one
 * text block, and the order of a block's own fields does not matter; the order of keys inside an input or a schema
 * does. Two blocks are the same to the cache exactly if their renderings are equal.
 */
export function render(block: Fields): string {
  return JSON.stringify(normal(block))
}

function normal(block: Fields): Fields {
  const fields: Record<string, unknown> = {}
  for (const name of Object.keys(block).sort()) {
    if (isPart(name, block[name])) fields[name] = normalField(name, block[name])
  }
  return fields
}

function isPart(name: string, value: unknown): boolean {
  return name !== 'cache_control' && name !== 'cache_reference' && value !== null && value !== undefined
}

function normalField(name: string, value: unknown): unknown {
  if (name !== 'content') return value
  if (typeof value === 'string') return [{ text: value, type: 'text' }]
  return Array.isArray(value) ? value.map((item) => (isObject(item) ? normal(item) : item)) : value
}

/** Whether the renderings are equal, without rendering: most blocks of a request are already known. */
export function sameBlock(one: Fields, other: Fields): boolean {
  let parts = 0
  for (const name in one) {
    if (!isPart(name, one[name])) continue
    if (!isPart(name, other[name]) || !sameField(name, one[name], other[name])) return false
    parts += 1
  }
  for (const name in other) if (isPart(name, other[name])) parts -= 1
  return parts === 0
}

function sameField(name: string, one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (name !== 'content') return sameValue(one, other)
  const [left, right] = [contentOf(one), contentOf(other)]
  if (!Array.isArray(left) || !Array.isArray(right)) return sameValue(left, right)
  return left.length === right.length && left.every((item, index) => sameItem(item, right[index]))
}

function contentOf(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function sameItem(one: unknown, other: unknown): boolean {
  return isObject(one) && isObject(other) ? sameBlock(one, other) : sameValue(one, other)
}

/** Deep equality, with keys in the same order. */
function sameValue(one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (Array.isArray(one)) return Array.isArray(other) && sameList(one, other)
  if (!isObject(one) || !isObject(other)) return false
  const names = Object.keys(one)
  return sameList(names, Object.keys(other)) && names.every((name) => sameValue(one[name], other[name]))
}

function sameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => sameValue(item, other[index]))
}
