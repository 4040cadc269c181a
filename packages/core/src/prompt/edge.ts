/**
 * Where the edge stands: at the first result that tier 1 could still clear. It stays there until a rewrite of
 * the view moves it, whatever else becomes clearable or is pinned meanwhile: a marker that wanders finds nothing.
 * The first request after the move stands on both places: what survived the clearing was kept up to the old one.
 */
import { type CallPlaces, placeOfResult } from './place.ts'

export interface HeldEdge {
  /** The call whose result is the first that could be cleared; null where there is none. */
  readonly result: string | null
  /** The one it moved from, until a request that stood on both has been answered. */
  readonly left: string | null
  readonly rewrittenAt: number
}

export const NO_EDGE: HeldEdge = { result: null, left: null, rewrittenAt: Number.NEGATIVE_INFINITY }

export interface EdgeQuestion {
  /** The call whose result tier 1 would clear first, as things are now. */
  readonly firstClearable: string | null
  /** When the view was last rewritten … */
  readonly rewrittenAt: number
  /** … and whether a response has come since. */
  readonly isAnswered: boolean
  readonly flat: CallPlaces
}

export function holdEdge(held: HeldEdge, question: EdgeQuestion): HeldEdge {
  const { firstClearable, rewrittenAt, isAnswered, flat } = question
  if (held.rewrittenAt !== rewrittenAt) {
    return { result: firstClearable, left: isAnswered ? null : held.result, rewrittenAt }
  }
  const stays = held.result !== null && placeOfResult(flat, held.result) !== null
  const left = isAnswered ? null : held.left
  if (stays && left === held.left) return held
  return { result: stays ? held.result : firstClearable, left, rewrittenAt }
}
