/**
 * Compacts with the notes of the session instead of a summary, so that no model is asked. Only automatic compactions try
 * it. It ends in the usual steps (prepare, commit) with a ready text; at any "no", and any error, a summary is written.
 */

import type { ContextEntry } from '../context/context-entry.ts'
import { isVisibleToModel } from '../context/context-entry.ts'
import { findCutPoints } from '../context/cut-points.ts'
import { ABORTED_REWRITE, type RefusedRewrite, type TurnEvent } from '../engine/events.ts'
import type { CompactionServices, NotesServices, TurnHost } from '../engine/host.ts'
import { createTextCounter, withContextState } from '../engine/measure-context.ts'
import type { NotesRefusalReason } from '../engine/notes-events.ts'
import type { StoredNotes } from '../engine/ports.ts'
import { isTurnAborted, type TurnContext } from '../engine/session-writer.ts'
import { NO_SUMMARY_USAGE } from '../engine/summary-usage.ts'
import { isTextBlock, toBlocks } from '../log/block.ts'
import { isCompactBoundary, type KnownRecord } from '../log/record.ts'
import { areNotesEmpty } from '../notes/notes-file.ts'
import { cutNotes } from '../notes/notes-limits.ts'
import { findMechanismStates, NO_SWITCHES } from '../policy/switches.ts'
import { redact } from '../summary/redact.ts'
import { calibrateSize } from '../tokens/usage.ts'
import { type CompactionResult, commitDraft } from './commit-draft.ts'
import { findLostThinking } from './draft.ts'
import { type CompactionOptions, type CompactionPlan, planCompaction } from './plan-compaction.ts'
import { prepareDraft } from './prepare-draft.ts'

/** A plan whose summary is the notes. */
export interface NotesPlan {
  readonly plan: CompactionPlan
  readonly by: 'model' | 'local'
  /** Headings of the sections that were cut at their limit. */
  readonly cut: readonly string[]
  readonly keptTokens: number
}

/**
 * Compacts with the notes. Returns null if a summary has to be written instead; an event tells why. A compaction that is
 * aborted or that a hook blocks is over, and its refusal is returned.
 */
