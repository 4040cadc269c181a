/** What a search for logs gives. */
import { errorCode } from '../storage/file-system.ts'

/** A session's log and those of the agents that worked for it. */
export interface FoundLog {
  readonly path: string
  readonly agentPaths: readonly string[]
  /** Of the newest of them. */
  readonly modifiedMs: number
  /** Of all of them. */
  readonly sizeBytes: number
}

export interface FoundLogs {
  /** Newest first. */
  readonly logs: readonly FoundLog[]
  /** What could not be looked at, in one line each. */
  readonly problems: readonly FindProblem[]
}

export interface FindProblem {
  readonly path: string
  readonly message: string
}

export interface FindOptions {
  readonly signal?: AbortSignal
}

// Why a file was not read as a log, in one line that a person can act on.

export type RefusalReason =
  | 'missing' // there is no such file
  | 'not-a-file' // a directory, a pipe, a device
  | 'unreadable' // the system does not let us read it, or it is packed in a way that cannot be undone
  | 'empty'
  | 'binary'
  | 'unknown-format' // text, but no log of a kind we know
  | 'newer-format' // one of ours, written by a later version

export interface LogRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: RefusalReason
  readonly message: string
}

/** `said` goes on from the name of the file. */
export function refuse(path: string, reason: RefusalReason, said: string): LogRefusal {
  return { ok: false, path, reason, message: `${path} ${said}.` }
}

export function refuseForError(path: string, error: unknown): LogRefusal {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return refuse(path, 'missing', 'does not exist')
  const said = error instanceof Error ? error.message : String(error)
  return refuse(path, 'unreadable', `cannot be read: ${said}`)
}
