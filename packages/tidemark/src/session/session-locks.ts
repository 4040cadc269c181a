/** The response that an open session waits for, and a lock for writes that must not come between the blocks of a response. */
import type { PendingModelCall } from '@tidemark/core/engine/call-model'
import type { WriteLock } from '@tidemark/core/engine/session-writer'

interface ReplyGate {
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
 * The request whose response a session waits for, and a gate that is closed while the response is streamed. Change both
 * only through the methods.
 */
export interface AwaitedResponse {
  /** Null if no response is awaited. */
  readonly request: PendingModelCall | null
  readonly gate: ReplyGate
  /** Sets the request, which was given to the caller; an earlier one is dropped. Does not wait. */
  begin(request: PendingModelCall): void
  /** Marks the response to this request as recorded. */
  settle(request: PendingModelCall): void
  /** Stops waiting, because no response will be recorded. Writes that waited for it continue. */
  abandon(): void
}

export function createAwaitedResponse(): AwaitedResponse {
  const awaited: Omit<AwaitedResponse, 'request'> & { request: PendingModelCall | null } = {
    request: null,
    gate: createReplyGate(),
    begin(request) {
      awaited.request?.admitted?.end()
      awaited.request = request
    },
    settle(request) {
      request.admitted?.end()
      if (awaited.request === request) awaited.request = null
    },
    abandon() {
      awaited.request?.admitted?.end()
      awaited.request = null
      awaited.gate.open()
    },
  }
  return awaited
}

/**
 * Returns a lock for writes that must wait while a reply is streamed. A reply may begin before the lock is acquired, so
 * the gate is checked again inside the lock.
 */
export function createReplyAwaitingLock(gate: ReplyGate, withLock: WriteLock): WriteLock {
  return async (work) => {
    for (;;) {
      await gate.waitUntilOpen()
      const done = await withLock(async () => (gate.isShut ? null : { value: await work() }))
      if (done !== null) return done.value
    }
  }
}