export async function* compactWithNotes(
  turn: TurnContext,
  compaction: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult | null> {
  try {
    const planned = yield* planWithNotes(turn, compaction, request)
    if (isTurnAborted(turn)) return ABORTED_REWRITE
    if (planned === null) return null
    const draft = yield* prepareDraft(turn, compaction, planned.plan)
    const end = draft.ok ? yield* commitDraft(turn, compaction, draft) : draft
    if (!end.ok) return yield* refuseNotes(planned.plan, end)
    const { id, tokensBefore, tokensAfter } = end.compaction
    const kept = { entries: planned.plan.span.kept.length, tokens: planned.keptTokens }
    yield { type: 'sm-compact', id, tokensBefore, tokensAfter, by: planned.by, kept, cut: planned.cut }
    return end
  } catch (thrown) {
    yield { type: 'sm-compact-refused', reason: 'error', message: readMessage(thrown) }
    return null
  }
}

function* refuseNotes(
  { autoCompactTokens }: CompactionPlan,
  end: RefusedRewrite,
): Generator<TurnEvent, RefusedRewrite | null> {
  const { reason, message } = end
  if (reason === 'aborted') return end
  if (reason === 'floor' && autoCompactTokens !== null) {
    const tokens = end.tokens ?? autoCompactTokens
    yield { type: 'sm-compact-threshold-exceeded', tokens, threshold: autoCompactTokens }
    return null
  }
  const isBlocked = reason === 'blocked'
  yield { type: 'sm-compact-refused', reason: isBlocked ? 'blocked' : 'refused', message }
  return isBlocked ? end : null
}

/**
 * Plans a compaction with the notes: the steps of the decision up to the estimate of the result. Returns null if the
 * notes cannot be used; an event tells why, unless there are no notes by the settings.
 */
export async function* planWithNotes(
  turn: TurnContext,
  compaction: CompactionServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, NotesPlan | null> {
  const { notes } = compaction
  if (notes === undefined || !mayUseNotes(turn, request)) return null
  const found = yield* readNotes(turn, compaction, notes)
  if ('reason' in found) {
    yield { type: 'sm-compact-refused', ...found }
    return null
  }
  const start = chooseKeptStart(turn, compaction, found.uncovered)
  const entries = turn.state.view.entries.toArray()
  const pivot = entries[start]?.record.uuid
  const { charactersPerToken } = turn.host.policy.estimate
  const { text, cut } = cutNotes(redact(found.text), {
    characters: Math.floor(compaction.scaled.budgets.notes.section * charactersPerToken),
    path: notes.store.path(turn.state.id),
  })
  const asked: CompactionOptions = {
    ...request,
    form: 'up_to',
    ...(pivot === undefined ? {} : { pivot }),
    notesText: text,
  }
  const plan = planCompaction(turn.state, asked, { host: turn.host, compaction })
  if (!plan.ok) {
    yield { type: 'sm-compact-refused', reason: 'refused', message: plan.message }
    return null
  }
  const measure = createEntryCounter(turn, compaction)
  const sizes = measurePlan(turn, compaction, plan, text)
  if (plan.autoCompactTokens !== null && sizes.after >= plan.autoCompactTokens) {
    yield { type: 'sm-compact-threshold-exceeded', tokens: sizes.after, threshold: plan.autoCompactTokens }
    return null
  }
  const keptTokens = plan.span.kept.reduce((sum, entry) => sum + measure(entry), 0)
  return { plan: withThinkingNote(plan, turn), by: found.by, cut, keptTokens: Math.round(keptTokens) }
}

/**
 * Returns true if an automatic compaction may use the notes. After a refusal by the provider it may not, because the
 * context was larger than estimated; and the conversations that write summaries and notes have no notes themselves.
 */
function mayUseNotes({ host }: Pick<TurnContext, 'host'>, { trigger, cause }: CompactionOptions): boolean {
  const { policy, switches = NO_SWITCHES, source } = host
  if (trigger !== 'auto' || cause === 'reactive' || source === 'compact' || source === 'session_memory')
    return false
  return findMechanismStates(policy, switches).notes.on
}

/** Returns true if an automatic compaction can be expected to use the notes, so that no summary need be prepared. */
export function hasReadyNotes(host: TurnHost, { notes }: CompactionServices): boolean {
  if (notes === undefined || !mayUseNotes({ host }, { trigger: 'auto', cause: 'threshold' })) return false
  return notes.local !== null || notes.hasStored?.() === true
}

interface UsableNotes {
  readonly text: string
  readonly by: 'model' | 'local'
  /** Position of the first entry that the notes do not cover. */
  readonly uncovered: number
}

type NotesRefusal = { readonly reason: NotesRefusalReason; readonly message: string }

async function* readNotes(
  turn: TurnContext,
  compaction: CompactionServices,
  notes: NotesServices,
): AsyncGenerator<TurnEvent, UsableNotes | NotesRefusal> {
  if (notes.local !== null) return yield* bringUpToDate(turn, compaction, notes)
  try {
    if ((await notes.store.read(turn.state.id)) === null) return NO_NOTES
    yield* waitForUpdate(turn, notes)
    const stored = await notes.store.read(turn.state.id)
    if (stored === null) return NO_NOTES
    if (areNotesEmpty(stored.text)) return EMPTY_NOTES
    return findCoverage(turn, stored)
  } catch (thrown) {
    return { reason: 'store', message: `The notes cannot be read: ${readMessage(thrown)}` }
  }
}

const NO_NOTES: NotesRefusal = { reason: 'no-notes', message: 'The session has no notes yet.' }
const EMPTY_NOTES: NotesRefusal = {
  reason: 'empty-notes',
  message: 'The notes have nothing but their headings.',
}

/** Reads the new records into notes that are kept from the log, which takes no time, so that they cover everything. */
async function* bringUpToDate(
  turn: TurnContext,
  compaction: CompactionServices,
  { store, local }: NotesServices,
): AsyncGenerator<TurnEvent, UsableNotes | NotesRefusal> {
  const { state, host } = turn
  const { template } = await store.readOverrides(state.id).catch((): { template?: string } => ({}))
  const limits = {
    ...compaction.scaled.budgets.notes,
    countTokens: createTextCounter(state, host, compaction),
  }
  const kept = local?.update(state, limits, template)
  const text = redact(kept?.text ?? '')
  if (areNotesEmpty(text)) return EMPTY_NOTES
  const coveredUuid = kept?.coveredUuid ?? null
  const stored: StoredNotes = { text, coveredUuid, writtenAt: host.clock.now(), writtenBy: 'local' }
  try {
    await store.write(state.id, stored)
  } catch (thrown) {
    const cost = { usage: NO_SUMMARY_USAGE, dollars: 0 }
    yield { type: 'notes-failed', by: 'local', reason: 'store', message: readMessage(thrown), cost }
  }
  return { text, by: 'local', uncovered: state.view.entries.length }
}

/** Milliseconds between two looks at an update of the notes that is running, maybe in another process. */
const LOOK_AGAIN_MS = 250

/** Waits until no update of the notes is running, or it counts as dead, or the longest wait is over. */
async function* waitForUpdate(turn: TurnContext, { store }: NotesServices): AsyncGenerator<TurnEvent, void> {
  const { clock, policy } = turn.host
  const { waitSeconds, deadAfterSeconds } = policy.notes
  const until = clock.now() + waitSeconds * 1000
  let isTold = false
  for (;;) {
    const since = await store.readClaim(turn.state.id)
    const isRunning = since !== null && clock.now() - since < deadAfterSeconds * 1000
    if (!isRunning || clock.now() >= until || isTurnAborted(turn)) return
    if (!isTold) yield { type: 'phase', phase: 'waiting for the notes' }
    isTold = true
    await clock.sleep(Math.min(LOOK_AGAIN_MS, until - clock.now()), turn.signal)
  }
}

function findCoverage({ state }: TurnContext, stored: StoredNotes): UsableNotes | NotesRefusal {
  const { text, coveredUuid, writtenBy: by } = stored
  if (coveredUuid === null)
    return { reason: 'unknown-coverage', message: 'It is not known which messages the notes cover.' }
  const { entries } = state.view
  for (let place = entries.length - 1; place >= 0; place -= 1)
    if (entries.at(place)?.record.uuid === coveredUuid) return { text, by, uncovered: place + 1 }
  return {
    reason: 'not-in-context',
    message: 'The last message that the notes cover is no longer in the context.',
  }
}

/**
 * Returns the position of the first entry to keep. Everything that the notes do not cover is kept, whatever its size.
 * Older entries follow until there are enough tokens and messages with text, but not beyond the largest size, and not
 * beyond the last compaction. The cut is then moved backwards, so that calls and results, and the records of a response,
 * stay together.
 */
function chooseKeptStart(turn: TurnContext, compaction: CompactionServices, uncovered: number): number {
  const { minimum, maximum } = compaction.scaled.budgets.keptMessages
  const { minimumMessages } = turn.host.policy.notes.kept
  const entries = turn.state.view.entries.toArray()
  const measure = createEntryCounter(turn, compaction)
  const floor = entries.findLastIndex(({ record }) => isSummaryOrBoundary(record)) + 1
  let start = Math.max(uncovered, floor)
  const kept = entries.slice(start)
  let tokens = kept.reduce((sum, entry) => sum + measure(entry), 0)
  let messages = kept.filter(hasMessageText).length
  while (start > floor && (tokens < minimum || messages < minimumMessages)) {
    const entry = entries[start - 1]
    if (entry === undefined) break
    const size = measure(entry)
    if (tokens > 0 && tokens + size > maximum) break
    start -= 1
    tokens += size
    messages += hasMessageText(entry) ? 1 : 0
  }
  const cuts = findCutPoints(entries.map(({ record }) => record))
  return cuts.findLast((cut) => cut <= start) ?? 0
}

function isSummaryOrBoundary(record: KnownRecord): boolean {
  return record.isCompactSummary === true || isCompactBoundary(record)
}

function hasMessageText({ record }: ContextEntry): boolean {
  if (record.type !== 'user' && record.type !== 'assistant') return false
  return toBlocks(record.message.content).some((block) => isTextBlock(block) && block.text.trim() !== '')
}

/** Creates a function that estimates the tokens of an entry, corrected by the usage that the provider reported. */
function createEntryCounter(
  { state, host }: TurnContext,
  compaction: CompactionServices,
): (entry: ContextEntry) => number {
  const { calibration } = withContextState(state, compaction).context.meter
  return (entry) =>
    isVisibleToModel(entry)
      ? calibrateSize(calibration, compaction.estimator.entry(entry), host.policy.estimate).expected
      : 0
}

/** Estimates the size of the result before any hook runs, without what is attached again. */
function measurePlan(
  turn: TurnContext,
  compaction: CompactionServices,
  { span, before }: CompactionPlan,
  text: string,
): { readonly after: number } {
  const measure = createEntryCounter(turn, compaction)
  const gone = span.summarised.reduce((sum, entry) => sum + measure(entry), 0)
  const count = createTextCounter(turn.state, turn.host, compaction)
  return { after: Math.round(before.expected - gone + count(text)) }
}

/** Adds a sentence about kept thinking, for models that accept thinking only after unchanged messages. */
function withThinkingNote(plan: CompactionPlan, { host }: TurnContext): CompactionPlan {
  const context = { span: plan.span, outdated: [], isBlock: false, added: [] }
  const lost = findLostThinking(context, host.profile).length
  if (lost === 0) return plan
  const note = `The thinking of ${lost === 1 ? 'one kept response is' : `${lost} kept responses is`} no longer sent, because this model accepts it only after unchanged messages. The log keeps it, and an undo restores it.`
  return { ...plan, notes: [...plan.notes, note] }
}

function readMessage(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
