/** The results of searching for logs, and why a file was not read as one. */
import { errorCode } from '../storage/file-system.ts'

/** A session's log and the logs of its subagents. */
export interface FoundLog {
  readonly path: string
  readonly agentPaths: readonly string[]
  /** Of the newest of these files. */
  readonly modifiedMs: number
  /** Of all these files. */
  readonly sizeBytes: number
}

export interface FoundLogs {
  /** Newest first. */
  readonly logs: readonly FoundLog[]
  /** Paths that could not be searched, with a one-line message each. */
  readonly problems: readonly FindProblem[]
}

export interface FindProblem {
  readonly path: string
  readonly message: string
}

export interface FindOptions {
  readonly signal?: AbortSignal
}

type RefusalReason =
  | 'missing' // no such file
  | 'not-a-file' // a directory, a pipe, a device
  | 'unreadable' // no permission, or compressed in a way that cannot be decompressed
  | 'empty'
  | 'binary'
  | 'unknown-format' // text, but not a log in a known format
  | 'newer-format' // a Tidemark log written by a later version

export interface LogRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: RefusalReason
  readonly message: string
}

/** `problem` continues a sentence that begins with the path. */
export function refuseLog(path: string, reason: RefusalReason, problem: string): LogRefusal {
  return { ok: false, path, reason, message: `${path} ${problem}.` }
}

export function refuseForReadError(path: string, error: unknown): LogRefusal {
  const code = errorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return refuseLog(path, 'missing', 'does not exist')
  const cause = error instanceof Error ? error.message : String(error)
  return refuseLog(path, 'unreadable', `cannot be read: ${cause}`)
}

/** The message for an output file that exists. */
export function fileExistsMessage(out: string): string {
  return `${out} exists already, and files are never overwritten: choose another name.`
}
