/** Paths of sessions and blobs in the Tidemark home: `TIDEMARK_HOME`, or a folder in the user's data directory. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { TidemarkError } from '@tidemark/core/errors'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'

export interface HomeEnvironment {
  readonly TIDEMARK_HOME?: string | undefined
  readonly XDG_DATA_HOME?: string | undefined
}

/** Returns the Tidemark home from the environment. Throws `bad-home` for a path that is not absolute. */
export function tidemarkHome(variables: HomeEnvironment = process.env, userHome: string = homedir()): string {
  const own = readPathVariable('TIDEMARK_HOME', variables.TIDEMARK_HOME)
  if (own !== null) return own
  const shared = readPathVariable('XDG_DATA_HOME', variables.XDG_DATA_HOME)
  return join(shared ?? join(userHome, '.local', 'share'), 'tidemark')
}

/**
 * Returns the path `given`, or `tidemarkHome()` if `given` is undefined. Throws `bad-home` if the path is not absolute.
 */
export function resolveHome(given: string | undefined): string {
  if (given === undefined) return tidemarkHome()
  return checkAbsolute('The home', given, 'Give one, or leave it out')
}

function readPathVariable(name: string, value: string | undefined): string | null {
  if (value === undefined || value === '') return null
  return checkAbsolute(name, value, 'Set it to one, or unset it')
}

function checkAbsolute(name: string, value: unknown, advice: string): string {
  if (typeof value === 'string' && isAbsolute(value)) return resolve(value)
  throw new TidemarkError(
    'bad-home',
    `${name} is ${formatErrorValue(value)}; expected an absolute path. ${advice}.`,
    {
      details: { name, value },
    },
  )
}

const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** Device names on Windows, which are not valid file names even with an extension. */
const DEVICE = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i
/**
 * Endings that a session id must not have. A session's folder is named after its id and could otherwise have the same
 * path as another session's log or lock file.
 */
const RESERVED_ENDING = /\.(jsonl|lock)$/i

/**
 * Checks that a session id is a valid file name on every operating system and cannot refer to a path outside its
 * folder.
 */
export function isSessionId(id: unknown): id is string {
  if (typeof id !== 'string' || !SESSION_ID.test(id)) return false
  return !id.endsWith('.') && !id.includes('..') && !DEVICE.test(id) && !RESERVED_ENDING.test(id)
}

/** Throws `bad-session-id` if the value is not a valid session id. */
export function checkSessionId(id: unknown): void {
  if (isSessionId(id)) return
  throw new TidemarkError(
    'bad-session-id',
    `${formatErrorValue(id)} cannot be a session id: use 1 to 128 letters, digits, dots, hyphens and underscores, beginning with a letter or digit, without two dots in a row or one at the end, not ending in .jsonl or .lock, and not a Windows device name (con, nul, com1 …).`,
    { details: { id } },
  )
}

/** The paths of a session's files. */
interface SessionPaths {
  readonly log: string
  readonly lock: string
  /** Folder for files of the session other than its log and its lock. */
  readonly folder: string
}

export const LOG_EXTENSION = '.jsonl'
export const LOCK_EXTENSION = '.lock'

export function sessionsFolder(home: string): string {
  return join(home, 'sessions')
}

export function blobsFolder(home: string): string {
  return join(home, 'blobs')
}

/**
 * Returns the paths of a session's files, which are always inside the Tidemark home. Throws `bad-session-id` for an
 * invalid id.
 */
export function sessionPaths(home: string, id: string): SessionPaths {
  checkSessionId(id)
  const folder = join(sessionsFolder(home), id)
  return { log: `${folder}${LOG_EXTENSION}`, lock: `${folder}${LOCK_EXTENSION}`, folder }
}
