/**
 * Every prompt seen, as one tree: a node is a block in its place behind all that came before it. A request
 * that extends an earlier one walks the known path by comparing blocks and hashes only what is new, which is
 * what makes a long conversation cheap to check. The chain of a node names its whole prefix.
 */
import type { Block } from '../api.ts'
import { digest } from '../digest.ts'
import {
  addChild,
  childOf,
  type GrowingNode,
  keepChildren,
  type PromptNode,
  rootNode,
  type Zone,
} from './prompt-node.ts'
import { render } from './rendering.ts'

export interface PromptTree {
  readonly root: PromptNode
  /** The node of `block` behind `parent`, made if there is none. */
  place(parent: PromptNode, zone: Zone, block: Block): PromptNode
  /** A node for a prefix of which only the chain is known any more. */
  resume(chain: string): PromptNode
  /** How many bytes of rendered blocks are remembered. */
  readonly bytes: number
}

export interface TreeOptions {
  /** What a block costs in a zone, given the zone before it. */
  readonly costOf: (block: Block, zone: Zone, before: Zone | null) => number
  /** Above this the prompts longest unused are forgotten; what is in the cache stays there. */
  readonly maxBytes: number
}

export function createPromptTree({ costOf, maxBytes }: TreeOptions): PromptTree {
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
      tokens: parent.tokens + costOf(block, zone, before),
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
    // Once a walk is enough: what the walk itself needs cannot be forgotten.
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
      // Every node handed out is one of this tree's own.
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
 * Drops every path not walked since. A node was used no later than its parent, so cutting by age never leaves
 * a gap. Returns the bytes that are left.
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
