/**
 * One session, many hands: a turn under way, a summary in the making, messages that arrive. All of them work on one
 * state, and whatever they write goes through one queue, so that no two use the same position of the log.
 */
import type { Alone, SessionState, Signal, TurnHost, TurnRun } from '@tidemark/core'

export interface SharedSession {
  state: SessionState
  readonly alone: Alone
}

export function shareSession(state: SessionState): SharedSession {
  return { state, alone: createQueue() }
}

/** A run whose state is the session's. */
export function runOn(
  shared: SharedSession,
  host: TurnHost,
  { signal, alone = shared.alone }: { readonly signal?: Signal; readonly alone?: Alone } = {},
): TurnRun {
  return {
    get state() {
      return shared.state
    },
    set state(next) {
      shared.state = next
    },
    host,
    signal,
    alone,
  }
}

/** One after the other, in the order in which they were asked for; one that throws holds up nobody. */
export function createQueue(): Alone {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

/** A door that can be shut for a while: those who come meanwhile wait for it. */
export interface Gate {
  readonly isShut: boolean
  shut(): void
  open(): void
  passed(): Promise<void>
}

export function createGate(): Gate {
  let waiting: PromiseWithResolvers<void> | null = null
  return {
    get isShut() {
      return waiting !== null
    },
    shut() {
      waiting ??= Promise.withResolvers<void>()
    },
    open() {
      waiting?.resolve()
      waiting = null
    },
    async passed() {
      while (waiting !== null) await waiting.promise
    },
  }
}
