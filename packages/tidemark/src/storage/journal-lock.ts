/** One writer per session: a lock file beside the log, held from the first append until it is released. */

import { basename, dirname, join } from 'node:path'
import { type Clock, type IdGenerator, isObject, parseJson } from '@tidemark/core'
import type { Processes, ProcessIdentity } from '../platform/processes.ts'
import { createFileAtomic, readFileAtomic, replaceFileAtomic } from './atomic-file.ts'
import type { FileFacts, FileSystem } from './file-system.ts'

export interface HeldLock {
  /** False once another writer took the lock over or the file was removed. */
  isStillHeld(): Promise<boolean>
  /** Shows other machines that the holder is alive. */
  renew(): void
  release(): Promise<void>
}

export interface LockedResult {
  readonly ok: false
  readonly reason: 'locked'
  readonly owner: string
  readonly message: string
}

export type LockResult = { readonly ok: true; readonly lock: HeldLock } | LockedResult

export interface LockOptions {
  readonly session: string
  readonly path: string
  readonly files: FileSystem
  readonly clock: Clock
  readonly ids: IdGenerator
  readonly processes: Processes
  /** Name of this program, shown to a writer that is refused. */
  readonly program: string
  /** How long a holder whose process cannot be checked (on another machine) may be silent before it counts as gone. */
  readonly staleLockMs: number
}

/** More than ever collide: each iteration means that another writer has just come or gone. */
const MAX_ATTEMPTS = 20

/** Takes the lock if it is free or its holder is gone; otherwise says who holds it. Never waits. */
export async function takeLock(place: LockOptions): Promise<LockResult> {
  const mine = createOwner(place)
  let seen: LockSnapshot | null = null
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (await createFileAtomic(place.files, place.path, encodeLockFile(mine)))
      return { ok: true, lock: holdLock(place, mine) }
    seen = (await readLock(place)) ?? seen
    if (seen === null) continue
    // Over a network a link may be created although its answer was lost.
    if (seen.fingerprint === mine.token) return { ok: true, lock: holdLock(place, mine) }
    if (!isStale(place, seen)) return refuseLocked(place, seen)
    const takeover = await takeOverLock(place, seen.fingerprint, mine, async (current) => {
      // Checked again: a holder that was only slow may have shown that it is alive.
      if (!isStale(place, current)) return false
      await replaceFileAtomic(place.files, place.path, { bytes: encodeLockFile(mine), durable: false })
      return true
    })
    if (takeover.outcome === 'done') return { ok: true, lock: holdLock(place, mine) }
    if (takeover.outcome === 'busy') return refuseLocked(place, takeover.by)
  }
  return refuseLocked(
    place,
    seen ?? { owner: null, fingerprint: '', modifiedMs: place.clock.now(), identity: '' },
  )
}

function holdLock(place: LockOptions, mine: LockOwner): HeldLock {
  const { files, clock, path, staleLockMs } = place
  const everyMs = Math.max(1, Math.floor(staleLockMs / 5))
  const cancelRemoval = files.removeAtExit(path, encodeLockFile(mine).toString())
  let renewedAt = clock.now()
  function renew(): void {
    const now = clock.now()
    if (now - renewedAt < everyMs) return
    renewedAt = now
    // The next call makes up for a missed one, and a lost lock is noticed before the next write.
    files.touch(path, now).catch(() => {})
  }
  const timer = setInterval(renew, Math.min(everyMs, 60_000)).unref()
  return {
    isStillHeld: createOwnershipCheck(place, mine),
    renew,
    async release() {
      clearInterval(timer)
      await removeLock(place, mine)
      cancelRemoval()
    },
  }
}

/** Runs before every write, so it reads the file only if its facts differ from those of the last check. */
function createOwnershipCheck(place: LockOptions, mine: LockOwner): () => Promise<boolean> {
  let ours: Pick<FileFacts, 'identity' | 'modifiedMs'> | null = null
  return async () => {
    const facts = await place.files.facts(place.path)
    if (facts !== null && facts.identity === ours?.identity && facts.modifiedMs === ours.modifiedMs)
      return true
    const seen = await readLock(place)
    ours = seen?.fingerprint === mine.token ? seen : null
    return ours !== null
  }
}

/** Claims the lock like a takeover does, so that it never removes the lock of a later holder. */
async function removeLock(place: LockOptions, mine: LockOwner): Promise<void> {
  const seen = await readLock(place)
  if (seen?.fingerprint !== mine.token) return
  await takeOverLock(place, seen.fingerprint, createOwner(place), () => place.files.remove(place.path))
}

/** `moved`: the lock is no longer the one that was seen. `busy`: another process is changing it. */
type TakeoverResult =
  | { readonly outcome: 'done' | 'moved' }
  | { readonly outcome: 'busy'; readonly by: LockSnapshot }

/**
 * Runs `change` while no other process may change the lock, if the lock is still the one with `fingerprint`. `change` returns
 * whether it changed the lock.
 *
 * The right to change a lock belongs to the process that creates the one claim file named after its token. So of many
 * processes that find the same dead writer, one takes over. Tokens are never reused: a slow process that acts on an old
 * reading claims a lock that is gone and cannot harm a newer one. A claimant that died is succeeded in the same way.
 */
