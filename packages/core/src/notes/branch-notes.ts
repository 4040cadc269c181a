/**
 * The notes of a session that are kept from its log without a model. Each call reads only the records that are new; after
 * a rewind to another branch, the notes are made again from that branch.
 */

import type { ContextView } from '../context/context-view.ts'
import { isTextBlock, isToolResult, toBlocks } from '../log/block.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { readRecordAt, type SessionLog } from '../log/session-log.ts'
import type { Steps } from '../log/work-steps.ts'
import { createNoteKeeper, type KeptNotes, type NoteKeeper } from './note-keeper.ts'
import { chooseTemplate, type NotesLimits } from './notes-limits.ts'
import type { NotesUse } from './render-notes.ts'

export interface BranchNotes {
  /**
   * Reads the new records of the branch. Returns the notes, and the uuid of the last record that they cover: if a later
   * state of the branch has been read before, the last record of that one. `template`: that of the user, in place of the
   * default one. Several updates may run at the same time.
   */
  update(
    state: BranchState,
    limits: NotesLimits,
    options?: { readonly template?: string | undefined; readonly use?: NotesUse },
  ): Steps<KeptNotes>
}

interface BranchState {
  readonly session: SessionLog
  readonly view: Pick<ContextView, 'branch'>
}

/** A branch that is being read, and how many of its records the keeper has. */
interface BranchReading {
  readonly keeper: NoteKeeper
  branch: ContextView['branch']
  added: number
}

export function createBranchNotes(options: { readonly cwd?: string } = {}): BranchNotes {
  let newest: BranchReading | null = null

  function findReading(branch: ContextView['branch']): BranchReading {
    if (newest?.branch.extends(branch) === true) return newest
    if (newest !== null && branch.extends(newest.branch)) newest.branch = branch
    else newest = { keeper: createNoteKeeper(options), branch, added: 0 }
    return newest
  }

  return {
    *update({ session, view: { branch } }, { section, decisions, total, countTokens }, options = {}) {
      const reading = findReading(branch)
      while (reading.added < branch.length) {
        const record = readRecordAt(session, branch.at(reading.added) ?? -1)
        reading.added += 1
        if (!isKnownRecord(record)) continue
        reading.keeper.add(record)
        yield measureWork(record)
      }
      return yield* reading.keeper.renderInSteps({
        sectionTokens: section,
        decisionTokens: decisions,
        totalTokens: total,
        countTokens,
        template: chooseTemplate(options.template),
        use: options.use ?? 'file',
      })
    },
  }
}

/** Work of adding a record beside reading its texts, in characters that would be read in the same time. */
const RECORD_WORK = 1_000

function measureWork(record: KnownRecord): number {
  if (record.type !== 'user' && record.type !== 'assistant') return RECORD_WORK
  return toBlocks(record.message.content).reduce((sum, block) => {
    if (isTextBlock(block)) return sum + block.text.length
    return isToolResult(block) && typeof block.content === 'string' ? sum + block.content.length : sum
  }, RECORD_WORK)
}
