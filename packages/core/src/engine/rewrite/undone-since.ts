/** Acts that were taken back since the person last spoke: what starts by itself waits, and the model is told once. */
import { isPrompt } from '../../conversation/record.ts'
import type { Entry } from '../../view/entry.ts'
import type { View } from '../../view/view.ts'

export const UNDO_NOTICE = 'undo_notice'

/** An act was undone and the person has not spoken since. */
export function isWaitingForPrompt(view: View): boolean {
  return undoneSincePrompt(view).length > 0
}

/** An act was undone, stands so, and no model has said anything since. `answered`: index of its newest words. */
export function isJustUndone({ entries, undone, rewrittenAt }: View, answered: number): boolean {
  if (undone.length === 0) return false
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= answered || entry.index < rewrittenAt) return false
    if (isUndoing(entry)) return true
  }
  return false
}

function isUndoing({ record }: Entry): boolean {
  const subtype = record.type === 'system' ? record.subtype : undefined
  return subtype === 'compact_undone' || subtype === 'clear_undone'
}

/** The person has spoken behind the record at `index`. */
export function hasPromptSince({ entries }: View, index: number): boolean {
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.index <= index) return false
    if (isPrompt(entry.record)) return true
  }
  return false
}

/** The undoings behind the newest prompt that no notice tells of yet. */
export function untoldUndoings(view: View): readonly Entry[] {
  return undoneSincePrompt(view)
}

/** Nothing is looked for where nothing was ever undone: a turn may be long. */
function undoneSincePrompt({ entries, undone, rewrittenAt }: View): readonly Entry[] {
  const found: Entry[] = []
  if (undone.length === 0) return found
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || isPrompt(entry.record) || entry.index < rewrittenAt) break
    if (entry.record.type === 'attachment' && entry.record.attachment.type === UNDO_NOTICE) break
    if (isUndoing(entry)) found.unshift(entry)
  }
  return found
}

/** One line for the model, with the prompt that comes next. */
export function undoNotice(undoings: readonly Entry[]): string {
  const isCompaction = undoings.some(
    ({ record }) => record.type === 'system' && record.subtype === 'compact_undone',
  )
  return isCompaction
    ? 'The compaction of this conversation was undone: the messages above are the original ones again.'
    : 'The clearing of old tool results was undone: the results above are the original ones again.'
}
