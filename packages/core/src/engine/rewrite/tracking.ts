/** Which turn it is since the last compaction, and how closely one follows another: a chain means that too much comes back. */
import type { AutoPolicy } from '../../policy/groups/turn-policy.ts'

export interface Tracking {
  /** Turns since the last compaction, or since the session was opened. */
  readonly turns: number
  readonly turnId: string
  /** The turn in which the last compaction was made; null where none was. */
  readonly compactedIn: string | null
}

export function startTracking(turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: null }
}

/** A call to the model was answered. */
export function nextTurn(tracking: Tracking, turnId: string): Tracking {
  return { ...tracking, turns: tracking.turns + 1, turnId }
}

/** A compaction was made in the present turn: counting begins anew. */
export function compactedNow(tracking: Tracking, turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: tracking.turnId }
}

/** How a compaction that would be made now stands to the one before it. */
export interface ChainLink {
  readonly isClose: boolean
  readonly turnsBetween: number
  readonly previousTurn: string | null
}

export function chainLink(tracking: Tracking, { closeTurns }: AutoPolicy): ChainLink {
  const { turns, compactedIn } = tracking
  const isClose = compactedIn !== null && turns <= closeTurns
  return { isClose, turnsBetween: turns, previousTurn: compactedIn }
}
