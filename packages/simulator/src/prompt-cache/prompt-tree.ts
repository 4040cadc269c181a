/**
 * Stores all prompts received so far as a tree, in which equal prefixes share their nodes. A node is one block; its
 * `chain` is a hash of the whole prefix up to that block. A request that extends an earlier request hashes only its
 * new blocks.
 */

import { hashText } from '../protocol/clock-and-ids.ts'
import { type Block, isObject, isSameValue, readTextField } from '../protocol/messages-request.ts'

export interface PromptTree {
  readonly root: PromptTreeNode
  /** Returns the child node of `parent` for this block. Creates the node if it does not exist. */
  addBlock(parent: PromptTreeNode, zone: PromptZone, block: Block): PromptTreeNode
  /** Creates a node for a prefix whose hash is known but whose blocks are not. */
  resume(chain: string): PromptTreeNode
  /** Total size of the rendered blocks in the tree, in bytes. */
  readonly bytes: number
}

interface PromptTreeOptions {
  /**
   * Counts the tokens of a block. `zone` is the part of the prompt it belongs to, `before` that of the block before
   * it.
   */
  readonly countTokens: (block: Block, zone: PromptZone, before: PromptZone | null) => number
  /**
   * Memory limit for the tree, in bytes of rendered blocks. Above the limit the least recently used prompts are
   * dropped. Cache entries are kept.
   */
  readonly maxBytes: number
}

