/** What has come into a view since a rewrite of it was begun. */
import type { Entry } from '../../view/entry.ts'
import type { View } from '../../view/view.ts'

/** A view as it was when a rewrite of it was begun. */
export type SeenView = Pick<View, 'entries' | 'acts'>

/**
 * The entries behind those that `seen` had; null where the view is no longer what it was: another rewrite, an
 * undo or a rewind has come in between, and what was made of the old view would put it back.
 */
export function lateEntries(seen: SeenView, { entries, acts }: View): readonly Entry[] | null {
  return acts === seen.acts && entries.extends(seen.entries) ? entries.toArray(seen.entries.length) : null
}