async function takeOverLock(
  place: LockOptions,
  fingerprint: string,
  claimant: LockOwner,
  change: (current: LockSnapshot) => Promise<boolean>,
): Promise<TakeoverResult> {
  const claim = await createClaim(place, fingerprint, claimant)
  if (claim === null) return { outcome: 'moved' }
  if (claim.by !== null) return { outcome: 'busy', by: claim.by }
  try {
    const current = await readLock(place)
    if (current?.fingerprint !== fingerprint || !(await change(current))) return { outcome: 'moved' }
    for (const path of claim.dead) await place.files.remove(path)
    return { outcome: 'done' }
  } finally {
    await place.files.remove(claim.path)
  }
}

interface Claim {
  readonly path: string
  /** Claim files of processes that died before they could use them. */
  readonly dead: readonly string[]
  /** The process whose claim is in the way; null if the claim is ours. */
  readonly by: LockSnapshot | null
}

/** Null if a claim in the way has disappeared: the lock is changing and must be read again. */
async function createClaim(
  place: LockOptions,
  fingerprint: string,
  claimant: LockOwner,
  dead: readonly string[] = [],
): Promise<Claim | null> {
  const path = join(dirname(place.path), `.${basename(place.path)}.after-${fingerprint}`)
  if (await createFileAtomic(place.files, path, encodeLockFile(claimant))) return { path, dead, by: null }
  const other = await readLock(place, path)
  if (other === null || dead.includes(path)) return null
  if (!isStale(place, other)) return { path, dead, by: other }
  return createClaim(place, other.fingerprint, claimant, [...dead, path])
}

/** A lock file as it was read. */
interface LockSnapshot {
  /** Null if the content cannot be read. */
  readonly owner: LockOwner | null
  /** Identifies what was read: the token, or the file itself if it has none. */
  readonly fingerprint: string
  readonly modifiedMs: number
  /** Identity of the file. */
  readonly identity: string
}

/** A file without content is being written, which takes no time, or lost its content in a crash. */
const UNREADABLE_MS = 10_000

async function readLock(place: LockOptions, path: string = place.path): Promise<LockSnapshot | null> {
  const file = await readFileAtomic(place.files, path)
  if (file === null) return null
  const { bytes, facts } = file
  const owner = decodeLockFile(Buffer.from(bytes).toString('utf8'))
  const fingerprint = owner?.token ?? `file-${facts.identity}-${facts.modifiedMs}`
  return { owner, fingerprint, modifiedMs: facts.modifiedMs, identity: facts.identity }
}

function isStale(place: LockOptions, { owner, modifiedMs }: LockSnapshot): boolean {
  const silentMs = place.clock.now() - modifiedMs
  if (owner === null) return silentMs > UNREADABLE_MS
  const status = place.processes.checkStatus(owner)
  return status === 'gone' || (status === 'unknown' && silentMs > place.staleLockMs)
}

/** Says who holds the session, since when, and what to do about it. */
function refuseLocked(place: LockOptions, { owner, modifiedMs }: LockSnapshot): LockedResult {
  const name =
    owner === null ? 'an unknown writer' : `${owner.program} (process ${owner.pid} on ${owner.host})`
  const since = owner === null ? '' : ` since ${owner.since}`
  const message = `Session "${place.session}" is open for writing by ${name}${since}: `
  const blocked = { ok: false, reason: 'locked', owner: name } as const
  if (owner !== null && place.processes.checkStatus(owner) === 'running')
    return { ...blocked, message: `${message}close it there first, or work in another session.` }
  const free = new Date(modifiedMs + (owner === null ? UNREADABLE_MS : place.staleLockMs)).toISOString()
  const advice = `close it there first; if that writer is gone, the session is free after ${free}, or at once if you remove ${place.path}.`
  return { ...blocked, message: message + advice }
}

/** The content of a lock file. */
interface LockOwner extends ProcessIdentity {
  /** Identifies this hold of the lock; never reused. */
  readonly token: string
  readonly since: string
  readonly program: string
}

function createOwner({ ids, clock, processes, program }: LockOptions): LockOwner {
  const { pid, host, processStart, pidSpace } = processes.own
  const since = new Date(clock.now()).toISOString()
  return { pid, host, processStart, pidSpace, token: ids.next('lock'), since, program }
}

/** One line, so that it is either complete or unreadable. */
function encodeLockFile(owner: LockOwner): Buffer {
  return Buffer.from(`${JSON.stringify(owner)}\n`)
}

/** Null if the text is not the content of a lock file. */
export function decodeLockFile(text: string): LockOwner | null {
  const value = parseJson(text)
  if (!isObject(value)) return null
  const { pid, host, token, since, program, processStart, pidSpace } = value
  if (typeof pid !== 'number' || !isToken(token)) return null
  if (!isPlainLine(host) || !isPlainLine(since) || !isPlainLine(program)) return null
  return {
    pid,
    host,
    token,
    since,
    program,
    processStart: typeof processStart === 'string' ? processStart : null,
    pidSpace: typeof pidSpace === 'string' ? pidSpace : null,
  }
}

/** A token becomes part of a file name. */
function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(token)
}

/** Text that is safe in a one-line message: short, without control characters. */
export function isPlainLine(text: unknown): text is string {
  return typeof text === 'string' && text.length <= 200 && !/\p{Cc}/u.test(text)
}
