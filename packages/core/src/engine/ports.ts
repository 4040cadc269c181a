/**
 * What the engine needs from its environment, as interfaces. `tidemark` implements them for Node and, in
 * `tidemark/testing`, has a fake of each and a conformance suite that every implementation passes.
 */

import type { Payload } from '../context/payload.ts'
import type { Damage } from '../log/batch.ts'
import type { SessionRecord } from '../log/record.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { ReplyEvent } from './reply.ts'

/** The part of an AbortSignal that the engine reads; it adds no listeners. */
export type Signal = Pick<AbortSignal, 'aborted'>

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  sleep(ms: number, signal?: Signal): Promise<void>
}

export interface IdGenerator {
  next(kind: string): string
}

/** A record as the caller creates it: the journal adds `seq` and `batch`. */
export type NewRecord<R extends SessionRecord = SessionRecord> = R extends unknown
  ? Omit<R, 'seq' | 'batch'>
  : never

export interface JournalState {
  readonly exists: boolean
  /** `seq` of the last valid record; 0 for an empty session. Passed to `append` as `after`. */
  readonly position: number
  readonly damage: readonly Damage[]
}

export type AppendOutcome =
  | { readonly ok: true; readonly position: number; readonly records: readonly SessionRecord[] }
  /** Another writer appended: the log is at `position`. Read from `after` on and decide again. */
  | { readonly ok: false; readonly reason: 'conflict'; readonly position: number }
  /** Another writer holds the session. */
  | { readonly ok: false; readonly reason: 'locked'; readonly owner: string; readonly message: string }

/** Append-only log of sessions. */
export interface Journal {
  /**
   * Passes every valid record to `visit`, in order and in chunks, then returns the state of the whole log. With `from`,
   * only the records after that position (a line of another tool, which has none, counts as the next).
   */
  read(
    session: string,
    visit: (records: readonly SessionRecord[]) => void,
    from?: number,
  ): Promise<JournalState>
  /**
   * Appends all of `records` or none, after position `after`; durable when it returns. Calls may overlap: those that
   * wait together are made durable together.
   */
  append(session: string, after: number, records: readonly NewRecord[]): Promise<AppendOutcome>
  /** Ids of all sessions, in no particular order. */
  list(): Promise<readonly string[]>
  /** Releases the session, so that another writer can open it. */
  release(session: string): Promise<void>
}

/** Content-addressed bytes: equal bytes have equal ids, and the content of an id never changes. */
export interface BlobStore {
  /** Throws for anything but a Uint8Array: a string could be encoded in several ways. */
  put(bytes: Uint8Array): Promise<string>
  /** Null if there is no such blob. */
  get(id: string): Promise<Uint8Array | null>
  has(id: string): Promise<boolean>
}

/** One call to a model. */
export interface ModelCall {
  readonly payload: Payload
  /** Exact JSON of blocks that do not survive parse and stringify: per message, by index of the block. */
  readonly raw?: readonly (ReadonlyMap<number, string> | undefined)[]
  /** The request behind `payload`: a codec that uses it encodes only what is new. */
  readonly request?: AssembledRequest
}

export interface Model {
  /**
   * The reply as it arrives, ending with exactly one `reply-ended` or `reply-failed`. Provider and network errors are
   * reported by that event and never thrown. They are retried only while nothing has arrived, so nothing is emitted twice.
   */
  stream(call: ModelCall, signal?: Signal): AsyncIterable<ReplyEvent>
}

// Timeouts, as a port: core creates neither timers nor signals. Every wait for a hook, a file or a model goes through it,
// so that an abort takes effect at once.

export type BoundedResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: 'timeout' | 'aborted' }

export interface Deadlines {
  /**
   * Runs `work` with a signal that is aborted after `ms`, with `signal`, and when the work ends, so that nothing it
   * started outlives it. Work that ignores the signal is abandoned and does not keep the process alive. What `work`
   * throws in time is rethrown. If `signal` is aborted already, the work is not started.
   */
  within<T>(ms: number, work: (signal: Signal) => Promise<T>, signal?: Signal): Promise<BoundedResult<T>>
}
