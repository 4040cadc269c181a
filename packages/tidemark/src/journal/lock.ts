/** One writer a session: a lock file beside the log, held from the first append until it is let go. */
import type { FileFacts } from '../files/file-port.ts'
import { createWhole, replaceWhole } from '../files/whole-file.ts'
import { bytesOf, isStale, type LockPlace, newOwner, refusal, seeLock } from './lock-file.ts'
import { encodeOwner, type LockOwner, nameOwner, type SeenLock } from './lock-owner.ts'
import { succeed } from './succession.ts'

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
