/** Which thinking of earlier turns stays in the prompt: by the model's rule, or by the edit that overrides it. */
import { isObject, isThinking } from '../api.ts'
import type { Piece } from './piece.ts'

export type KeepThinking = 'all' | number

export interface ThinkingCleared {
  readonly pieces: readonly Piece[]
  /** Turns that lost their thinking. */
  readonly turns: number
}

/** Thinking of finished turns goes when the person speaks again; in the middle of a turn it stays. */
export function stripFinished(pieces: readonly Piece[]): readonly Piece[] {
  const prompt = lastPrompt(pieces)
  if (!pieces.some((piece, index) => index < prompt && isThinking(piece.block))) return pieces
  return pieces.filter((piece, index) => index >= prompt || !isThinking(piece.block))
}

/** Where the last turn of the person begins that is more than results of tools. */
function lastPrompt(pieces: readonly Piece[]): number {
  return pieces.findLastIndex(({ role, block }) => role === 'user' && block.type !== 'tool_result')
}

export function keepOf(keep: unknown, byDefault: KeepThinking): KeepThinking {
  if (keep === 'all' || (isObject(keep) && keep.type === 'all')) return 'all'
  return isObject(keep) && typeof keep.value === 'number' ? keep.value : byDefault
}

/** Keeps the thinking of the newest turns that have any. */
export function clearThinking(pieces: readonly Piece[], keep: KeepThinking): ThinkingCleared {
  if (keep === 'all') return { pieces, turns: 0 }
  const turnOf = turnNumbers(pieces)
  const thinking = new Set<number>()
  for (const [index, piece] of pieces.entries()) if (isThinking(piece.block)) thinking.add(turnOf[index] ?? 0)
  const cleared = new Set([...thinking].slice(0, Math.max(0, thinking.size - keep)))
  if (cleared.size === 0) return { pieces, turns: 0 }
  return {
    pieces: pieces.filter((piece, index) => !isThinking(piece.block) || !cleared.has(turnOf[index] ?? 0)),
    turns: cleared.size,
  }
}

/** The number of the turn each piece belongs to: a turn ends where the role changes. */
function turnNumbers(pieces: readonly Piece[]): readonly number[] {
  let turn = 0
  let role: string | null = null
  return pieces.map((piece) => {
    if (piece.role !== role) turn += 1
    role = piece.role
    return turn
  })
}
