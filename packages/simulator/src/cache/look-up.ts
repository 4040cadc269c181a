/** From a breakpoint back to an entry some earlier request wrote: at most 20 positions, itself the first. */
import type { CacheKey } from './key.ts'
import { levelAt, type Prompt } from './prompt.ts'
import type { PromptNode } from './prompt-node.ts'
import type { CacheStore } from './store.ts'

export const LOOK_BACK = 20

export interface Hit {
  readonly position: number
  /** The breakpoint from which it was found, as a position. */
  readonly from: number
}

export interface LookUp {
  readonly prompt: Prompt
  readonly key: CacheKey
  readonly store: CacheStore
  readonly now: number
  readonly deleted: ReadonlySet<string>
}

export function keyAt(prompt: Prompt, key: CacheKey, position: number): string {
  return `${key.prefix[levelAt(prompt, position)]}|${prompt.positions[position]?.chain}`
}

/** The highest position that can be read, looking from the last breakpoint on backwards. */
export function findHit(look: LookUp): Hit | null {
  const { prompt } = look
  for (const breakpoint of prompt.breakpoints.toReversed()) {
    if (!breakpoint.explicit) continue
    const position = lookBack(look, breakpoint.position)
    if (position !== null) return { position, from: breakpoint.position }
  }
  return null
}

function lookBack({ prompt, key, store, now, deleted }: LookUp, from: number): number | null {
  let end = from
  for (let seen = 0; seen < LOOK_BACK && end >= 0; seen += 1) {
    const start = runStart(prompt.positions, end)
    for (let position = end; position >= start; position -= 1)
      if (store.read(keyAt(prompt, key, position), now, deleted) !== null) return position
    end = start - 1
  }
  return null
}

const RUNS = new Set(['tool_use', 'tool_result'])

/** Calls in a row are one position, and so are results in a row: the first of them. */
export function runStart(positions: readonly PromptNode[], end: number): number {
  const last = positions[end]
  if (last === undefined || !RUNS.has(last.block.type)) return end
  let start = end
  while (isSameRun(last, positions[start - 1])) start -= 1
  return start
}

function isSameRun(one: PromptNode, other: PromptNode | undefined): boolean {
  return other !== undefined && other.zone === one.zone && other.block.type === one.block.type
}
