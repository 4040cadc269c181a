/** What a search for logs gives. */

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
