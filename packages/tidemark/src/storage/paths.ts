/** Where Tidemark keeps what it keeps: `TIDEMARK_HOME`, or a folder of its own in the user's data directory. */
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { TidemarkError } from '@tidemark/core'
import { show } from '../platform/argument-errors.ts'

export interface HomeVariables {
  readonly TIDEMARK_HOME?: string | undefined
  readonly XDG_DATA_HOME?: string | undefined
}

/** An empty variable counts as unset; a relative one is refused, since its meaning would change with the folder. */
export function tidemarkHome(variables: HomeVariables = process.env, userHome: string = homedir()): string {
  const own = fromVariable('TIDEMARK_HOME', variables.TIDEMARK_HOME)
  if (own !== null) return own
  const shared = fromVariable('XDG_DATA_HOME', variables.XDG_DATA_HOME)
  return join(shared ?? join(userHome, '.local', 'share'), 'tidemark')
}

/** The home that a caller gave, or `tidemarkHome()` where it gave none. */
export function homeOr(given: string | undefined): string {
  if (given === undefined) return tidemarkHome()
  return absolute('The home', given, 'Give one, or leave it out')
}

function fromVariable(name: string, value: string | undefined): string | null {
  if (value === undefined || value === '') return null
  return absolute(name, value, 'Set it to one, or unset it')
}

function absolute(name: string, value: unknown, advice: string): string {
  if (typeof value === 'string' && isAbsolute(value)) return resolve(value)
  throw new TidemarkError(
    'bad-home',
    `${name} is ${show(value)}: it has to be an absolute path. ${advice}.`,
    { details: { name, value } },
  )
}

// What a session may be called. Its id is a file name on every system, and never a way out of its folder.

const SHAPE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/
/** Windows takes these for devices, whatever follows the first dot. */
const DEVICE = /^(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)/i
/** A session's folder bears the bare id: these would meet another session's log or lock. */
const OUR_ENDINGS = /\.(jsonl|lock)$/i

export function isSessionId(id: unknown): id is string {
  if (typeof id !== 'string' || !SHAPE.test(id)) return false
  return !id.endsWith('.') && !id.includes('..') && !DEVICE.test(id) && !OUR_ENDINGS.test(id)
}

export function checkSessionId(id: unknown): void {
  if (isSessionId(id)) return
  throw new TidemarkError(
    'bad-session-id',
    `${show(id)} cannot be a session id: use 1 to 128 letters, digits, dots, hyphens and underscores, beginning with a letter or digit, without two dots in a row or one at the end, not ending in .jsonl or .lock, and not a device name of Windows (con, nul, com1 …).`,
    { details: { id } },
  )
}

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
