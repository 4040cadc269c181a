/** The sentence at the end of a binding error: what is different from when the block was made, as far as known. */
import { isThinking } from '../api.ts'
import type { PromptNode } from '../cache/prompt-node.ts'
import { type Piece, pathOf } from './piece.ts'
import type { PrefixWalker, Walk } from './prefix.ts'
import type { ThinkingSeal } from './signature.ts'

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
