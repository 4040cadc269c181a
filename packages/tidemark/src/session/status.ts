/** What a session is doing, for a status line: its operation, its phase, and how much of a reply has arrived. */
import type { TurnEvent } from '@tidemark/core/engine/events'

export interface SessionStatus {
  /** The operation that has reserved the session, such as `run` or `compact`; null if it is idle. */
  readonly operation: string | null
  /** The step of a rewrite or of hooks, as text for the user; null between such steps. */
  readonly phase: string | null
  /** `responding` from the first text of a reply or summary to its end, otherwise `requesting`. */
  readonly stream: 'requesting' | 'responding'
  /** Characters of the reply or summary that have arrived. */
  readonly received: number
  /** Changes with each rewrite of the context, so that a screen can drop what it has drawn. */
  readonly viewId: string
  /** The summary that is prepared beside the turns: there is none, it is being written, or it can be swapped in. */
  readonly preparedSummary: 'none' | 'preparing' | 'ready'
}

/** The part of the status that events change. */
export type StreamStatus = Pick<SessionStatus, 'phase' | 'stream' | 'received'>

export const IDLE_STATUS: StreamStatus = { phase: null, stream: 'requesting', received: 0 }

/** Returns the status after an event. Returns `status` itself if the event does not change it. */
export function updateStatus(status: StreamStatus, event: TurnEvent): StreamStatus {
  switch (event.type) {
    case 'phase':
      return event.phase === 'done' ? IDLE_STATUS : { ...status, phase: event.phase }
    case 'summary-progress': {
      const { characters } = event
      return { ...status, stream: characters > 0 ? 'responding' : 'requesting', received: characters }
    }
    case 'request-sent':
    case 'reply-dropped':
    case 'answered':
      return { ...status, stream: 'requesting', received: 0 }
    case 'turn-ended':
      return IDLE_STATUS
    case 'reply': {
      const { event: part } = event
      if (part.type !== 'block-grew') return status
      const { delta } = part
      const length = delta.kind === 'text' || delta.kind === 'thinking' ? delta.text.length : 0
      const added = delta.kind === 'input' ? delta.json.length : length
      const stream = delta.kind === 'text' ? 'responding' : status.stream
      return { ...status, stream, received: status.received + added }
    }
    default:
      return status
  }
}

/** Returns true if the difference is worth an event: more characters of the same reply are not. */
export function hasNewStatus(before: StreamStatus, after: StreamStatus): boolean {
  return before.phase !== after.phase || before.stream !== after.stream
}
