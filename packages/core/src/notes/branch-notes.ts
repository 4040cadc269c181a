/**
 * The notes of a session that are kept from its log without a model. Each call reads only the records that are new; after
 * a rewind to another branch, the notes are made again from that branch.
 */

import type { ContextView } from '../context/context-view.ts'
import { isKnownRecord } from '../log/record.ts'
import { readRecordAt, type SessionLog } from '../log/session-log.ts'
import { createNoteKeeper, type KeptNotes } from './note-keeper.ts'
import { chooseTemplate, type NotesLimits } from './notes-limits.ts'

export interface BranchNotes {
  /**
   * Reads the new records of the branch. Returns the notes, and the uuid of the last record that they cover. `template`:
   * that of the user, in place of the default one.
   */
  update(state: BranchState, limits: NotesLimits, template?: string): KeptNotes
}

interface BranchState {
  readonly session: SessionLog
  readonly view: Pick<ContextView, 'branch'>
}

export function createBranchNotes(options: { readonly cwd?: string } = {}): BranchNotes {
  let keeper = createNoteKeeper(options)
  let seen: ContextView['branch'] | null = null
  return {
    update({ session, view: { branch } }, { section, total, countTokens }, template) {
      const isSame = seen !== null && branch.extends(seen)
      if (!isSame) keeper = createNoteKeeper(options)
      for (let position = isSame ? (seen?.length ?? 0) : 0; position < branch.length; position += 1) {
        const record = readRecordAt(session, branch.at(position) ?? -1)
        if (isKnownRecord(record)) keeper.add(record)
      }
      seen = branch
      return keeper.render({
        sectionTokens: section,
        totalTokens: total,
        countTokens,
        template: chooseTemplate(template),
      })
    },
  }
}
