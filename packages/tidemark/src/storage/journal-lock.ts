/** One writer a session: a lock file beside the log, held from the first append until it is let go. */

import { basename, dirname, join } from 'node:path'
import { type Clock, type Ids, isObject } from '@tidemark/core'
import type { Processes, ProcessMark } from '../platform/processes.ts'
import { createWhole, readWhole, replaceWhole } from './atomic-file.ts'
import type { FileFacts, FilePort } from './file-system.ts'

export interface HeldLock {
  /** False once another writer took it over, or somebody removed it. */
  stillStands(): Promise<boolean>
  /** Shows other machines that the holder lives. */
  beat(): void
  release(): Promise<void>
}

export interface Refusal {
  readonly ok: false
  readonly reason: 'locked'
  readonly owner: string
  readonly message: string
}

export type LockAttempt = { readonly ok: true; readonly lock: HeldLock } | Refusal

/** More than ever collide: each turn of the loop means that another writer just came or went. */
const ATTEMPTS = 20

export async function takeLock(place: LockPlace): Promise<LockAttempt> {
  const mine = newOwner(place)
  let seen: SeenLock | null = null
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    if (await createWhole(place.files, place.path, bytesOf(mine)))
      return { ok: true, lock: hold(place, mine) }
    seen = (await seeLock(place)) ?? seen
    if (seen === null) continue
    // Over a network a link may be made and its answer lost.
    if (seen.mark === mine.token) return { ok: true, lock: hold(place, mine) }
    if (!isStale(place, seen)) return refused(place, seen)
    const taken = await succeed(place, { seen, heir: mine }, (again) => takeOver(place, mine, again))
    if (taken.outcome === 'done') return { ok: true, lock: hold(place, mine) }
    if (taken.outcome === 'busy') return refused(place, taken.by)
  }
  return refused(place, seen ?? { owner: null, mark: '', modifiedMs: place.clock.now(), identity: '' })
}

/** Looks once more: a holder that was only slow may have shown itself. */
async function takeOver(place: LockPlace, mine: LockOwner, seen: SeenLock): Promise<boolean> {
  if (!isStale(place, seen)) return false
  await replaceWhole(place.files, place.path, { bytes: bytesOf(mine), durable: false })
  return true
}

function refused(place: LockPlace, seen: SeenLock): Refusal {
  return { ok: false, reason: 'locked', owner: nameOwner(seen.owner), message: refusal(place, seen) }
}

function hold(place: LockPlace, mine: LockOwner): HeldLock {
  const { files, clock, path, staleLockMs } = place
  const everyMs = Math.max(1, Math.floor(staleLockMs / 5))
  const forget = files.removeAtExit(path, encodeOwner(mine))
  let beatAt = clock.now()
  function beat(): void {
    const now = clock.now()
    if (now - beatAt < everyMs) return
    beatAt = now
    // A missed beat is made up for by the next, and a lost lock shows before the next write.
    files.touch(path, now).catch(() => {})
  }
  const timer = setInterval(beat, Math.min(everyMs, 60_000)).unref()
  return {
    stillStands: watch(place, mine),
    beat,
    async release() {
      clearInterval(timer)
      await letGo(place, mine)
      forget()
    },
  }
}

/** Looks inside only when the file is not the very one it last looked into: this is asked before every write. */
function watch(place: LockPlace, mine: LockOwner): () => Promise<boolean> {
  let ours: Pick<FileFacts, 'identity' | 'modifiedMs'> | null = null
  return async () => {
    const facts = await place.files.facts(place.path)
    if (facts !== null && facts.identity === ours?.identity && facts.modifiedMs === ours.modifiedMs)
      return true
    const seen = await seeLock(place)
    ours = seen?.mark === mine.token ? seen : null
    return ours !== null
  }
}

/** Takes part in the succession too, so that it never removes the lock of one that followed. */
async function letGo(place: LockPlace, mine: LockOwner): Promise<void> {
  const seen = await seeLock(place)
  if (seen?.mark !== mine.token) return
  await succeed(place, { seen, heir: newOwner(place) }, () => place.files.remove(place.path))
}

// Who may change a lock that is there. The right to follow a hold belongs to whoever creates the one file
// named after its token, so of many that find the same dead writer one follows it; and because tokens are
// never used twice, a slow one that acts on old news holds a right to nothing and can harm no newer lock. A
// claimant that died is followed in the same way as the holder.

