/** Locks of an open session: the order of its log writes, and a gate that is closed while a reply is streamed. */
import type { WriteLock } from '@tidemark/core/engine/session-writer'

/**
 * Creates a lock that runs functions one at a time, in the order of the calls. A function that throws does not stop
 * later ones.
 */
export function createWriteQueue(): WriteLock {
  let last: Promise<unknown> = Promise.resolve()
  return (work) => {
    const next = last.then(work)
    last = next.catch(() => {})
    return next
  }
}

export interface ReplyGate {
  readonly isShut: boolean
  shut(): void
  open(): void
  /** Resolves when no reply is being streamed. */
  waitUntilOpen(): Promise<void>
}

export function createReplyGate(): ReplyGate {
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
    async waitUntilOpen() {
      while (waiting !== null) await waiting.promise
    },
  }
}

/**
 * Returns a lock for writes that must wait while a reply is streamed. A reply may begin before the lock is acquired, so
 * this is checked again inside the lock.
 */
export function lockBetweenReplies(gate: ReplyGate, withLock: WriteLock): WriteLock {
  return async (work) => {
    for (;;) {
      await gate.waitUntilOpen()
      const done = await withLock(async () => (gate.isShut ? null : { value: await work() }))
      if (done !== null) return done.value
    }
  }
}
