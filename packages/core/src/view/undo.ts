/** Which act can be taken back, and the word to the person when it is not the one asked for. */
import type { Act, View } from './view.ts'

export type UndoChoice =
  | { readonly ok: true; readonly act: Act; readonly subtype: 'compact_undone' | 'clear_undone' }
  | { readonly ok: false; readonly reason: 'nothing-to-undo' | 'not-standing'; readonly message: string }
  | { readonly ok: false; readonly reason: 'not-newest'; readonly newest: string; readonly message: string }

/** Undo goes newest first. Without an id it is the newest act that is meant. */
export function chooseUndo(view: View, id?: string): UndoChoice {
  const newest = view.acts.at(-1)
  if (newest === undefined) {
    return { ok: false, reason: 'nothing-to-undo', message: 'There is no compaction or clearing to undo.' }
  }
  if (id === undefined || id === newest.uuid) {
    return { ok: true, act: newest, subtype: newest.kind === 'compact' ? 'compact_undone' : 'clear_undone' }
  }
  if (!view.acts.some((act) => act.uuid === id)) {
    return {
      ok: false,
      reason: 'not-standing',
      message: `${id} is no standing compaction or clearing of this view.`,
    }
  }
  const message = `${id} is not the newest: undo ${newest.uuid} (${newest.kind}) first.`
  return { ok: false, reason: 'not-newest', newest: newest.uuid, message }
}
