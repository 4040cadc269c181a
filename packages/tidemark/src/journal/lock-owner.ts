/** What a lock file says: who holds the session, since when, and how to tell whether it still does. */
import { isObject } from '@tidemark/core'
import type { ProcessMark } from '../system/processes.ts'

export interface LockOwner extends ProcessMark {
  /** Names this hold of the lock, and no other. */
  readonly token: string
  readonly since: string
  readonly program: string
}

/** A lock as found. */
export interface SeenLock {
  /** Null where the file says nothing that can be read. */
  readonly owner: LockOwner | null
  /** Names what was seen: the token, or, of a file that has none, the file itself. */
  readonly mark: string
  readonly modifiedMs: number
  /** Of the file it is written in. */
  readonly identity: string
}

/** One line, so that it is whole or unreadable. */
export function encodeOwner(owner: LockOwner): string {
  return `${JSON.stringify(owner)}\n`
}

export function decodeOwner(text: string): LockOwner | null {
  const value = parse(text)
  if (!isObject(value)) return null
  const { pid, host, token, since, program, processStart, pidSpace } = value
  if (typeof pid !== 'number' || !isToken(token)) return null
  if (!isPlain(host) || !isPlain(since) || !isPlain(program)) return null
  return {
    pid,
    host,
    token,
    since,
    program,
    processStart: textOrNull(processStart),
    pidSpace: textOrNull(pidSpace),
  }
}

/** Who it is, for one line of text. */
export function nameOwner(owner: LockOwner | null): string {
  return owner === null ? 'an unknown writer' : `${owner.program} (process ${owner.pid} on ${owner.host})`
}

/** A token becomes part of a file name. */
function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(token)
}

/** It becomes part of a line that a person reads. */
export function isPlain(text: unknown): text is string {
  return typeof text === 'string' && text.length <= 200 && !/\p{Cc}/u.test(text)
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
