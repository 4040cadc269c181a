/**
 * Who may change a lock that is there. The right to follow a hold belongs to whoever creates the one file
 * named after its token, so of many that find the same dead writer one follows it; and because tokens are
 * never used twice, a slow one that acts on old news holds a right to nothing and can harm no newer lock. A
 * claimant that died is followed in the same way as the holder.
 */
import { basename, dirname, join } from 'node:path'
import { createWhole } from '../files/whole-file.ts'
import { bytesOf, isStale, type LockPlace, seeLock } from './lock-file.ts'
import type { LockOwner, SeenLock } from './lock-owner.ts'

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
