/**
 * The prefix that thinking is bound to: `system`, the tools that are not deferred, and every earlier message
 * as the client sent it, thinking left out. Walked in a tree of its own, so that a mismatch can say where.
 */

import { isOffered } from '../prompt-cache/cache-key.ts'
import type { PromptNode, PromptTree, Zone } from '../prompt-cache/prompt-tree.ts'
import {
  type Block,
  blocksOf,
  isObject,
  isThinking,
  type MessagesBody,
  type Piece,
  pathOf,
} from '../protocol/api.ts'
import type { CompactionSeal, ThinkingSeal } from './signatures.ts'

export interface Walk {
  readonly system: string
  readonly tools: string
  /** Of each piece, by its index: the prefix its turn began behind. Thinking has one too. */
  readonly before: readonly PromptNode[]
  /** What a thought that comes now is bound to: all that stands before the model's turn. */
  readonly end: PromptNode
  /** Behind everything that was sent. */
  readonly behindAll: PromptNode
}

/** Where a conversation goes on from when its first block stands for messages that are no longer there. */
export interface Resumption {
  readonly seal: CompactionSeal
  /** Index of the piece that holds the block. */
  readonly at: number
}

export interface PrefixWalker {
  walk(body: MessagesBody, pieces: readonly Piece[], resumption: Resumption | null): Walk
  /** What is behind a threshold's block: the block, and nothing before it. */
  restart(block: Block): PromptNode
  /** The node a chain was signed with, while it is remembered. */
  remembered(chain: string): PromptNode | undefined
  remember(node: PromptNode): void
}

const REMEMBERED = 4_096

export function createPrefixWalker(tree: PromptTree): PrefixWalker {
  const signed = new Map<string, PromptNode>()

  function remember(node: PromptNode): void {
    if (signed.size >= REMEMBERED) signed.delete(signed.keys().next().value ?? '')
    signed.set(node.chain, node)
  }

  function resume(chain: string): PromptNode {
    const node = signed.get(chain) ?? tree.resume(chain)
    remember(node)
    return node
  }

  return {
    remember,
    remembered: (chain) => signed.get(chain),
    restart: (block) => tree.place(tree.root, 'assistant', plain(block)),
    walk(body, pieces, resumption) {
      const front = {
        system: chainOf(tree, 'system', blocksOf(body.system)),
        tools: chainOf(tree, 'tools', toolBlocks(body)),
      }
      const first = resumption === null ? null : pieces[resumption.at + 1]
      const follows = resumption !== null && goesOn(resumption.seal, front, first ?? undefined)
      const start = follows ? resume(resumption.seal.messages) : null
      return { ...front, ...walkMessages(tree, pieces, { resumption, start }) }
    },
  }
}

function chainOf(tree: PromptTree, zone: Zone, blocks: Iterable<Block>): string {
  let node = tree.root
  for (const block of blocks) node = tree.place(node, zone, block)
  return node.chain
}

interface Front {
  readonly system: string
  readonly tools: string
}

/** Whether the turns kept behind a block go on from where the summarised ones ended. */
function goesOn(seal: CompactionSeal, front: Front, kept: Piece | undefined): boolean {
  return (
    seal.preserves &&
    seal.system === front.system &&
    seal.tools === front.tools &&
    (kept === undefined || (kept.role !== 'system' && kept.role !== seal.lastRole))
  )
}

interface Start {
  readonly resumption: Resumption | null
  /** Where kept turns go on from; null where the conversation begins at the block. */
  readonly start: PromptNode | null
}

function walkMessages(
  tree: PromptTree,
  pieces: readonly Piece[],
  { resumption, start }: Start,
): Pick<Walk, 'before' | 'end' | 'behindAll'> {
  const before: PromptNode[] = []
  let node = tree.root
  let turn = node
  let role: string | null = null
  for (const [index, piece] of pieces.entries()) {
    if (piece.role !== role) turn = node
    role = piece.role
    if (resumption !== null && index === resumption.at) {
      node = start ?? tree.place(tree.root, 'notice', { type: 'compaction', id: resumption.seal.id })
      turn = node
      // Whoever speaks next begins a turn of its own, the model too.
      role = null
    } else if (startsAnew(piece.block)) {
      node = tree.place(tree.root, 'assistant', plain(piece.block))
      turn = node
    } else if (!isThinking(piece.block)) node = tree.place(node, zoneOf(piece), plain(piece.block))
    before.push(turn)
  }
  return { before, end: role === 'assistant' ? turn : node, behindAll: node }
}

/** The block of a threshold compaction: whatever stands before it no longer counts. */
function startsAnew(block: Block): boolean {
  return block.type === 'compaction' && block.content != null && block.signature == null
}

function* toolBlocks(body: MessagesBody): Iterable<Block> {
  for (const tool of body.tools ?? [])
    if (isOffered(tool)) yield { ...tool, type: typeof tool.type === 'string' ? tool.type : 'custom' }
}

function zoneOf({ role }: Piece): Zone {
  return role === 'system' ? 'notice' : role
}

/** A signed URL may rotate while the bytes behind it stay: what follows the `?` is not looked at. */
function plain(block: Block): Block {
  const source: unknown = block.source
  if (!isObject(source) || typeof source.url !== 'string') return block
  return { type: block.type, source: { type: 'url', url: source.url.replace(/[?#].*$/, '') } }
}

// The sentence at the end of a binding error: what is different from when the block was made, as far as known.

export interface Change {
  readonly seal: ThinkingSeal
  /** Index of the thinking among the pieces. */
  readonly index: number
  readonly last: string | null
  readonly walk: Walk
  readonly pieces: readonly Piece[]
}

export function changeSentence(change: Change, walker: PrefixWalker): string | null {
  const { seal, walk, index } = change
  if (seal.system !== walk.system) return 'The `system` prompt differs from when this block was created.'
  if (seal.tools !== walk.tools) return 'The `tools` list differs from when this block was created.'
  const now = walk.before[index]
  if (now !== undefined && seal.messages !== now.chain) return messageSentence(change, now, walker)
  return 'An earlier thinking block is missing or out of order.'
}

function messageSentence(change: Change, now: PromptNode, walker: PrefixWalker): string | null {
  const then = walker.remembered(change.seal.messages)
  if (then === undefined) return null
  const position = firstDifference(pathTo(then), pathTo(now))
  const said = change.pieces.slice(0, change.index).filter(({ block }) => !isThinking(block))
  const piece = said[position]
  return piece === undefined
    ? 'Content before this block is missing.'
    : `Content before this block differs from when it was created, first at \`${pathOf(piece)}\`.`
}

function pathTo(node: PromptNode): readonly string[] {
  const chains: string[] = []
  for (let at: PromptNode | null = node; at !== null; at = at.parent) chains.push(at.chain)
  return chains.reverse().slice(1)
}

function firstDifference(one: readonly string[], other: readonly string[]): number {
  const at = one.findIndex((chain, index) => chain !== other[index])
  return at < 0 ? one.length : at
}
