/**
 * Computes the prefix that a thinking block is bound to: `system`, the tools that are not deferred, and all earlier
 * messages as the client sent them, except thinking. The prefixes are stored in a tree, so that an error can name the
 * first block that differs.
 */

import { isToolInPrompt } from '../prompt-cache/cache-key.ts'
import { toPromptZone, toToolBlock } from '../prompt-cache/prompt.ts'
import type { PromptTree, PromptTreeNode, PromptZone } from '../prompt-cache/prompt-tree.ts'
import {
  type Block,
  formatBlockPath,
  isObject,
  isThinkingBlock,
  type MessagesBody,
  type RequestBlock,
  toBlocks,
} from '../protocol/messages-request.ts'
import type { CompactionSignature, ThinkingSignature } from './signatures.ts'

export interface ThinkingPrefixes {
  /** Hash of the system prompt. */
  readonly system: string
  /** Hash of the tools that are not deferred. */
  readonly tools: string
  /**
   * One entry per message block of the request, including thinking blocks: the prefix before the turn that contains
   * the block.
   */
  readonly before: readonly PromptTreeNode[]
  /** One entry per message block of the request: the prefix that ends with the block. */
  readonly after: readonly PromptTreeNode[]
  /** The prefix that new thinking will be bound to. It ends before the current assistant turn. */
  readonly end: PromptTreeNode
  /** The prefix that ends with the last message of the request. */
  readonly afterAll: PromptTreeNode
}

/** The signed compaction block at the start of a conversation. */
interface CompactedStart {
  readonly signed: CompactionSignature
  /** Index of the compaction block in the list of all message blocks of the request. */
  readonly at: number
}

export interface ThinkingPrefixTracker {
  /** Computes the prefixes of a request. `resumption`: null without a signed compaction block. */
  track(
    body: MessagesBody,
    pieces: readonly RequestBlock[],
    resumption: CompactedStart | null,
  ): ThinkingPrefixes
  /**
   * Returns the prefix after a threshold compaction. It contains only the compaction block, because the blocks before
   * the compaction block are ignored.
   */
  startAfter(block: Block): PromptTreeNode
  /** Returns the stored prefix with this hash; undefined if it was never stored or was dropped to save memory. */
  find(chain: string): PromptTreeNode | undefined
  remember(node: PromptTreeNode): void
}

const MAX_REMEMBERED_PREFIXES = 4_096

export function createThinkingPrefixTracker(tree: PromptTree): ThinkingPrefixTracker {
  const remembered = new Map<string, PromptTreeNode>()

  function remember(node: PromptTreeNode): void {
    if (remembered.size >= MAX_REMEMBERED_PREFIXES) remembered.delete(remembered.keys().next().value ?? '')
    remembered.set(node.chain, node)
  }

  function resume(chain: string): PromptTreeNode {
    const node = remembered.get(chain) ?? tree.resume(chain)
    remember(node)
    return node
  }

  return {
    remember,
    find: (chain) => remembered.get(chain),
    startAfter: (block) => tree.addBlock(tree.root, 'assistant', ignoreUrlQuery(block)),
    track(body, pieces, resumption) {
      const front = {
        system: hashBlocks(tree, 'system', toBlocks(body.system)),
        tools: hashBlocks(tree, 'tools', (body.tools ?? []).filter(isToolInPrompt).map(toToolBlock)),
      }
      const follows =
        resumption !== null && continuesPrefix(resumption.signed, front, pieces[resumption.at + 1])
      const start = follows ? resume(resumption.signed.messages) : null
      return { ...front, ...trackMessages(tree, pieces, resumption, start) }
    },
  }
}

function hashBlocks(tree: PromptTree, zone: PromptZone, blocks: Iterable<Block>): string {
  let node = tree.root
  for (const block of blocks) node = tree.addBlock(node, zone, block)
  return node.chain
}

/**
 * Checks whether the messages after a compaction block count as a continuation of the summarized messages. `system`
 * and `tools` must be unchanged.
 */
