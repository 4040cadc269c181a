/** Where in a request, counted in blocks and positions, its markers stand. */
import type { CacheRules } from '../policy/profile.ts'
import type { AssembledRequest } from './assemble.ts'
import { type CacheKey, cacheKey, type Level } from './cache-key.ts'
import { type Count, type Counted, countBefore, countThrough, messageCount } from './count.ts'
import { isOffered } from './front.ts'
import type { Place } from './place.ts'
import { frontBlocks } from './shared-blocks.ts'

export interface Mark {
  readonly blocks: number
  readonly level: Level
  readonly ttl: string
}

/** In the order of the request. */
export function marksOf(request: AssembledRequest, cache: CacheRules): readonly Mark[] {
  return request.markers.map(({ place, control }) => {
    const ttl = typeof control.ttl === 'string' ? control.ttl : cache.defaultTtl
    return { blocks: blocksThrough(request, place), level: place.zone, ttl }
  })
}

function blocksThrough({ front, counted }: AssembledRequest, place: Place): number {
  const tools = front.tools.slice(0, place.zone === 'tools' ? place.index + 1 : undefined).filter(isOffered)
  if (place.zone !== 'messages') return tools.length + (place.zone === 'system' ? place.index + 1 : 0)
  return frontBlocks(front).length + countThrough(counted, place.index, place.block).blocks
}

/**
 * The position of the last of the first `blocks` blocks, as the provider counts: in front of the messages every
 * block is one, and thinking that it has left out is none.
 */
export function positionAt(request: AssembledRequest, blocks: number, strips: boolean): number {
  const { front, counted } = request
  const before = frontBlocks(front).length
  if (blocks <= before) return blocks
  const stripped = strips ? countAt(counted, Math.min(blocks - before, counted.end.prompt)).thoughts : 0
  return before + countAt(counted, blocks - before).positions - stripped
}

/** The count through the first `blocks` blocks of the messages. */
function countAt(counted: Counted, blocks: number): Count {
  const index = messageHolding(counted, blocks)
  return countThrough(counted, index, blocks - countBefore(counted, index).blocks - 1)
}

/** The message that holds the block of that number, the first being 1. */
export function messageHolding(counted: Counted, block: number): number {
  let [low, high] = [0, Math.max(0, messageCount(counted.messages) - 1)]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (countBefore(counted, middle).blocks < block) low = middle
    else high = middle - 1
  }
  return low
}

export function blocksOfRequest({ front, counted }: Pick<AssembledRequest, 'front' | 'counted'>): number {
  return frontBlocks(front).length + counted.end.blocks
}

export function keyOf({ front, counted, extra }: AssembledRequest): CacheKey {
  return cacheKey({
    parameters: { ...front.parameters, ...extra, model: front.model },
    traits: counted.end.traits,
    declaresTools: front.tools.some(isOffered),
  })
}
