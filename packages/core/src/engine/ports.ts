/**
 * What the engine needs of the world, as plain interfaces. `tidemark` has the real ones for Node and, in
 * `tidemark/testing`, a fake of each and a suite of named cases that every implementation passes.
 */

import type { Payload } from '../context/payload.ts'
import type { Damage } from '../log/batch.ts'
import type { SessionRecord } from '../log/record.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { ReplyEvent } from './reply.ts'

/** What the engine reads of an AbortSignal: it asks, and never listens. */
export type Signal = Pick<AbortSignal, 'aborted'>

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  sleep(ms: number, signal?: Signal): Promise<void>
}

export interface Ids {
  next(kind: string): string
}

/** A record as the caller makes it: the journal adds `seq` and `batch`. */
export type NewRecord<R extends SessionRecord = SessionRecord> = R extends unknown
  ? Omit<R, 'seq' | 'batch'>
  : never

export interface JournalState {
  readonly exists: boolean
  /** `seq` of the last record that counts; 0 for a session without any. What `append` takes as `after`. */
  readonly position: number
  readonly damage: readonly Damage[]
}

export type AppendOutcome =
  | { readonly ok: true; readonly position: number; readonly records: readonly SessionRecord[] }
  /** The log is not where the caller thought, but at `position`: read on from `after` and decide anew. */
  | { readonly ok: false; readonly reason: 'conflict'; readonly position: number }
  /** Another writer holds the session. */
  | { readonly ok: false; readonly reason: 'locked'; readonly owner: string; readonly message: string }

/** Append-only log of sessions. */
export interface Journal {
  /**
   * Hands every record that counts to `visit`, in order and in pieces, then tells the state of the whole log.
   * With `from`, only the records behind that position (another tool's line, which says none, has the next):
   * what was read up to there need not be read again.
   */
  read(
    session: string,
    visit: (records: readonly SessionRecord[]) => void,
    from?: number,
  ): Promise<JournalState>
  /**
   * All of `records` or none of them, after position `after`, durable when it returns. Calls may overlap:
   * those waiting together are made durable together.
   */
  append(session: string, after: number, records: readonly NewRecord[]): Promise<AppendOutcome>
  /** Ids of the sessions there are, in no order. */
  list(): Promise<readonly string[]>
  /** Lets go of the session, so that another writer can have it. */
  release(session: string): Promise<void>
}

/** Content-addressed bytes: the same bytes have the same id, and an id never changes what it stands for. */
export interface BlobStore {
  /** Refuses what is no Uint8Array: a text, say, could be stored in many ways. */
  put(bytes: Uint8Array): Promise<string>
  /** Null where the store has no such blob. */
  get(id: string): Promise<Uint8Array | null>
  has(id: string): Promise<boolean>
}

/** One call to a model. */
export interface ModelCall {
  readonly payload: Payload
  /** Exact texts beside the messages, by index of block, where a block does not survive parse and stringify. */
  readonly raw?: readonly (ReadonlyMap<number, string> | undefined)[]
  /** The request that `payload` spells: a codec that takes this instead spells only what is new about it. */
  readonly request?: AssembledRequest
}

export interface Model {
  /**
   * The reply as it comes, ending in exactly one `reply-ended` or `reply-failed`. What the provider or the
   * network does is told by that event; it never throws for it. Faults are tried again only while nothing
   * has arrived, so no word of a reply comes twice.
   */
  stream(call: ModelCall, signal?: Signal): AsyncIterable<ReplyEvent>
}

// Work bounded in time, as a port: core can make neither timers nor signals. Whoever waits for a hook, a file or a
// model waits through this, so that a person's abort is heard at once, whatever the thing waited for does.

export type Bounded<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: 'timeout' | 'aborted' }

export interface Deadlines {
  /**
   * Runs `work` with a signal that is aborted when `ms` have passed, when `signal` is, and when the work is over, so
   * that nothing it began outlives it. Work that does not listen is left; nothing keeps the process alive for it.
   * What `work` throws in time is thrown on. With a signal already aborted the work is not begun.
   */
  within<T>(ms: number, work: (signal: Signal) => Promise<T>, signal?: Signal): Promise<Bounded<T>>
}
