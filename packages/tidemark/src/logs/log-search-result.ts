/** Results of a search for logs, and the reasons for which a file is refused as a log. */
import { readErrorCode } from '../storage/file-system.ts'

/** The paths of a session's log and of its subagents' logs. */
export interface FoundLog {
  readonly path: string
  readonly agentPaths: readonly string[]
  /** Modification time of the newest of the session's files, in milliseconds. */
  readonly modifiedMs: number
  /** Total size of the session's files in bytes. */
  readonly sizeBytes: number
}

export interface FoundLogs {
  /** The logs that were found, newest first. */
  readonly logs: readonly FoundLog[]
  /** Paths that could not be searched, each with a one-line message. */
  readonly problems: readonly SearchProblem[]
}

export interface SearchProblem {
  readonly path: string
  readonly message: string
}

export interface FindLogsOptions {
  readonly signal?: AbortSignal
}

type RefusalReason =
  | 'missing' // The file does not exist.
  | 'not-a-file' // The path is a directory, a pipe or a device.
  | 'unreadable' // The file cannot be opened, or its compression is not supported.
  | 'empty'
  | 'binary'
  | 'unknown-format' // The file is text, but not a log in a known format.
  | 'newer-format' // A later version of Tidemark wrote the log.

export interface LogRefusal {
  readonly ok: false
  readonly path: string
  readonly reason: RefusalReason
  readonly message: string
}

/** Creates a refusal. `problem` completes a sentence that begins with the path, such as "is empty". */
export function refuseLog(path: string, reason: RefusalReason, problem: string): LogRefusal {
  return { ok: false, path, reason, message: `${path} ${problem}.` }
}

export function refuseForReadError(path: string, error: unknown): LogRefusal {
  const code = readErrorCode(error)
  if (code === 'ENOENT' || code === 'ENOTDIR') return refuseLog(path, 'missing', 'does not exist')
  const cause = error instanceof Error ? error.message : String(error)
  return refuseLog(path, 'unreadable', `cannot be read: ${cause}`)
}

/** Returns the message for an output file that already exists. */
export function formatFileExists(out: string): string {
  return `${out} exists already, and files are never overwritten: choose another name.`
}
