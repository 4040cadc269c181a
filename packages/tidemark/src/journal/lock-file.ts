/** Reads lock files, judges whether their owners are gone, and says who is in the way. */
import type { Clock, Ids } from '@tidemark/core'
import type { FilePort } from '../files/file-port.ts'
import { readWhole } from '../files/whole-file.ts'
import type { Processes } from '../system/processes.ts'
import { decodeOwner, encodeOwner, type LockOwner, nameOwner, type SeenLock } from './lock-owner.ts'

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
