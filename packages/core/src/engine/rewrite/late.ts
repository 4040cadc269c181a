/** What has come into a view since a rewrite of it was begun. */
import type { List } from '../../conversation/list.ts'
import type { Entry } from '../../view/entry.ts'
import type { View } from '../../view/view.ts'

/**
 * The entries behind those that `seen` had; null where the view is no longer what it was: another rewrite, an
 * undo or a rewind has come in between, and what was made of the old view would put it back.
 */
export function lateEntries(seen: List<Entry>, view: View): readonly Entry[] | null {
  return view.entries.extends(seen) ? view.entries.toArray(seen.length) : null
}
