/**
 * The notes of a session that are kept from its log without a model. Each call reads only the records that are new; after
 * a rewind to another branch, the notes are made again from that branch.
 */
import type { ContextView } from '../context/context-view.ts'
import { addRecords, createFactsKeeper, type FactsKeeper, type FactsOptions } from '../facts/session-facts.ts'
import { isKnownRecord, type KnownRecord } from '../log/record.ts'
import { readRecordAt, type SessionLog } from '../log/session-log.ts'
import type { Steps } from '../log/work-steps.ts'
import { chooseTemplate, type NotesLimits } from './notes-file.ts'
import { type NotesUse, renderNotes } from './render-notes.ts'

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

interface KeptNotes {
  readonly text: string
  /** uuid of the last record that was added; null if there was none. */
  readonly coveredUuid: string | null
}

interface BranchState {
  readonly session: SessionLog
  readonly view: Pick<ContextView, 'branch'>
}

/** A branch that is being read, and how many of its records the keeper has. */
interface BranchReading {
  readonly keeper: FactsKeeper
  branch: ContextView['branch']
  added: number
  covered: string | null
}

export function createBranchNotes(options: FactsOptions = {}): BranchNotes {
  let newest: BranchReading | null = null

  function findReading(branch: ContextView['branch']): BranchReading {
    if (newest?.branch.extends(branch) === true) return newest
    if (newest !== null && branch.extends(newest.branch)) newest.branch = branch
    else newest = { keeper: createFactsKeeper(options), branch, added: 0, covered: null }
    return newest
  }

  return {
    *update({ session, view: { branch } }, { section, decisions, total, countTokens }, options = {}) {
      const reading = findReading(branch)
      yield* addRecords(reading.keeper, listNewRecords(reading, session, branch))
      const coveredUuid = reading.covered
      const text = yield* renderNotes(reading.keeper.read(), {
        sectionTokens: section,
        decisionTokens: decisions,
        totalTokens: total,
        countTokens,
        template: chooseTemplate(options.template),
        use: options.use ?? 'file',
      })
      return { text, coveredUuid }
    },
  }
}

/** Lists the records of a branch that were not added yet. */
function* listNewRecords(
  reading: BranchReading,
  session: SessionLog,
  branch: ContextView['branch'],
): Generator<KnownRecord> {
  while (reading.added < branch.length) {
    const record = readRecordAt(session, branch.at(reading.added) ?? -1)
    reading.added += 1
    if (!isKnownRecord(record)) continue
    reading.covered = record.uuid
    yield record
  }
}
