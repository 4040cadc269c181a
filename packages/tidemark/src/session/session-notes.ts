/**
 * Keeps the notes of an open session up to date beside its turns: at most one update at a time, started after a response,
 * never waited for by a turn, and stopped when the session goes back to an earlier message or is closed.
 */
import { findNewestCompactionUuid } from '@tidemark/core/background/prepare-summary'
import {
  hasMessagesBeyondNotes,
  isNotesUpdateDue,
  runUntilClosed,
  updateNotesIfDue,
} from '@tidemark/core/background/update-notes'
import { keepsNotes } from '@tidemark/core/compaction/compact'
import { NO_NOTES_COST, type TurnEvent } from '@tidemark/core/engine/events'
import { type NotesServices, readPolicyToolNames } from '@tidemark/core/engine/host'
import { updatePlanningStateInSlices } from '@tidemark/core/engine/measure-context'
import type { Signal, StoredNotes } from '@tidemark/core/engine/ports'
import type { SessionState } from '@tidemark/core/engine/session-state'
import { omitUndefined } from '@tidemark/core/log/json'
import { createBranchNotesKeeper } from '@tidemark/core/notes/render-notes'
import { emitSessionEvent, type OpenSession, runOperation } from './open-session.ts'
import type { TidemarkOptions, TidemarkSettings } from './options.ts'
import { createTurnContext, createTurnHost } from './turn-host.ts'

/** Returns what the engine needs for notes. The model writes them only if the caller asked for that. */
export function createNotesServices(
  { policy, notes: store }: TidemarkSettings,
  { notes, cwd }: Pick<TidemarkOptions, 'notes' | 'cwd'>,
): NotesServices {
  const { extractor } = policy.notes
  const usesModel = extractor === 'model' || (extractor === 'auto' && notes?.model === true)
  const local = createBranchNotesKeeper({ ...omitUndefined({ cwd }), tools: readPolicyToolNames(policy) })
  return usesModel ? { store, local: null, fallback: local } : { store, local }
}

/** Returns a notice if the caller asked for notes by the model and the policy does not allow them; else nothing. */
export function listNotesNotices(
  { policy }: TidemarkSettings,
  { notes }: Pick<TidemarkOptions, 'notes'>,
): readonly string[] {
  const { enabled, extractor } = policy.notes
  if (notes?.model !== true || (enabled && extractor !== 'local')) return []
  const setting = enabled ? "notes.extractor is 'local'" : 'notes.enabled is false'
  return [`The option notes: { model: true } has no effect: in the policy, ${setting}.`]
}

/** The model is not asked for notes again after this many failures in a row, until the next compaction. */
const MAX_FAILURES = 3

/**
 * Starts an update of the notes if one is due, and returns at once. `at`: the session after the response. At the end of
 * a turn, notes that are kept from the log are always updated.
 */
export function startNotesUpdate(
  session: OpenSession,
  at: SessionState,
  moment: 'response' | 'turn-end',
): void {
  const { notes, stop } = session
  const host = createTurnHost(session)
  const isPause = moment === 'turn-end'
  if (stop.signal.aborted || !keepsNotes(host)) return
  if (notes.update !== null) {
    if (isPause) notes.pauseAt = at
    return
  }
  const isLocal = host.compaction.notes?.local != null
  if (!isLocal && isPaused(session)) return
  const last = notes.triedUuid === null ? notes.stored : { coveredUuid: notes.triedUuid }
  const isBehind = isPause && isLocal && hasMessagesBeyondNotes(at, notes.stored ?? null)
  if (last !== undefined && !isBehind && !isNotesUpdateDue(at, host, last)) return
  if (last !== undefined) notes.triedUuid = at.view.entries.last?.record.uuid ?? null
  const update = new AbortController()
  notes.update = update
  const over: Promise<void> = runUpdate(session, at, { isPause, signal: update.signal })
    .catch(() => {})
    .finally(() => {
      notes.update = null
      session.backgroundWork.delete(over)
      const next = notes.pauseAt
      notes.pauseAt = null
      if (next !== null) startNotesUpdate(session, next, 'turn-end')
    })
  session.backgroundWork.add(over)
}

/**
 * Stops the running update after its messages have left the conversation. Otherwise its next request would send what
 * the user or a client has just removed.
 */
export function stopNotesUpdate({ notes }: OpenSession): void {
  notes.pauseAt = null
  notes.update?.abort()
}

async function runUpdate(
  session: OpenSession,
  at: SessionState,
  { isPause, signal: stopped }: { readonly isPause: boolean; readonly signal: AbortSignal },
): Promise<void> {
  const { notes, settings, stop } = session
  let work: Promise<StoredNotes | null> = Promise.resolve(null)
  const start = (signal: Signal): Promise<StoredNotes | null> => {
    const signals = signal instanceof AbortSignal ? [signal] : []
    const run = createTurnContext(session, { signals, waitsForReply: true })
    work = runOperation(session, countFailures(session, updateNotesIfDue(run, at, { isPause })))
    return work
  }
  const deadAfterMs = settings.policy.notes.deadAfterSeconds * 1000
  const end = await settings.deadlines.within(deadAfterMs, start, AbortSignal.any([stop.signal, stopped]))
  // A stopped update still logs its cost and releases its claim.
  await work
  notes.stored = end.ok ? end.value : undefined
}

/**
 * Brings notes that are kept from the log up to date when the session is closed. Does nothing if this process wrote
 * nothing, or if the notes cover everything.
 */
export async function updateNotesAtClose(session: OpenSession): Promise<void> {
  const host = createTurnHost(session)
  if (!session.isWriter || host.compaction.notes?.local == null || !keepsNotes(host)) return
  const { state, notes } = session
  // If neither this nor an earlier process has written notes, no file can be out of date.
  if (notes.stored === null || (notes.stored !== undefined && !hasMessagesBeyondNotes(state, notes.stored)))
    return
  const run = createTurnContext(session, { signals: [] })
  // After opening, a long conversation is measured for the first time here, unless a request was made.
  if (!(await updatePlanningStateInSlices(run, runUntilClosed))) {
    const message =
      'The session was closed before its notes were up to date. The next update continues there.'
    emitSessionEvent(session, {
      type: 'notes-failed',
      by: 'local',
      reason: 'aborted',
      message,
      cost: NO_NOTES_COST,
    })
    return
  }
  await runOperation(session, updateNotesIfDue(run, session.state, { isPause: true }))
}

function isPaused({ notes: { failures }, state }: OpenSession): boolean {
  return failures.count >= MAX_FAILURES && failures.compaction === findNewestCompactionUuid(state)
}

/** Counts successive failed updates by the model, and marks the failure after which the model is not called again. */
async function* countFailures<End>(
  session: OpenSession,
  events: AsyncGenerator<TurnEvent, End>,
): AsyncGenerator<TurnEvent, End> {
  const { notes } = session
  for (;;) {
    const step = await events.next()
    if (step.done === true) return step.value
    const event = step.value
    if (event.type === 'notes-updated') notes.failures = { count: 0, compaction: null }
    if (event.type === 'notes-failed' && event.by === 'model' && event.reason !== 'aborted') {
      const compaction = findNewestCompactionUuid(session.state)
      const count = compaction === notes.failures.compaction ? notes.failures.count + 1 : 1
      notes.failures = { count, compaction }
      yield count >= MAX_FAILURES ? { ...event, isPaused: true } : event
    } else yield event
  }
}
