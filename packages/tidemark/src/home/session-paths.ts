import { join } from 'node:path'
import { checkSessionId } from './session-id.ts'

/** Where the parts of a session are. */
export interface SessionPaths {
  readonly log: string
  readonly lock: string
  /** For what belongs to the session beside its log. */
  readonly folder: string
}

export const LOG_ENDING = '.jsonl'

export function sessionsFolder(home: string): string {
  return join(home, 'sessions')
}

export function blobsFolder(home: string): string {
  return join(home, 'blobs')
}

/** Refuses an id that could lead out of the sessions folder. */
export function sessionPaths(home: string, id: string): SessionPaths {
  checkSessionId(id)
  const folder = join(sessionsFolder(home), id)
  return { log: `${folder}${LOG_ENDING}`, lock: `${folder}.lock`, folder }
}
