/**
 * The prefix that thinking is bound to: `system`, the tools that are not deferred, and all earlier messages as the
 * client sent them, without thinking. It has its own prompt tree, so that an error can name the first difference.
 */

import { isOffered } from '../prompt-cache/cache-key.ts'
import { toolBlock, zoneOf } from '../prompt-cache/prompt.ts'
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
  /** Chains of the system prompt and of the tools. */
  readonly system: string
  readonly tools: string
  /** For each block of the request, thinking included: the prefix before its turn. */
  readonly before: readonly PromptNode[]
  /** The prefix that new thinking is bound to: everything before the current assistant turn. */
  readonly end: PromptNode
  /** The prefix after all messages. */
  readonly afterAll: PromptNode
}

/** A conversation whose first block is a signed compaction block. */
interface Resumption {
  readonly signed: CompactionSeal
  /** Index of the compaction block among the request's blocks. */
  readonly at: number
}

export interface PrefixWalker {
  track(body: MessagesBody, pieces: readonly Piece[], resumption: Resumption | null): Walk
  /** The prefix after the block of a threshold compaction, which nothing precedes. */
  restart(block: Block): PromptNode
  /** The node with this chain, if it was remembered and not dropped since. */
  remembered(chain: string): PromptNode | undefined
  remember(node: PromptNode): void
}

const REMEMBERED = 4_096

export function createPrefixWalker(tree: PromptTree): PrefixWalker {
  const remembered = new Map<string, PromptNode>()

  function remember(node: PromptNode): void {
    if (remembered.size >= REMEMBERED) remembered.delete(remembered.keys().next().value ?? '')
    remembered.set(node.chain, node)
  }

  function resume(chain: string): PromptNode {
    const node = remembered.get(chain) ?? tree.resume(chain)
    remember(node)
    return node
  }

  return {
    remember,
    remembered: (chain) => remembered.get(chain),
    restart: (block) => tree.place(tree.root, 'assistant', plain(block)),
    track(body, pieces, resumption) {
      const front = {
        system: chainOf(tree, 'system', blocksOf(body.system)),
        tools: chainOf(tree, 'tools', (body.tools ?? []).filter(isOffered).map(toolBlock)),
      }
      const follows = resumption !== null && goesOn(resumption.signed, front, pieces[resumption.at + 1])
      const start = follows ? resume(resumption.signed.messages) : null
      return { ...front, ...walkMessages(tree, pieces, resumption, start) }
    },
  }
}

function chainOf(tree: PromptTree, zone: Zone, blocks: Iterable<Block>): string {
  let node = tree.root
  for (const block of blocks) node = tree.place(node, zone, block)
  return node.chain
}

/** Whether the turns after a compaction block continue the prefix that was summarized. */
function goesOn(
  signed: CompactionSeal,
  front: Pick<Walk, 'system' | 'tools'>,
  kept: Piece | undefined,
): boolean {
  return (
    signed.preserves &&
    signed.system === front.system &&
    signed.tools === front.tools &&
    (kept === undefined || (kept.role !== 'system' && kept.role !== signed.lastRole))
  )
}

/** `start`: the prefix that the turns after the compaction block continue; null if the conversation begins there. */
function walkMessages(
  tree: PromptTree,
  pieces: readonly Piece[],
  resumption: Resumption | null,
  start: PromptNode | null,
): Pick<Walk, 'before' | 'end' | 'afterAll'> {
  const before: PromptNode[] = []
  let node = tree.root
  let turn = node
  let role: string | null = null
  for (const [index, piece] of pieces.entries()) {
    if (piece.role !== role) turn = node
    role = piece.role
    if (resumption !== null && index === resumption.at) {
      node = start ?? tree.place(tree.root, 'notice', { type: 'compaction', id: resumption.signed.id })
      turn = node
      // The next message begins a new turn, even if it is an assistant message.
      role = null
    } else if (startsAnew(piece.block)) {
      node = tree.place(tree.root, 'assistant', plain(piece.block))
      turn = node
    } else if (!isThinking(piece.block)) node = tree.place(node, zoneOf(piece), plain(piece.block))
    before.push(turn)
  }
  return { before, end: role === 'assistant' ? turn : node, afterAll: node }
}

/** The block of a threshold compaction: blocks before it no longer count. */
function startsAnew(block: Block): boolean {
  return block.type === 'compaction' && block.content != null && block.signature == null
}

/** The query of a signed URL may change while the file stays the same, so it is ignored. */
function plain(block: Block): Block {
  const source: unknown = block.source
  if (!isObject(source) || typeof source.url !== 'string') return block
  return { type: block.type, source: { type: 'url', url: source.url.replace(/[?#].*$/, '') } }
}

interface Change {
  readonly signed: ThinkingSeal
  /** Index of the thinking block among the request's blocks. */
  readonly index: number
  readonly prefix: Walk
  readonly pieces: readonly Piece[]
}

/** The last sentence of a binding error: what differs from when the block was created. Null if that is not known. */
export function changeSentence(change: Change, tracker: PrefixWalker): string | null {
  const { signed, prefix, index } = change
  if (signed.system !== prefix.system) return 'The `system` prompt differs from when this block was created.'
  if (signed.tools !== prefix.tools) return 'The `tools` list differs from when this block was created.'
  const now = prefix.before[index]
  if (now !== undefined && signed.messages !== now.chain) return messageSentence(change, now, tracker)
  return 'An earlier thinking block is missing or out of order.'
}

function messageSentence(change: Change, now: PromptNode, tracker: PrefixWalker): string | null {
  const then = tracker.remembered(change.signed.messages)
  if (then === undefined) return null
  const position = firstDifference(pathTo(then), pathTo(now))
  const piece = change.pieces.slice(0, change.index).filter(({ block }) => !isThinking(block))[position]
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
