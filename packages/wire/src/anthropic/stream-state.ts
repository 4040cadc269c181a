/** What is known of a reply between two frames, and the only ways to go on from there. */
import {
  type Assembly,
  assemble,
  emptyAssembly,
  type Failure,
  type ReplyEvent,
  replyOf,
} from '@tidemark/core'
import { failure } from '../failure/classify.ts'

export interface StreamState {
  readonly assembly: Assembly
  /** The closing event is out: nothing may follow. */
  readonly closed: boolean
}

export type Step = readonly [StreamState, readonly ReplyEvent[]]

export const streamStart: StreamState = { assembly: emptyAssembly, closed: false }

export function emit(state: StreamState, events: readonly ReplyEvent[]): Step {
  return [{ ...state, assembly: events.reduce(assemble, state.assembly) }, events]
}

export function close(state: StreamState): Step {
  const reply = replyOf(state.assembly)
  if (reply === null) return fail(state, failure('bad-reply', 'The stream ended a reply that it never began'))
  return [{ ...state, closed: true }, [{ type: 'reply-ended', reply }]]
}

/** Ends the reply early, once: with what had arrived. */
export function fail(state: StreamState, failed: Failure): Step {
  if (state.closed) return [state, []]
  const reply = replyOf(state.assembly)
  return [{ ...state, closed: true }, [{ type: 'reply-failed', failure: failed, reply }]]
}

/** A frame that breaks the protocol. Going on would lose what it carried, so the reply ends here. */
export function failBadly(state: StreamState, what: string): Step {
  return fail(state, failure('bad-reply', `The stream broke its own protocol: ${what}`))
}
