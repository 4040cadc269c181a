/** The server's part of the undo button: what it would undo, why it is disabled, and the undo itself. */
import { basename, dirname, resolve } from 'node:path'
import { createSingleLogJournal, type PageUndoOutcome, type UndoAvailability } from 'tidemark/internal'
import { findSessionWriter, readLog, type SessionReport, undoLog } from 'tidemark/logs'

export interface PageUndo {
  findState(report: SessionReport): Promise<UndoAvailability>
  /** Undoes the compaction or clearing with the id `target`. A refusal is an outcome. */
  undo(report: SessionReport, target: string): Promise<PageUndoOutcome>
}

/** Undoes a rewrite of a session that this process has open, through that open session; null if it is not open here. */
export type UndoInProcess = (session: string, target: string) => Promise<PageUndoOutcome | null>

const NOT_OURS = 'The log of another program is never changed.'
const NOT_HERE =
  'Only sessions in the folder of Tidemark can be undone from here; tidemark compact --undo takes any file.'

/**
 * Creates the undo for a page. A session of Tidemark that no process holds is opened, changed and closed; one that this process
 * holds is left to `undoHere`. For a session that another process holds, the button is disabled and names that process.
 */
export function createPageUndo(home: string, undoHere: UndoInProcess = async () => null): PageUndo {
  const isServing = undoHere.length > 0
  const findRefusal = async ({ format, file }: SessionReport): Promise<string | null> => {
    if (format !== 'tidemark') return NOT_OURS
    const path = resolve(file)
    if (dirname(path) !== resolve(home, 'sessions')) return NOT_HERE
    const writer = await findSessionWriter(home, basename(path, '.jsonl')).catch(
      () => 'a process that is not known',
    )
    // If this process itself has the session open, `undoHere` makes the undo.
    const isHere = writer?.includes(`process ${process.pid} `) === true && isServing
    return writer === null || isHere ? null : `The session is open in ${writer}.`
  }
  return {
    findState: async (report) => ({ target: findUndoTarget(report), why: await findRefusal(report) }),
    async undo(report, target) {
      const refusal = await findRefusal(report)
      if (refusal !== null) return { ok: false, message: refusal }
      const here = await undoHere(basename(report.file, '.jsonl'), target)
      if (here !== null) return here
      const log = await readLog(report.file)
      if (!log.ok) return { ok: false, message: log.message }
      const journal = createSingleLogJournal(log.path)
      try {
        const undone = await undoLog(log, target, { journal, transcript: log.path })
        if (!undone.ok) return { ok: false, message: undone.message }
        return { ok: true, message: describeUndo(undone.report.kind) }
      } finally {
        await journal.release('')
      }
    },
  }
}

function describeUndo(kind: 'compact' | 'clear'): string {
  return `The ${kind === 'compact' ? 'compaction' : 'clearing'} is undone.`
}

/** Returns the newest compaction or clearing in effect; null if there is none. Older ones cannot be undone. */
function findUndoTarget({ compactions, clearings }: SessionReport): UndoAvailability['target'] {
  const rewrites = [
    ...compactions.map(({ id, at, isUndone }) => ({ id, at, isUndone, kind: 'compact' as const })),
    ...clearings
      .filter(({ by }) => by === 'tidemark')
      .map(({ id, at, isUndone }) => ({ id, at, isUndone, kind: 'clear' as const })),
  ]
  const inEffect = rewrites
    .filter(({ isUndone }) => !isUndone)
    .toSorted((one, other) => ((one.at ?? '') < (other.at ?? '') ? -1 : 1))
  const newest = inEffect.at(-1)
  return newest?.id == null ? null : { id: newest.id, kind: newest.kind }
}
