/** The undo button of the page: what it would undo, why it is off, and the undo itself. */
import type { UndoState } from 'tidemark/internal'
import type { SessionReport } from 'tidemark/logs'

export interface PageUndo {
  findState(report: SessionReport): Promise<UndoState>
  /** Undoes the compaction or clearing `target` of the session, and returns one sentence about the outcome. */
  undo(report: SessionReport, target: string): Promise<UndoOutcome>
}

export interface UndoOutcome {
  readonly ok: boolean
  readonly message: string
}

/** Returns the newest compaction or clearing in effect, which alone can be undone; null if there is none. */
export function findUndoTarget({ compactions, clearings }: SessionReport): UndoState['target'] {
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

const NOT_OURS =
  'Only compactions in Tidemark’s own sessions can be undone; the log of another program is never changed.'

/** A page without undo. */
export const NO_UNDO: PageUndo = {
  findState: async () => ({ target: null, why: NOT_OURS }),
  undo: async () => ({ ok: false, message: NOT_OURS }),
}
