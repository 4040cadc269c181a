/**
 * The ports: interfaces to the environment of the engine. `tidemark` implements them for Node; `tidemark/testing` has a
 * fake of each and a conformance suite that every implementation passes.
 */

import type { Payload } from '../context/payload.ts'
import type { Damage } from '../log/decode-log.ts'
import type { SessionRecord } from '../log/record.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import type { ReplyEvent } from './reply.ts'

/** The part of an AbortSignal that the engine uses. The engine polls it and adds no listeners. */
export type Signal = Pick<AbortSignal, 'aborted'>

export interface Clock {
  /** Returns milliseconds since 1970. */
  now(): number
  /** Resolves after `ms`, or as soon as `signal` is aborted. */
  sleep(ms: number, signal?: Signal): Promise<void>
  /** Sleeps without keeping the process alive, for work that may be left undone. Default: `sleep`. */
  sleepInBackground?(ms: number, signal?: Signal): Promise<void>
}

export interface IdGenerator {
  /** Returns an id that was never given before, and that can stand in a file name. `kind`: what it is for, such as `record`. */
  next(kind: string): string
}

/** A record as its creator passes it to the journal, which adds `seq` and `batch`. */
export type NewRecord<R extends SessionRecord = SessionRecord> = R extends unknown
  ? Omit<R, 'seq' | 'batch'>
  : never

export interface JournalReadResult {
  readonly exists: boolean
  /** `seq` of the last valid record, to be passed to `append` as `after`; 0 for an empty session. */
  readonly position: number
  readonly damage: readonly Damage[]
}

/** How an append ended. A storage that fails, as on a full disk, throws instead. */
export type AppendOutcome =
  | { readonly ok: true; readonly position: number; readonly records: readonly SessionRecord[] }
  /** Another writer appended records, and the log is now at `position`. Read the new records and decide again. */
  | { readonly ok: false; readonly reason: 'conflict'; readonly position: number }
  /** Another writer holds the lock of the session. */
  | { readonly ok: false; readonly reason: 'locked'; readonly owner: string; readonly message: string }

/** The append-only store of all session logs. */
export interface Journal {
  /**
   * Passes every valid record to `visit`, in order and in chunks, then returns the state of the whole log. With `from`, visits
   * only the records after that position. A line without `seq`, written by another program, takes the next position.
   */
  read(
    session: string,
    visit: (records: readonly SessionRecord[]) => void,
    from?: number,
  ): Promise<JournalReadResult>
  /**
   * Appends either all of `records` after position `after`, or none. The records are durable when the call returns.
   * Calls may overlap, and calls that wait at the same time share one flush to disk.
   */
  append(session: string, after: number, records: readonly NewRecord[]): Promise<AppendOutcome>
  /** Returns the ids of all sessions, in no particular order. A store may leave out those that do not begin with `prefix`. */
  list(prefix?: string): Promise<readonly string[]>
  /** Releases the lock of the session, so that another writer can open it. */
  release(session: string): Promise<void>
  /**
   * Returns the sessions whose logs have one of these texts near the end, the newest first. Without this method, a
   * client that does not name its conversation begins a new one in another process.
   */
  findRecent?(texts: readonly string[]): Promise<readonly string[]>
}

/** Content-addressed storage: equal bytes have the same id, and the content of an id never changes. */
export interface BlobStore {
  /** Stores bytes and returns their id. Throws for a string, which could be encoded in several ways. */
  put(bytes: Uint8Array): Promise<string>
  /** Returns the content of a blob; null if there is no blob with this id. */
  get(id: string): Promise<Uint8Array | null>
  has(id: string): Promise<boolean>
}

/** The input of one model call. */
export interface ModelStreamInput {
  readonly payload: Payload
  /** Exact JSON of blocks that parsing and stringifying would change: a map per message, keyed by block index. */
  readonly raw?: readonly (ReadonlyMap<number, string> | undefined)[]
  /** The request that `payload` was built from. With it, a codec can encode only the new messages. */
  readonly request?: AssembledRequest
}

/** Access to a model: sends requests and streams replies. */
export interface Model {
  /**
   * Streams the reply, ending with exactly one `reply-ended` or `reply-failed`. Provider and network errors are
   * reported by `reply-failed` and never thrown. A model retries a call only before its first event, so no event is
   * emitted twice; the turn repeats a call whose reply breaks off later.
   */
  stream(call: ModelStreamInput, signal?: Signal): AsyncIterable<ReplyEvent>
}

// Time limits are a port, because core creates neither timers nor signals. Every wait for a hook, a file or a model
// uses this port, so that an abort takes effect at once.

/** The value of work that ended in time, or why it did not. */
export type DeadlineResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly why: 'timeout' | 'aborted' }

export interface Deadlines {
  /**
   * Runs `work` with a time limit of `ms`. The signal passed to `work` is aborted at the limit, when `signal` is
   * aborted, or when the work ends. Work that ignores it is abandoned and does not keep the process alive. An exception
   * thrown in time is rethrown. If `signal` is already aborted, the work is not started.
   */
  within<T>(ms: number, work: (signal: Signal) => Promise<T>, signal?: Signal): Promise<DeadlineResult<T>>
}

/** The notes of one session as they are stored. */
export interface StoredNotes {
  /** Markdown, as `formatNotes` makes it. */
  readonly text: string
  /** uuid of the last record that the notes cover; null if that is unknown, as after an edit by hand of the coverage. */
  readonly coveredUuid: string | null
  /** Milliseconds since 1970. */
  readonly writtenAt: number
  readonly writtenBy: 'model' | 'local'
}

/** The right to update the notes. */
export interface NotesClaim {
  /** Ends the update. Does nothing if the claim was taken over as dead. */
  release(): Promise<void>
}

/** Stores the notes of sessions, private to the user. Every write is atomic: a reader sees the old notes or the new. */
export interface NotesStore {
  /** Returns null if the session has no notes. Throws if they cannot be read. */
  read(session: string): Promise<StoredNotes | null>
  write(session: string, notes: StoredNotes): Promise<void>
  /** Returns the template and the prompt that the user put in place of the default ones. */
  readOverrides(session: string): Promise<{ readonly template?: string; readonly prompt?: string }>
  /** Where the model and the user can read the notes, such as a file path. */
  path(session: string): string
  /**
   * Claims the notes for one update. Returns null while another update, in any process, is running. An update that
   * began `deadAfterMs` ago or more counts as dead, and its claim is taken over.
   */
  claim(
    session: string,
    at: { readonly now: number; readonly deadAfterMs: number },
  ): Promise<NotesClaim | null>
  /** Returns when the running update began, in milliseconds since 1970; null if none is running. */
  readClaim(session: string): Promise<number | null>
}
