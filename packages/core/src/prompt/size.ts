/** Tokens of a prefix: as usage told them, or read off between two that it told by what lies between. */
import type { Block } from '../conversation/block.ts'
import type { JsonObject } from '../conversation/json.ts'
import type { List } from '../conversation/list.ts'
import { jsonBytes } from '../conversation/utf8.ts'
import type { AssembledRequest } from './assemble.ts'
import { blocksIn, countBefore, messageAt } from './count.ts'
import type { KnownSize } from './lineage.ts'
import { blocksOfRequest, messageHolding } from './marks.ts'
import { frontBlocks } from './shared-blocks.ts'

/** About how many tokens a block is: an estimator's, where there is one. */
export type Weigh = (block: Block | JsonObject) => number

export interface Sized {
  readonly request: AssembledRequest
  readonly sizes: List<KnownSize>
  readonly weigh?: Weigh | undefined
}

export interface PrefixSize {
  readonly tokens: number
  /** Told by usage, and not read off. */
  readonly isKnown: boolean
}

const BYTES_PER_TOKEN = 4
const byBytes: Weigh = (block) => (jsonBytes(block) ?? 0) / BYTES_PER_TOKEN

export function knownSize(sizes: List<KnownSize>, blocks: number): number | null {
  for (let index = sizes.length - 1; index >= 0; index -= 1) {
    const size = sizes.at(index)
    if (size?.blocks === blocks) return size.tokens
  }
  return null
}

export function sizeAt(sized: Sized, blocks: number): PrefixSize {
  const known = knownSize(sized.sizes, blocks)
  if (known !== null) return { tokens: known, isKnown: true }
  let below: KnownSize = { blocks: 0, tokens: 0 }
  let above: KnownSize | null = null
  for (const size of sized.sizes) {
    if (size.blocks < blocks && size.blocks > below.blocks) below = size
    if (size.blocks > blocks && size.blocks < (above?.blocks ?? Number.POSITIVE_INFINITY)) above = size
  }
  const inside = weightBetween(sized, below.blocks, blocks)
  if (above === null) return { tokens: below.tokens + Math.round(inside), isKnown: false }
  const all = inside + weightBetween(sized, blocks, above.blocks)
  const share = all === 0 ? 0 : inside / all
  return { tokens: Math.round(below.tokens + share * (above.tokens - below.tokens)), isKnown: false }
}

/** Of the blocks behind the first `from`, up to and including number `to`. */
function weightBetween({ request, weigh = byBytes }: Sized, from: number, to: number): number {
  const front = frontBlocks(request.front)
  let weight = front.slice(from, to).reduce((sum, block) => sum + weigh(block), 0)
  const end = Math.min(to, blocksOfRequest(request))
  for (let at = Math.max(from, front.length); at < end; at += 1) {
    const block = blockAt(request, at - front.length)
    weight += block === undefined ? 0 : weigh(block)
  }
  return weight
}

function blockAt({ counted }: AssembledRequest, at: number): Block | undefined {
  const index = messageHolding(counted, at + 1)
  const message = messageAt(counted.messages, index)
  return message === undefined ? undefined : blocksIn(message)[at - countBefore(counted, index).blocks]
}
