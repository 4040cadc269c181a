/**
 * Keeps the notes of an open session up to date beside its turns: at most one update at a time, started after a response,
 * never waited for by a turn, and stopped when the session is closed.
 */
import {
  createBranchNotes,
  isNotesUpdateDue,
  keepsNotes,
  type NotesServices,
  type SessionState,
  type Signal,
  type StoredNotes,
  updateNotes,
} from '@tidemark/core'
import { omitUndefined } from '@tidemark/wire'
import { type OpenSession, runOperation } from './open-session.ts'
import type { TidemarkOptions, TidemarkSettings } from './options.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

/** Returns what the engine needs for the notes: the model writes them only where the caller said so. */
export function createNotesServices(
  { policy, notes: store }: TidemarkSettings,
  { notes, cwd }: Pick<TidemarkOptions, 'notes' | 'cwd'>,
): NotesServices {
  const { extractor } = policy.notes
  const usesModel = extractor === 'model' || (extractor === 'auto' && notes?.model === true)
  return { store, local: usesModel ? null : createBranchNotes(omitUndefined({ cwd })) }
}

/** Starts an update of the notes if one is due. Returns at once. `at`: the session when the response had arrived. */
export function startNotesUpdate(session: OpenSession, at: SessionState): void {
  const { notes, settings, stop } = session
  const host = createTurnHost(session)
  const { deadAfterSeconds } = settings.policy.notes
  if (notes.isUpdating || stop.signal.aborted || !keepsNotes(host)) return
  const last = notes.triedUuid === null ? notes.stored : { coveredUuid: notes.triedUuid }
  if (last !== undefined && !isNotesUpdateDue(at, host, host.compaction, last)) return
  if (last !== undefined) notes.triedUuid = at.view.entries.last?.record.uuid ?? null
  notes.isUpdating = true
  const update = async (): Promise<void> => {
    let work: Promise<StoredNotes | null> = Promise.resolve(null)
    const start = (signal: Signal): Promise<StoredNotes | null> => {
      const signals = signal instanceof AbortSignal ? [signal] : []
      const run = createTurnContext(session, { signals, waitsForReply: true })
      work = runOperation(session, updateNotes(run, host.compaction, at))
      return work
    }
    const end = await settings.deadlines.within(deadAfterSeconds * 1000, start, stop.signal)
    // An update that was stopped still has to log its cost and to release its claim.
    await work
    notes.stored = end.ok ? end.value : undefined
  }
  const over: Promise<void> = update()
    .catch(() => {})
    .finally(() => {
      notes.isUpdating = false
      session.backgroundWork.delete(over)
    })
  session.backgroundWork.add(over)
}