function continuesPrefix(
  signed: CompactionSignature,
  front: Pick<ThinkingPrefixes, 'system' | 'tools'>,
  kept: RequestBlock | undefined,
): boolean {
  return (
    signed.preserves &&
    signed.system === front.system &&
    signed.tools === front.tools &&
    (kept === undefined || (kept.role !== 'system' && kept.role !== signed.lastRole))
  )
}

/**
 * Computes the prefix before each message block. `start` is the prefix of the summarized messages if later messages
 * continue that prefix. It is null if the prefix begins with the compaction block.
 */
function trackMessages(
  tree: PromptTree,
  pieces: readonly RequestBlock[],
  resumption: CompactedStart | null,
  start: PromptTreeNode | null,
): Pick<ThinkingPrefixes, 'before' | 'after' | 'end' | 'afterAll'> {
  const before: PromptTreeNode[] = []
  const after: PromptTreeNode[] = []
  let node = tree.root
  let turn = node
  let role: string | null = null
  for (const [index, piece] of pieces.entries()) {
    if (piece.role !== role) turn = node
    role = piece.role
    if (resumption !== null && index === resumption.at) {
      node = start ?? tree.addBlock(tree.root, 'notice', { type: 'compaction', id: resumption.signed.id })
      turn = node
      // The message after a compaction block begins a new turn, even if both have the same role.
      role = null
    } else if (isThresholdBlock(piece.block)) {
      node = tree.addBlock(tree.root, 'assistant', ignoreUrlQuery(piece.block))
      turn = node
    } else if (!isThinkingBlock(piece.block))
      node = tree.addBlock(node, toPromptZone(piece), ignoreUrlQuery(piece.block))
    before.push(turn)
    after.push(node)
  }
  return { before, after, end: role === 'assistant' ? turn : node, afterAll: node }
}

/**
 * Checks whether a block is a compaction block with content and without a signature, as threshold compaction creates
 * it.
 */
function isThresholdBlock(block: Block): boolean {
  return block.type === 'compaction' && block.content != null && block.signature == null
}

/**
 * Removes the query from the source URL of a block. The query of a signed URL may change while the file stays the
 * same.
 */
function ignoreUrlQuery(block: Block): Block {
  const source: unknown = block.source
  if (!isObject(source) || typeof source.url !== 'string') return block
  return { type: block.type, source: { type: 'url', url: source.url.replace(/[?#].*$/, '') } }
}

interface PrefixChange {
  readonly signed: ThinkingSignature
  /** Index of the thinking block in the list of all message blocks of the request. */
  readonly index: number
  readonly boundPrefix: ThinkingPrefixes
  readonly pieces: readonly RequestBlock[]
}

/**
 * Returns the sentence of an error message that says what changed before a thinking block. Null if the change cannot
 * be determined.
 */
export function describePrefixChange(change: PrefixChange, tracker: ThinkingPrefixTracker): string | null {
  const { signed, boundPrefix, index } = change
  if (signed.system !== boundPrefix.system)
    return 'The `system` prompt differs from when this block was created.'
  if (signed.tools !== boundPrefix.tools) return 'The `tools` list differs from when this block was created.'
  const now = boundPrefix.before[index]
  if (now !== undefined && signed.messages !== now.chain) return describeMessageChange(change, now, tracker)
  return 'An earlier thinking block is missing or out of order.'
}

function describeMessageChange(
  change: PrefixChange,
  now: PromptTreeNode,
  tracker: ThinkingPrefixTracker,
): string | null {
  const then = tracker.find(change.signed.messages)
  if (then === undefined) return null
  const known = new Set(listChains(then))
  const added = new Set(listChains(now).filter((chain) => !known.has(chain)))
  const { after } = change.boundPrefix
  const piece = change.pieces.find((_, index) => added.has(after[index]?.chain ?? ''))
  return piece === undefined
    ? 'Content before this block is missing.'
    : `Content before this block differs from when it was created, first at \`${formatBlockPath(piece)}\`.`
}

function listChains(node: PromptTreeNode): readonly string[] {
  const chains: string[] = []
  for (let at: PromptTreeNode | null = node; at !== null; at = at.parent) chains.push(at.chain)
  return chains
}
