/**
 * Keeps the notes of a session up to date beside the turn: decides when an update is due, claims the notes so that one
 * update runs at a time in all processes, and stores the result. A failed update leaves the old notes.
 */

import { createNotesLimits, keepsNotes } from '../compaction/compact.ts'
import type { ContextEntry } from '../context/context-entry.ts'
import { addReplyUsage, NO_NOTES_COST, type NotesCost, type TurnEvent } from '../engine/events.ts'
import type { NotesServices, TurnHost } from '../engine/host.ts'
import { withPlanningState } from '../engine/measure-context.ts'
import type { StoredNotes } from '../engine/ports.ts'
import type { SessionState } from '../engine/session-state.ts'
import type { TurnContext } from '../engine/session-writer.ts'
import { describeThrown } from '../errors.ts'
import { isToolUse, toBlocks } from '../log/block.ts'
import { isCompactBoundary, type KnownRecord } from '../log/record.ts'
import { findRecordIndex, isOnBranch } from '../log/session-log.ts'
import { runStepsInSlices, type WorkInSteps } from '../log/work-steps.ts'
import { chooseNotesTemplate, moveNotesToTemplate } from '../notes/notes-file.ts'
import { redact } from '../text/redact.ts'
import { calibrateSize } from '../tokens/usage.ts'
import { ABORTED_NOTES_UPDATE, type NewNotesResult, updateNotesWithModel } from './model-notes-update.ts'

/**
 * Returns true if the conversation has grown enough since the last update: by tokens, and by tool calls unless the
 * newest response made none. The first update waits until the conversation has a certain size. `stored`: the notes, null
 * if there are none yet. Only what stands after the newest summary counts.
 */
export function isNotesUpdateDue(
  state: SessionState,
  host: TurnHost,
  stored: Pick<StoredNotes, 'coveredUuid'> | null,
): boolean {
  const { compaction } = host
  const { start, growth } = compaction.scaled.budgets.notes
  const leastTokens = stored === null ? Math.max(start, growth) : growth
  const leastCalls = hasNewestResponseCalls(state) ? host.policy.notes.toolCalls : 0
  const { calibration } = withPlanningState(state, host).context.meter
  const { entries } = state.view
  let [tokens, calls] = [0, 0]
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const entry = entries.at(place)
    if (entry === undefined || entry.record.uuid === stored?.coveredUuid) return false
    // Entries before a summary have left the context, so the context has not grown by them.
    if (entry.record.isCompactSummary === true || isCompactBoundary(entry.record)) return false
    tokens += compaction.estimator.entry(entry)
    calls += countToolCalls(entry.record)
    const { expected } = calibrateSize(calibration, tokens, host.policy.estimate)
    if (calls >= leastCalls && expected >= leastTokens) return true
  }
  return false
}

function hasNewestResponseCalls({ view: { entries } }: SessionState): boolean {
  return entries.toArray(findNewestResponseStart(entries)).some(({ record }) => countToolCalls(record) > 0)
}

/** Returns the index in `entries` of the first record of the newest response; the length of `entries` if there is none. */
export function findNewestResponseStart(entries: SessionState['view']['entries']): number {
  let [start, response] = [entries.length, '']
  for (let place = entries.length - 1; place >= 0; place -= 1) {
    const record = entries.at(place)?.record
    if (record?.type !== 'assistant') continue
    response ||= record.message.id
    if (record.message.id !== response) break
    start = place
  }
  return start
}

function countToolCalls(record: KnownRecord): number {
  return record.type === 'assistant' ? toBlocks(record.message.content).filter(isToolUse).length : 0
}

/**
 * Updates the notes if that is due and no other update is running. `at`: the session when the last response had arrived.
 * With `isPause`, nobody waits for the model: notes from the log that lack anything are then brought up to date, due or
 * not, since they cost nothing. Returns the stored notes as far as they are known, so that the caller need not read them
 * again. Never throws.
 */
