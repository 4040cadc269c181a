/**
 * Ensures that a session has only one writer, by a lock file beside its log. A writer holds the lock from its first
 * append until it releases it.
 */

import { basename, dirname, join } from 'node:path'
import type { Clock, IdGenerator } from '@tidemark/core/engine/ports'
import { isObject, parseJson } from '@tidemark/core/log/json'
import { systemClock, systemIds } from '../platform/node-ports.ts'
import { type ProcessIdentity, type ProcessPort, systemProcesses } from '../platform/processes.ts'
import { createFileAtomic, readFileSnapshot, replaceFileAtomic } from './atomic-file.ts'
import { type FileFacts, type FileSystem, nodeFileSystem } from './file-system.ts'

export interface HeldLock {
  /** Returns false if another writer has taken the lock over or if the lock file was removed. */
  isStillHeld(): Promise<boolean>
  /**
   * Updates the modification time of the lock file. Other machines see from this time that the lock holder is alive.
   */
  renew(): void
  release(): Promise<void>
}

export interface LockedResult {
  readonly ok: false
  readonly reason: 'locked'
  readonly owner: string
  readonly message: string
}

export type LockAttempt = { readonly ok: true; readonly lock: HeldLock } | LockedResult

export interface LockOptions {
  readonly session: string
  readonly path: string
  readonly files: FileSystem
  readonly clock: Clock
  readonly ids: IdGenerator
  readonly processes: ProcessPort
  /** Name of this program, shown to other programs that cannot get the lock. */
  readonly program: string
  /**
   * Milliseconds without a renewal after which a lock counts as abandoned. Used only if the holder's process cannot be
   * checked from this machine.
   */
  readonly staleLockMs: number
}

/** The options of a lock on the disk of this machine that do not depend on the session. */
export const SYSTEM_LOCK_OPTIONS: Pick<LockOptions, 'files' | 'clock' | 'ids' | 'processes' | 'staleLockMs'> =
  {
    files: nodeFileSystem,
    clock: systemClock,
    ids: systemIds,
    processes: systemProcesses,
    staleLockMs: 600_000,
  }

/**
 * Maximum number of attempts to take a lock. A further attempt is made only if another writer changed the lock during
 * the last one.
 */
const MAX_ATTEMPTS = 20

/**
 * Takes the lock if it is free, or if its holder is dead or has been silent for too long. Otherwise returns at once and
 * says who holds it.
 */
