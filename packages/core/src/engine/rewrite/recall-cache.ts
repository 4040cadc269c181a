/**
 * A session that was opened again: what its log tells of the cache is read before anything is decided by it. Taken
 * for cold, a warm cache would be rewritten for nothing, and what was deleted from it would come back.
 */
import type { AssembledRequest } from '../../prompt/assemble.ts'
import { nextRequest } from '../next-request.ts'
import type { SessionState } from '../session-state.ts'
import type { TurnHost } from '../turn-host.ts'

/** With the edge where the last request had it: what is cleared next is read up to there. */
export function withCache<State extends SessionState>(state: State, host: TurnHost): State {
  const { standing } = state.told
  if (state.lineage !== null || standing === null) return state
  const { edge, lineage } = nextRequest(state, standing, host).state
  return { ...state, edge, lineage }
}

/** Before the first request since then, the next one stands in: its markers stand where those of the last did. */
export function lastRequest(state: SessionState, host: TurnHost): AssembledRequest | null {
  const { standing } = state.told
  if (state.sent !== null || standing === null) return state.sent
  return nextRequest(state, standing, host).request
}