export async function* updateNotesIfDue(
  turn: TurnContext,
  at: SessionState,
  { isPause = false }: { readonly isPause?: boolean } = {},
): AsyncGenerator<TurnEvent, StoredNotes | null> {
  const { notes } = turn.host.compaction
  if (notes === undefined || !keepsNotes(turn.host)) return null
  const { clock, policy } = turn.host
  const by = notes.local === null ? 'model' : 'local'
  let cost: NotesCost = NO_NOTES_COST
  try {
    const deadAfterMs = policy.notes.deadAfterSeconds * 1000
    const claim = await notes.store.claim(at.id, { now: clock.now(), deadAfterMs })
    if (claim === null) return null
    try {
      const stored = await notes.store.read(at.id)
      const isBehind = isPause && notes.local !== null && hasMessagesBeyondNotes(at, stored)
      if (!isBehind && !isNotesUpdateDue(at, turn.host, stored)) return stored
      const events = writeNotes(turn, { notes, at, stored })
      for (;;) {
        const step = await events.next()
        if (step.done !== true) {
          cost = addCost(cost, step.value)
          yield step.value
          continue
        }
        if (!step.value.ok) {
          yield { type: 'notes-failed', by, reason: step.value.reason, message: step.value.message, cost }
          return stored
        }
        const { text, coveredUuid } = step.value
        const next: StoredNotes = { text, coveredUuid, writtenAt: clock.now(), writtenBy: by }
        await notes.store.write(at.id, next)
        const tokens = createNotesLimits(turn).countTokens(text)
        yield { type: 'notes-updated', by, coveredUuid, tokens, cost }
        return next
      }
    } finally {
      await claim.release()
    }
  } catch (thrown) {
    yield { type: 'notes-failed', by, reason: 'store', message: describeThrown(thrown), cost }
    return null
  }
}

/** Returns true if there are notes and the conversation has messages that they do not cover. */
export function hasMessagesBeyondNotes(
  { view: { entries } }: SessionState,
  stored: StoredNotes | null,
): boolean {
  const isCovered = ({ record }: ContextEntry): boolean => record.uuid === stored?.coveredUuid
  const newest = entries.findLast((entry) => isCovered(entry) || 'message' in entry.record)
  return stored !== null && newest !== undefined && !isCovered(newest)
}

function addCost({ usage, dollars }: NotesCost, event: TurnEvent): NotesCost {
  if (event.type === 'side-reply') return { usage: addReplyUsage(usage, event.event), dollars }
  if (event.type !== 'priced') return { usage, dollars }
  const { total } = event.call.money
  return { usage, dollars: dollars === null || total === null ? null : dollars + total }
}

/** Returns new notes, from the log without a model call if the host keeps them so, else from a model. Stores nothing. */
async function* writeNotes(
  turn: TurnContext,
  given: { readonly notes: NotesServices; readonly at: SessionState; readonly stored: StoredNotes | null },
): AsyncGenerator<TurnEvent, NewNotesResult> {
  const { notes, at, stored } = given
  const overrides = await notes.store.readOverrides(at.id)
  if (notes.local !== null) {
    const limits = createNotesLimits(turn)
    const { host } = turn
    const started = host.clock.now()
    const kept = await runUntilClosed(turn, notes.local.update(at, limits, { template: overrides.template }))
    // After this time the claim may be held by another update, which must not be overwritten.
    const isLate = host.clock.now() - started >= host.policy.notes.deadAfterSeconds * 1000
    if (kept === null || isLate) return ABORTED_NOTES_UPDATE
    return { ok: true, text: redact(kept.text), coveredUuid: kept.coveredUuid }
  }
  const template = chooseNotesTemplate(overrides.template)
  // Notes of another branch would describe work that is no longer part of the conversation.
  const isSameBranch = stored !== null && isCoverageOnBranch(at, stored.coveredUuid)
  return yield* updateNotesWithModel(turn, {
    state: at,
    notes: isSameBranch ? moveNotesToTemplate(stored.text, template) : template,
    template,
    path: notes.store.path(at.id),
    ...(overrides.prompt === undefined ? {} : { instructions: overrides.prompt }),
  })
}

/** Milliseconds that each pass of work on the notes (measuring, updating) may still take after an abort, as when the session is closed. */
const CLOSING_MS = 2_000

/**
 * Runs work in slices. After an abort, the work goes on for a moment, since it costs no call. Returns null if that is
 * not enough: the next update continues there, or from the log in a reopened session.
 */
export function runUntilClosed<Result>(
  { host, signal }: Pick<TurnContext, 'host' | 'signal'>,
  steps: WorkInSteps<Result>,
): Promise<Result | null> {
  let abortedAt: number | null = null
  return runStepsInSlices(steps, async () => {
    await host.pause?.()
    if (signal?.aborted !== true) return true
    abortedAt ??= host.clock.now()
    return host.clock.now() - abortedAt < CLOSING_MS
  })
}

function isCoverageOnBranch({ session, view }: SessionState, uuid: string | null): boolean {
  const index = uuid === null ? undefined : findRecordIndex(session, uuid)
  return index === undefined ? uuid === null : isOnBranch(view.branch, index)
}
