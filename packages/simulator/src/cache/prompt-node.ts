/** A node of the prompt tree, and how to find one among many siblings. */
import { type Block, textField } from '../api.ts'
import { sameBlock } from './rendering.ts'

/** Where a block stands: a tool, the system prompt, or whose turn. */
export type Zone = 'tools' | 'system' | 'user' | 'assistant' | 'notice'

export interface PromptNode {
  readonly parent: PromptNode | null
  readonly zone: Zone
  readonly block: Block
  /** Stands for this block and all before it. */
  readonly chain: string
  /** Tokens and rendered bytes of the prefix that ends here. */
  readonly tokens: number
  readonly bytes: number
  readonly depth: number
}

/** Inside the tree a node also knows who came after it and when it was last walked over. */
export interface GrowingNode extends PromptNode {
  readonly parent: GrowingNode | null
  children: GrowingNode[]
  /** By fingerprint, once there are many. */
  index: Map<string, GrowingNode[]> | null
  usedAt: number
}

const FEW = 16

export function rootNode(): GrowingNode {
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

export function childOf(parent: GrowingNode, zone: Zone, block: Block): GrowingNode | undefined {
  const among = parent.index === null ? parent.children : (parent.index.get(fingerprint(block)) ?? [])
  // Newest first: the likeliest is the one placed last.
  for (let at = among.length - 1; at >= 0; at -= 1) {
    const child = among[at]
    if (child !== undefined && child.zone === zone && sameBlock(child.block, block)) return child
  }
  return undefined
}

export function addChild(parent: GrowingNode, child: GrowingNode): void {
  parent.children.push(child)
  if (parent.index !== null) addTo(parent.index, child)
  else if (parent.children.length > FEW) parent.index = indexOf(parent.children)
}

export function keepChildren(parent: GrowingNode, kept: GrowingNode[]): void {
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

/** Equal for equal blocks, and different for most others: cheap, and never the whole of a text. */
function fingerprint(block: Block): string {
  const text = textField(block, 'text')
  const id = textField(block, 'id') || textField(block, 'tool_use_id') || textField(block, 'name')
  return `${block.type}/${id}/${text.length}/${text.slice(0, 40)}/${text.slice(-40)}`
}