export function createPromptTree({ countTokens, maxBytes }: PromptTreeOptions): PromptTree {
  const root = createRootNode()
  let walks = 0
  let sweptAt = 0
  let bytes = 0

  function grow(parent: TreeNode, zone: PromptZone, block: Block): TreeNode {
    const rendered = renderBlock(block)
    const size = Buffer.byteLength(rendered)
    const before = parent === root ? null : parent.zone
    const node: TreeNode = {
      parent,
      zone,
      block,
      chain: hashText(`${parent.chain}${zone}${rendered}`),
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
    // The cleanup runs once per prompt. It cannot drop nodes of the current prompt, so running it again would free
    // nothing.
    if (bytes <= maxBytes || sweptAt === walks) return
    bytes = dropUnused(root, sweptAt + Math.ceil((walks - sweptAt) / 2))
    sweptAt = walks
  }

  return {
    root,
    get bytes() {
      return bytes
    },
    resume: (chain) => ({ ...createRootNode(), chain, usedAt: walks }),
    addBlock(parent, zone, block) {
      // The cast is safe because callers only pass nodes that this tree created.
      const from = parent as TreeNode
      if (from === root) {
        sweep()
        walks += 1
      }
      const known = findChild(from, zone, block) ?? grow(from, zone, block)
      known.usedAt = walks
      return known
    },
  }
}

/**
 * Drops all nodes that were last used before prompt number `since`. Returns the bytes that remain. Using a node also
 * uses its parents, so no remaining node loses its parent.
 */
function dropUnused(root: TreeNode, since: number): number {
  let left = 0
  const open: TreeNode[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const kept = node.children.filter((child) => child.usedAt >= since)
    if (kept.length < node.children.length) replaceChildren(node, kept)
    for (const child of kept) {
      left += child.bytes - node.bytes
      open.push(child)
    }
  }
  return left
}

/** The part of the prompt that a block belongs to. `notice` is a system message in mid-conversation. */
export type PromptZone = 'tools' | 'system' | 'user' | 'assistant' | 'notice'

export interface PromptTreeNode {
  readonly parent: PromptTreeNode | null
  readonly zone: PromptZone
  readonly block: Block
  /** Hash of this block and of all blocks before it. */
  readonly chain: string
  /** Tokens of the whole prefix up to and including this block. */
  readonly tokens: number
  /** Rendered bytes of the whole prefix up to and including this block. */
  readonly bytes: number
  readonly depth: number
}

/** A node of the prompt tree with the fields that only the tree uses: its children and when it was last used. */
interface TreeNode extends PromptTreeNode {
  readonly parent: TreeNode | null
  children: TreeNode[]
  /** Index of the child nodes by block fingerprint. Null for up to 16 children, which are searched one by one. */
  index: Map<string, TreeNode[]> | null
  usedAt: number
}

const MAX_UNINDEXED_CHILDREN = 16

function createRootNode(): TreeNode {
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

function findChild(parent: TreeNode, zone: PromptZone, block: Block): TreeNode | undefined {
  const among = parent.index === null ? parent.children : (parent.index.get(fingerprintBlock(block)) ?? [])
  // The newest child node is the most likely match, so the search starts at the end of the list.
  for (let at = among.length - 1; at >= 0; at -= 1) {
    const child = among[at]
    if (child !== undefined && child.zone === zone && isSameBlock(child.block, block)) return child
  }
  return undefined
}

function addChild(parent: TreeNode, child: TreeNode): void {
  parent.children.push(child)
  if (parent.index !== null) addToIndex(parent.index, child)
  else if (parent.children.length > MAX_UNINDEXED_CHILDREN) parent.index = indexChildren(parent.children)
}

function replaceChildren(parent: TreeNode, kept: TreeNode[]): void {
  parent.children = kept
  parent.index = kept.length > MAX_UNINDEXED_CHILDREN ? indexChildren(kept) : null
}

function indexChildren(children: readonly TreeNode[]): Map<string, TreeNode[]> {
  const index = new Map<string, TreeNode[]>()
  for (const child of children) addToIndex(index, child)
  return index
}

function addToIndex(index: Map<string, TreeNode[]>, child: TreeNode): void {
  const key = fingerprintBlock(child.block)
  const there = index.get(key)
  if (there === undefined) index.set(key, [child])
  else there.push(child)
}

/**
 * Returns a lookup key for a block. Equal blocks have equal keys, and most different blocks have different keys. Only
 * the start and end of a text are read, which is cheap.
 */
function fingerprintBlock(block: Block): string {
  const text = readTextField(block, 'text')
  const id = readTextField(block, 'id') || readTextField(block, 'tool_use_id') || readTextField(block, 'name')
  return `${block.type}/${id}/${text.length}/${text.slice(0, 40)}/${text.slice(-40)}`
}

type BlockFields = Readonly<Record<string, unknown>>

/**
 * Renders a block as the JSON text that the cache compares. Cache markers, null fields and the order of the block's
 * own fields have no effect. String content equals one text block. The order of keys inside an input or a schema
 * matters.
 */
export function renderBlock(block: BlockFields): string {
  return JSON.stringify(normalizeBlock(block))
}

function normalizeBlock(block: BlockFields): BlockFields {
  const fields: Record<string, unknown> = {}
  for (const name of Object.keys(block).sort()) {
    if (isPromptField(name, block[name])) fields[name] = normalizeField(name, block[name])
  }
  return fields
}

function isPromptField(name: string, value: unknown): boolean {
  return name !== 'cache_control' && name !== 'cache_reference' && value !== null && value !== undefined
}

function normalizeField(name: string, value: unknown): unknown {
  if (name !== 'content') return value
  if (typeof value === 'string') return [{ text: value, type: 'text' }]
  return Array.isArray(value) ? value.map((item) => (isObject(item) ? normalizeBlock(item) : item)) : value
}

/** Checks whether two blocks render to the same text. It compares their fields, which is cheaper than rendering. */
export function isSameBlock(one: BlockFields, other: BlockFields): boolean {
  let parts = 0
  for (const name in one) {
    if (!isPromptField(name, one[name])) continue
    if (!isPromptField(name, other[name]) || !isSameField(name, one[name], other[name])) return false
    parts += 1
  }
  for (const name in other) if (isPromptField(name, other[name])) parts -= 1
  return parts === 0
}

function isSameField(name: string, one: unknown, other: unknown): boolean {
  if (one === other) return true
  if (name !== 'content') return isSameValue(one, other)
  const [left, right] = [toContentBlocks(one), toContentBlocks(other)]
  if (!Array.isArray(left) || !Array.isArray(right)) return isSameValue(left, right)
  return left.length === right.length && left.every((item, index) => isSameItem(item, right[index]))
}

function toContentBlocks(content: unknown): unknown {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function isSameItem(one: unknown, other: unknown): boolean {
  return isObject(one) && isObject(other) ? isSameBlock(one, other) : isSameValue(one, other)
}
