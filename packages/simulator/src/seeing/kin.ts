/** Which earlier request a new one goes on from: the one it shares the longest prefix with, the newest of those. */
import type { Scope } from '../cache/key.ts'
import type { Prompt } from '../cache/prompt.ts'
import { sameBlock } from '../cache/rendering.ts'
import type { Seen } from './request-log.ts'

export interface Kin {
  readonly seen: Seen
  /** How many positions are the same. */
  readonly common: number
}

export function kinOf(prompt: Prompt, scope: Scope, earlier: readonly Seen[]): Kin | null {
  let best: Kin | null = null
  for (const seen of earlier) {
    if (seen.scope.organization !== scope.organization || !isSameConversation(prompt, seen.prompt)) continue
    const common = commonLength(prompt, seen.prompt)
    if (best === null || common >= best.common) best = { seen, common }
  }
  return best
}

/** Many conversations share tools and system prompt; one of the first two blocks tells whose this is. */
function isSameConversation(one: Prompt, other: Prompt): boolean {
  return [0, 1].some((index) => {
    const mine = one.positions[one.starts.messages + index]
    const theirs = other.positions[other.starts.messages + index]
    return mine !== undefined && theirs !== undefined && sameBlock(mine.block, theirs.block)
  })
}

/** Two prompts that part never meet again: the tree makes a prefix one path, so halving finds the fork. */
function commonLength({ positions: one }: Prompt, { positions: other }: Prompt): number {
  let low = 0
  let high = Math.min(one.length, other.length)
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (one[middle - 1]?.chain === other[middle - 1]?.chain) low = middle
    else high = middle - 1
  }
  return low
}