export async function takeLock(place: LockOptions): Promise<LockAttempt> {
  const mine = createOwner(place)
  let seen: LockSnapshot | null = null
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    if (await createFileAtomic(place.files, place.path, encodeLockFile(mine)))
      return { ok: true, lock: holdLock(place, mine) }
    seen = (await readLock(place)) ?? seen
    if (seen === null) continue
    // On a network file system, creating the lock file may succeed although an error is reported. The file then has
    // this process's token.
    if (seen.fingerprint === mine.token) return { ok: true, lock: holdLock(place, mine) }
    if (!isStale(place, seen)) return refuseLocked(place, seen)
    const takeover = await takeOverLock(place, seen.fingerprint, mine, async (current) => {
      // The lock is checked again, because a holder that was slow may have renewed it since the first check.
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

/** Returns who holds the lock, without taking it; null if it is free or its holder is dead. */
export async function findLockHolder(place: LockOptions): Promise<string | null> {
  const seen = await readLock(place)
  return seen === null || isStale(place, seen) ? null : refuseLocked(place, seen).owner
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
    // A failed update does no harm: it is repeated at the next renewal, and a lost lock is detected before the next
    // write.
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

/**
 * Returns a function that checks whether this process still holds the lock. The function is called before every write.
 * To be cheap, it reads the lock file only if its identity or modification time has changed.
 */
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

/**
 * Removes this process's lock file. Creates a claim file before, so that the lock of a later holder is never removed;
 * works on a full disk as well.
 */
async function removeLock(place: LockOptions, mine: LockOwner): Promise<void> {
  const seen = await readLock(place)
  if (seen?.fingerprint !== mine.token) return
  const remove = (): Promise<boolean> => place.files.remove(place.path)
  try {
    await takeOverLock(place, seen.fingerprint, createOwner(place), remove)
  } catch {
    // The claim file cannot be written, as on a full disk. Then no other process can take the lock over either, because
    // it would need a claim file too.
    if ((await readLock(place))?.fingerprint === mine.token) await remove()
  }
}

/** Result of changing a lock. `moved`: the lock has changed since it was read. `busy`: another process is changing it. */
type TakeoverResult =
  | { readonly outcome: 'done' | 'moved' }
  | { readonly outcome: 'busy'; readonly by: LockSnapshot }

/**
 * Calls `change` to replace or remove a lock file, if the lock still has the token `fingerprint`. No other process can
 * change the lock meanwhile. `change` returns whether it changed the lock.
 *
 * To change a lock, a process must first create a claim file named after the lock's token. Creating a file is
 * exclusive: if several processes find the same dead writer, only one of them takes over. Tokens are never reused, so a
 * slow process cannot claim a newer lock by mistake. If a process dies after creating a claim file, its claim is taken
 * over in the same way.
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
  /** Paths of claim files that dead processes left behind. */
  readonly dead: readonly string[]
  /** Another process that already has a claim on the lock; null if this process has the claim. */
  readonly by: LockSnapshot | null
}

/**
 * Creates the claim file that permits this process to change the lock. Returns null if the lock was changed meanwhile
 * and must be read again.
 */
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

/** The content, identity and modification time of a lock file when it was read. */
interface LockSnapshot {
  /** The process that holds the lock; null if the lock file does not have valid content. */
  readonly owner: LockOwner | null
  /** Identifies this lock: the token in the lock file, or the file's identity if the content is not valid. */
  readonly fingerprint: string
  readonly modifiedMs: number
  /** Identity of the lock file, independent of its content. */
  readonly identity: string
}

/**
 * Milliseconds after which a lock file without valid content counts as abandoned. A crash may have left it empty or
 * half written.
 */
const UNREADABLE_MS = 10_000

async function readLock(place: LockOptions, path: string = place.path): Promise<LockSnapshot | null> {
  const file = await readFileSnapshot(place.files, path)
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

/** Returns the result for a locked session. Its message says who holds the lock, since when, and what the user can do. */
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

/** The content of a lock file: the process that holds the lock. */
interface LockOwner extends ProcessIdentity {
  /** Random id of this lock; a new one is created each time a lock is taken. */
  readonly token: string
  readonly since: string
  readonly program: string
}

function createOwner({ ids, clock, processes, program }: LockOptions): LockOwner {
  const { pid, host, processStart, pidSpace } = processes.own
  const since = new Date(clock.now()).toISOString()
  return { pid, host, processStart, pidSpace, token: ids.next('lock'), since, program }
}

/** Encodes a lock file as one line of JSON. A partly written file is then not valid JSON. */
function encodeLockFile(owner: LockOwner): Buffer {
  return Buffer.from(`${JSON.stringify(owner)}\n`)
}

/** Parses the content of a lock file. Returns null if it is not valid, as after a crash while it was written. */
export function decodeLockFile(text: string): LockOwner | null {
  const value = parseJson(text)
  if (!isObject(value)) return null
  const { pid, host, token, since, program, processStart, pidSpace } = value
  if (typeof pid !== 'number' || !isToken(token)) return null
  if (!isSafeMessageText(host) || !isSafeMessageText(since) || !isSafeMessageText(program)) return null
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

/** Checks that a token is safe to use as part of a file name. */
function isToken(token: unknown): token is string {
  return typeof token === 'string' && /^[A-Za-z0-9-]{1,64}$/.test(token)
}

/** Checks that a text is safe in a one-line message: at most 200 characters, without control characters. */
export function isSafeMessageText(text: unknown): text is string {
  return typeof text === 'string' && text.length <= 200 && !/\p{Cc}/u.test(text)
}