/** `moved`: the lock is no longer what was seen. `busy`: another claimant is at it. */
export type Succession =
  | { readonly outcome: 'done' | 'moved' }
  | { readonly outcome: 'busy'; readonly by: SeenLock }

/** Runs `act` while nobody else may change the lock, if it is still the one `seen`. It tells whether it changed it. */
export async function succeed(
  place: LockPlace,
  hold: { readonly seen: SeenLock; readonly heir: LockOwner },
  act: (seen: SeenLock) => Promise<boolean>,
): Promise<Succession> {
  const claim = await claimAfter(place, hold.seen.mark, hold.heir)
  if (claim === null) return { outcome: 'moved' }
  if (claim.by !== null) return { outcome: 'busy', by: claim.by }
  try {
    const again = await seeLock(place)
    if (again?.mark !== hold.seen.mark || !(await act(again))) return { outcome: 'moved' }
    for (const path of claim.dead) await place.files.remove(path)
    return { outcome: 'done' }
  } finally {
    await place.files.remove(claim.path)
  }
}

interface Claim {
  readonly path: string
  /** The claims of those that died before they could use them. */
  readonly dead: readonly string[]
  readonly by: SeenLock | null
}

/** Null where a claim in the way was gone again: things are moving, look anew. */
async function claimAfter(
  place: LockPlace,
  mark: string,
  heir: LockOwner,
  dead: readonly string[] = [],
): Promise<Claim | null> {
  const path = join(dirname(place.path), `.${basename(place.path)}.after-${mark}`)
  if (await createWhole(place.files, path, bytesOf(heir))) return { path, dead, by: null }
  const other = await seeLock(place, path)
  if (other === null || dead.includes(path)) return null
  if (!isStale(place, other)) return { path, dead, by: other }
  return claimAfter(place, other.mark, heir, [...dead, path])
}

// Reads lock files, judges whether their owners are gone, and says who is in the way.

export interface LockSettings {
  readonly files: FilePort
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  /** Named to whoever is refused. */
  readonly program: string
  /** How long a holder that cannot be asked (another machine's) may be silent before it counts as gone. */
  readonly staleLockMs: number
}

export interface LockPlace extends LockSettings {
  readonly session: string
  readonly path: string
}

/** A file without content is being written or was lost in a crash; the first takes no time. */
const UNREADABLE_MS = 10_000

export async function seeLock(place: LockPlace, path: string = place.path): Promise<SeenLock | null> {
  const file = await readWhole(place.files, path)
  if (file === null) return null
  const { bytes, facts } = file
  const owner = decodeOwner(Buffer.from(bytes).toString('utf8'))
  const mark = owner?.token ?? `file-${facts.identity}-${facts.modifiedMs}`
  return { owner, mark, modifiedMs: facts.modifiedMs, identity: facts.identity }
}

export function isStale(place: LockPlace, { owner, modifiedMs }: SeenLock): boolean {
  const silentMs = place.clock.now() - modifiedMs
  if (owner === null) return silentMs > UNREADABLE_MS
  const fate = place.processes.fateOf(owner)
  return fate === 'gone' || (fate === 'unknown' && silentMs > place.staleLockMs)
}

export function newOwner({ ids, clock, processes, program }: LockSettings): LockOwner {
  const { pid, host, processStart, pidSpace } = processes.own
  const since = new Date(clock.now()).toISOString()
  return { pid, host, processStart, pidSpace, token: ids.next('lock'), since, program }
}

export function bytesOf(owner: LockOwner): Uint8Array {
  return Buffer.from(encodeOwner(owner))
}

/** One line: who, since when, what to do. */
export function refusal(place: LockPlace, seen: SeenLock): string {
  const { owner } = seen
  const since = owner === null ? '' : ` since ${owner.since}`
  return `Session "${place.session}" is open for writing by ${nameOwner(owner)}${since}: ${advice(place, seen)}`
}

function advice(place: LockPlace, { owner, modifiedMs }: SeenLock): string {
  if (owner !== null && place.processes.fateOf(owner) === 'running')
    return 'close it there first, or work in another session.'
  const free = new Date(modifiedMs + (owner === null ? UNREADABLE_MS : place.staleLockMs)).toISOString()
  return `close it there first; if that writer is gone, the session is free after ${free}, or at once if you remove ${place.path}.`
}

// What a lock file says: who holds the session, since when, and how to tell whether it still does.

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
