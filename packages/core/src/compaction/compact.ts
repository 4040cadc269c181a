/**
 * Runs a whole compaction: with the notes of the session if that is possible, otherwise plan, prepare, commit. Counts
 * failures of automatic compactions, which are paused after several in a row.
 */

import { type ContextEntry, isVisibleToModel } from '../context/context-entry.ts'
import { findCutPoints, listWaitingCallIds } from '../context/flatten-context.ts'
import {
  ABORTED_REWRITE,
  NO_NOTES_COST,
  type NotesFallbackReason,
  type NotesRefusalReason,
  type RefusedRewrite,
  refuseRewrite,
  type TurnEvent,
  withDonePhase,
} from '../engine/events.ts'
import type { NotesServices, TurnHost } from '../engine/host.ts'
import {
  createCalibratedTokenCounter,
  updatePlanningStateInSlices,
  withPlanningState,
} from '../engine/measure-context.ts'
import type { NotesStore, StoredNotes } from '../engine/ports.ts'
import { isCompactionBreakerOpen, type SessionState } from '../engine/session-state.ts'
import {
  isTurnAborted,
  runSlicesUnlessAborted,
  type TurnContext,
  yieldToHost,
} from '../engine/session-writer.ts'
import { describeThrown } from '../errors.ts'
import { joinTextBlocks } from '../log/block.ts'
import { isCompactBoundary, type KnownRecord } from '../log/record.ts'
import {
  areNotesEmpty,
  cutNotes,
  formatNotes,
  isNotesClaimExpired,
  type NotesLimits,
  parseNotes,
} from '../notes/notes-file.ts'
import type { BranchNotesKeeper } from '../notes/render-notes.ts'
import { SUMMARY_AND_NOTES_CALLERS } from '../planner/context-plan.ts'
import { findFeatureStates, NO_SWITCHES } from '../policy/switches.ts'
import { computeLocalSummaryLimit } from '../summary/local-summary.ts'
import { redact } from '../text/redact.ts'
import { calibrateSize } from '../tokens/usage.ts'
import { type CompactionResult, commitDraft } from './commit-draft.ts'
import { listResponsesLosingThinking } from './draft.ts'
import {
  type CompactionOptions,
  type CompactionPlan,
  keepsOnlyNewestRound,
  planCompaction,
  withBudgets,
  withFittedBudgets,
  withHost,
} from './plan-compaction.ts'
import { type PreCompactResult, prepareDraft, runPreCompactHooks } from './prepare-draft.ts'

/**
 * Compacts the context. The conversation stays unchanged unless the compaction succeeds. A failure is returned and emitted
 * (`compact-failed`); that of an automatic compaction is also counted.
 */
export async function* compact(
  turn: TurnContext,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const end = yield* withDonePhase(runSteps(turn, request))
  // With `notesOnly`, an event has already reported why the notes could not be used.
  if (end.ok || request.notesOnly === true) return end
  const { trigger, cause } = request
  if (end.reason !== 'aborted') yield { type: 'compact-failed', trigger, cause, refused: end }
  if (trigger === 'auto') yield* countCompactionFailure(turn, end)
  return end
}

async function* runSteps(
  given: TurnContext,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, CompactionResult> {
  if (!(await updatePlanningStateInSlices(given))) return ABORTED_REWRITE
  const turn = withHost(given, withFittedBudgets(given.state, given.host))
  const { end, hooked } = yield* compactWithNotes(turn, request)
  if (end !== null) return end
  if (request.notesOnly === true) return refuseRewrite('no-summary', 'The notes cannot be used now.')
  const plan = planCompaction(turn.state, request, turn.host)
  if (!plan.ok) return plan
  const draft = yield* prepareDraft(turn, plan, hooked)
  if (!draft.ok) return draft
  return yield* commitDraft(turn, draft)
}

/** Refusal reasons that do not count as failures: an abort, the veto of a hook, and what a later compaction may not meet. */
const NO_FAILURES: ReadonlySet<string> = new Set<RefusedRewrite['reason']>([
  'aborted',
  'blocked',
  'empty-conversation',
  'nothing-to-summarise',
  'pending-call',
  'off',
])

/**
 * Counts a failed automatic compaction, also one that was only being prepared. Emits `breaker-open` when the count reaches the
 * limit of the policy.
 */
export function* countCompactionFailure(turn: TurnContext, end: RefusedRewrite): Generator<TurnEvent, void> {
  if (NO_FAILURES.has(end.reason)) return
  const known = withPlanningState(turn.state, turn.host)
  const { breaker: before } = known.context
  const at = known.session.records.length - 1
  const breaker = { failures: before.failures + 1, lastReason: end.reason, at }
  turn.state = { ...known, context: { ...known.context, breaker } }
  const { auto } = turn.host.policy.turn
  if (isCompactionBreakerOpen(breaker, auto) && !isCompactionBreakerOpen(before, auto))
    yield { type: 'breaker-open', failures: breaker.failures, reason: end.message }
}

// Compacts with the notes of the session instead of a summary, so that no model is called. Only automatic compactions
// try this. The notes pass through the usual steps (prepare, commit). If they cannot be used, a summary is written.

/** A plan whose summary is the notes. */
interface NotesPlan {
  readonly plan: CompactionPlan
  readonly by: 'model' | 'local'
  /** Why notes from the log take the place of the model's notes; null if they do not. */
  readonly fallbackReason: NotesFallbackReason | null
  /** Headings of the sections that were cut at their limit. */
  readonly cut: readonly string[]
  readonly keptTokens: number
}

/** How far a compaction with the notes came. */
interface NotesAttempt {
  /** Null if a summary has to be written instead; an event tells why, unless notes are not kept or not used for this cause. */
  readonly end: CompactionResult | null
  /** The results of the PreCompact hooks, which run once, even if a summary follows; null if they have not run. */
  readonly hooked: PreCompactResult | null
}

/** Compacts with the notes. If that is aborted, or a hook blocks it, no summary is written either, and `end` is the refusal. */
async function* compactWithNotes(
  turn: TurnContext,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, NotesAttempt> {
  const { compaction } = turn.host
  const attempt = yield* tryNotes(turn, request)
  const isUnusable = attempt.end === null && request.mostTokens === undefined
  if (isUnusable && compaction.notes !== undefined && mayUseNotes(turn, request))
    turn.state = { ...turn.state, refusedNotes: describeNotesUse(turn.state, compaction.notes) }
  return attempt
}

/** As `compactWithNotes`, without remembering that the notes could not be used. Never throws. */
async function* tryNotes(
  turn: TurnContext,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, NotesAttempt> {
  let hooked: PreCompactResult | null = null
  try {
    const planned = yield* planWithNotes(turn, request)
    if (isTurnAborted(turn)) return { end: ABORTED_REWRITE, hooked }
    if (planned === null) return { end: null, hooked }
    hooked = yield* runPreCompactHooks(turn, planned.plan)
    const first = yield* compactAsPlanned(turn, planned, hooked)
    if (first.ok) return { end: first, hooked }
    if (request.mostTokens !== undefined) return { end: yield* refuseNotes(planned.plan, first), hooked }
    // If the model's notes lag behind, so much is kept after them that the result is too large. Notes from the log cover all.
    const isFinal = planned.by === 'local' || first.reason === 'aborted' || first.reason === 'blocked'
    const reason = first.reason === 'floor' ? 'threshold' : 'refused'
    const fallback = isFinal ? null : await planFallback(turn, request, reason)
    if (isTurnAborted(turn)) return { end: ABORTED_REWRITE, hooked }
    if (fallback === null) return { end: yield* refuseNotes(planned.plan, first), hooked }
    const second = yield* compactAsPlanned(turn, fallback, hooked)
    return { end: second.ok ? second : yield* refuseNotes(fallback.plan, second), hooked }
  } catch (thrown) {
    yield { type: 'sm-compact-refused', reason: 'error', message: describeThrown(thrown) }
    return { end: null, hooked }
  }
}

async function* compactAsPlanned(
  turn: TurnContext,
  planned: NotesPlan,
  hooked: PreCompactResult,
): AsyncGenerator<TurnEvent, CompactionResult> {
  const draft = yield* prepareDraft(turn, planned.plan, hooked)
  if (!draft.ok) return draft
  const end = yield* commitDraft(turn, draft)
  if (!end.ok) return end
  const { id, tokensBefore, tokensAfter } = end.compaction
  const kept = { entries: planned.plan.span.kept.length, tokens: planned.keptTokens }
  const { by, fallbackReason, cut } = planned
  yield { type: 'sm-compact', id, tokensBefore, tokensAfter, by, fallbackReason, kept, cut }
  return end
}

/** Emits why the notes were refused. Returns the refusal if it ends the compaction; null if a summary may still be written. */
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
 * Plans a compaction with the notes as its summary, if the result is expected to be small enough. If the model's notes
 * cannot be used, notes from the log take their place. Returns null if no notes can be used; an event tells why, unless
 * the settings keep no notes.
 */
export async function* planWithNotes(
  turn: TurnContext,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, NotesPlan | null> {
  const { notes } = turn.host.compaction
  if (notes === undefined || !mayUseNotes(turn, request)) return null
  const { local } = notes
  const found = yield* local === null
    ? readModelNotes(turn, notes, request)
    : bringUpToDate(turn, notes.store, local)
  const first = await planWithText(turn, request, found)
  if (isTurnAborted(turn) || first === null) return null
  if ('plan' in first) return first
  const second = await planFallback(turn, request, 'reason' in first ? first.reason : 'threshold')
  if (isTurnAborted(turn)) return null
  if (second !== null) return second
  if (request.mostTokens !== undefined) return null
  yield 'reason' in first
    ? { type: 'sm-compact-refused', ...first }
    : { type: 'sm-compact-threshold-exceeded', ...first }
  return null
}

/** Largest share of a short conversation that is kept verbatim after its notes. */
const KEPT_SHARE = 1 / 8

/**
 * Plans a compaction with notes that are made from the log at once, for a caller without a model, whatever the trigger.
 * Notes and kept messages are smaller in a short conversation. Returns null if no notes can be used.
 */
export async function planWithLogNotes(
  turn: TurnContext,
  request: CompactionOptions,
  keeper: BranchNotesKeeper,
): Promise<CompactionPlan | null> {
  if (!keepsNotes(turn.host)) return null
  const measure = createEntryCounter(turn)
  const tokens = turn.state.view.entries.toArray().reduce((sum, entry) => sum + measure(entry), 0)
  const host = withFittedBudgets(turn.state, turn.host)
  const { notes, keptMessages } = host.compaction.scaled.budgets
  const most = Math.floor(tokens * KEPT_SHARE)
  const total = Math.min(notes.total, computeLocalSummaryLimit(tokens))
  const budgets = {
    ...host.compaction.scaled.budgets,
    notes: { ...notes, total, decisions: Math.floor((notes.decisions * total) / Math.max(1, notes.total)) },
    keptMessages: {
      minimum: Math.min(keptMessages.minimum, most),
      maximum: Math.min(keptMessages.maximum, most),
    },
  }
  const small = withHost(turn, withBudgets(host, budgets))
  const planned = await planWithText(small, request, await renderNotes(small, keeper, { use: 'summary' }))
  return planned !== null && 'plan' in planned ? planned.plan : null
}

/** Returns true if the settings keep notes of this conversation. Never of the conversations that write summaries or notes. */
export function keepsNotes({ policy, switches = NO_SWITCHES, source }: TurnHost): boolean {
  return findFeatureStates(policy, switches).notes.on && !SUMMARY_AND_NOTES_CALLERS.has(source)
}

/** Plans a compaction with notes from the log instead of the model's notes; null if there are none that can be used. */
async function planFallback(
  turn: TurnContext,
  request: CompactionOptions,
  fallbackReason: NotesFallbackReason,
): Promise<NotesPlan | null> {
  const { notes } = turn.host.compaction
  if (notes === undefined || notes.local !== null || notes.fallback === undefined) return null
  const template = await readTemplate(turn, notes.store)
  const kept = await renderNotes(turn, notes.fallback, { template, use: 'summary' })
  const planned = await planWithText(turn, request, kept)
  return planned !== null && 'plan' in planned ? { ...planned, fallbackReason } : null
}

/**
 * Plans a compaction with a text of notes. If it cannot be planned, returns the refusal, or the size of the result and
 * the threshold that it reaches; null if the turn was aborted.
 */
async function planWithText(
  turn: TurnContext,
  request: CompactionOptions,
  found: UsableNotes | NotesRefusal,
): Promise<NotesPlan | NotesRefusal | { readonly tokens: number; readonly threshold: number } | null> {
  const { compaction } = turn.host
  if ('reason' in found) return found
  const { charactersPerToken } = turn.host.policy.estimate
  const { text, cut } = cutNotes(withoutTemplate(redact(found.text)), compaction.scaled.budgets.notes, {
    charactersPerToken,
    path: compaction.notes?.store.path(turn.state.id) ?? compaction.retrieval?.transcript ?? '',
  })
  if (!(await yieldToHost(turn))) return null
  const start = chooseKeptStart(turn, found.uncovered)
  const pivot = turn.state.view.entries.at(start)?.record.uuid
  if (!(await yieldToHost(turn))) return null
  const asked: CompactionOptions = {
    ...request,
    form: 'up_to',
    ...(pivot === undefined ? {} : { pivot }),
    notesText: text,
    notesBy: found.by,
  }
  const plan = planCompaction(turn.state, asked, turn.host)
  if (!plan.ok) return { reason: 'refused', message: plan.message }
  if (!(await yieldToHost(turn))) return null
  const measure = createEntryCounter(turn)
  const keptTokens = Math.round(plan.span.kept.reduce((sum, entry) => sum + measure(entry), 0))
  const textTokens = createCalibratedTokenCounter(turn.state, turn.host)(text)
  // The size of the result before any hook runs, without what is attached again.
  const after = Math.round(plan.before.expected - (plan.replacedTokens - keptTokens) + textTokens)
  const threshold = keepsOnlyNewestRound(asked) ? (plan.limit?.tokens ?? null) : plan.autoCompactTokens
  if (threshold !== null && after >= threshold) return { tokens: after, threshold }
  const { mostTokens = Number.POSITIVE_INFINITY } = request
  const tokens = keptTokens + textTokens
  if (tokens > mostTokens) return { tokens, threshold: mostTokens }
  return { plan: withThinkingNote(plan, turn), by: found.by, fallbackReason: null, cut, keptTokens }
}

/** Returns notes without hints and empty sections, which only tell a writer what belongs where. */
function withoutTemplate(text: string): string {
  const filled = parseNotes(text).filter(({ body }) => body !== '')
  return formatNotes(filled.map((section) => ({ ...section, hint: '' })))
}

/**
 * Returns true if an automatic compaction may use the notes. After a refusal by the provider it may not, because the
 * context was larger than estimated; and the conversations that write summaries and notes have no notes themselves.
 */
function mayUseNotes({ host }: Pick<TurnContext, 'host'>, { trigger, cause }: CompactionOptions): boolean {
  return trigger === 'auto' && cause !== 'reactive' && keepsNotes(host)
}

/**
 * Returns true if an automatic compaction can be expected to use the notes, so that no summary need be prepared: the
 * last record that they cover is in the context, and no compaction has failed to use them since their last update.
 */
export function hasUsableNotes(state: SessionState, host: TurnHost): boolean {
  const { notes } = host.compaction
  if (notes === undefined || !mayUseNotes({ host }, { trigger: 'auto', cause: 'threshold' })) return false
  const use = describeNotesUse(state, notes)
  const { refusedNotes: refused } = state
  if (refused?.rewrite === use.rewrite && refused.coveredUuid === use.coveredUuid) return false
  if (notes.local !== null || notes.fallback !== undefined) return true
  return use.coveredUuid !== null && findEntry(state, use.coveredUuid) !== -1
}

/** Returns the newest rewrite and what the model's notes cover: while both are the same, notes once refused are refused again. */
function describeNotesUse(
  { view }: SessionState,
  notes: NotesServices,
): NonNullable<SessionState['refusedNotes']> {
  const coveredUuid = notes.local === null ? (notes.readStored?.()?.coveredUuid ?? null) : null
  return { rewrite: view.rewrites.at(-1)?.uuid ?? null, coveredUuid }
}

interface UsableNotes {
  readonly text: string
  readonly by: 'model' | 'local'
  /** Position of the first entry that the notes do not cover. */
  readonly uncovered: number
}

type NotesRefusal = { readonly reason: NotesRefusalReason; readonly message: string }

/** Reads the model's notes, after waiting for an update that is running. */
async function* readModelNotes(
  turn: TurnContext,
  notes: NotesServices,
  request: CompactionOptions,
): AsyncGenerator<TurnEvent, UsableNotes | NotesRefusal> {
  try {
    if ((await notes.store.read(turn.state.id)) === null) return NO_NOTES
    // A compaction before the threshold only saves money, and is not worth a wait.
    if (request.notesOnly !== true) yield* waitForUpdate(turn, notes)
    const stored = await notes.store.read(turn.state.id)
    if (stored === null) return NO_NOTES
    if (areNotesEmpty(stored.text)) return EMPTY_NOTES
    return findCoverage(turn, stored)
  } catch (thrown) {
    return { reason: 'store', message: `The notes cannot be read: ${describeThrown(thrown)}` }
  }
}

const NO_NOTES: NotesRefusal = { reason: 'no-notes', message: 'The session has no notes yet.' }
const EMPTY_NOTES: NotesRefusal = {
  reason: 'empty-notes',
  message: 'The notes have nothing but their headings.',
}
const ABORTED_NOTES: NotesRefusal = { reason: 'refused', message: 'The turn was aborted.' }

/** Reads the new records into notes that are kept from the log, so that they cover everything. No model is called. */
async function* bringUpToDate(
  turn: TurnContext,
  store: NotesStore,
  local: BranchNotesKeeper,
): AsyncGenerator<TurnEvent, UsableNotes | NotesRefusal> {
  const { state, host } = turn
  const template = await readTemplate(turn, store)
  const file = await renderNotes(turn, local, { template })
  if ('reason' in file) return file
  const { text, coveredUuid } = file
  const stored: StoredNotes = { text, coveredUuid, writtenAt: host.clock.now(), writtenBy: 'local' }
  try {
    // If an update holds the claim, maybe in another process, it stores its own notes, and these are not stored.
    const deadAfterMs = host.policy.notes.deadAfterSeconds * 1000
    const claim = await store.claim(state.id, { now: host.clock.now(), deadAfterMs })
    if (claim !== null) await store.write(state.id, stored).finally(() => claim.release())
  } catch (thrown) {
    const message = describeThrown(thrown)
    yield { type: 'notes-failed', by: 'local', reason: 'store', message, cost: NO_NOTES_COST }
  }
  return renderNotes(turn, local, { template, use: 'summary' })
}

async function readTemplate({ state }: TurnContext, store: NotesStore): Promise<string | undefined> {
  const { template } = await store.readOverrides(state.id).catch((): { template?: string } => ({}))
  return template
}

/** Returns the notes that are kept from the log, with everything that is in it. */
async function renderNotes(
  turn: TurnContext,
  keeper: BranchNotesKeeper,
  options: Parameters<BranchNotesKeeper['update']>[2],
): Promise<(UsableNotes & Pick<StoredNotes, 'coveredUuid'>) | NotesRefusal> {
  const { state } = turn
  const limits = createNotesLimits(turn)
  const kept = await runSlicesUnlessAborted(turn, keeper.update(state, limits, options))
  if (kept === null) return ABORTED_NOTES
  const text = redact(kept.text)
  if (areNotesEmpty(text)) return EMPTY_NOTES
  return { text, coveredUuid: kept.coveredUuid, by: 'local', uncovered: state.view.entries.length }
}

/** Milliseconds between two checks whether an update of the notes, maybe in another process, is still running. */
const LOOK_AGAIN_MS = 250

/** Waits until no update of the notes is running, or it counts as dead, or the longest wait is over. */
async function* waitForUpdate(turn: TurnContext, { store }: NotesServices): AsyncGenerator<TurnEvent, void> {
  const { clock, policy } = turn.host
  const { waitSeconds, deadAfterSeconds } = policy.notes
  const until = clock.now() + waitSeconds * 1000
  let isAnnounced = false
  for (;;) {
    const since = await store.readClaim(turn.state.id)
    const isRunning = since !== null && !isNotesClaimExpired(since, clock.now(), deadAfterSeconds * 1000)
    if (!isRunning || clock.now() >= until || isTurnAborted(turn)) return
    if (!isAnnounced) yield { type: 'phase', phase: 'waiting for the notes' }
    isAnnounced = true
    await clock.sleep(Math.min(LOOK_AGAIN_MS, until - clock.now()), turn.signal)
  }
}

/** Finds where in the context the notes end. Refuses notes if that is not known. */
function findCoverage({ state }: TurnContext, stored: StoredNotes): UsableNotes | NotesRefusal {
  const { text, coveredUuid, writtenBy: by } = stored
  if (coveredUuid === null)
    return { reason: 'unknown-coverage', message: 'It is not known which messages the notes cover.' }
  const place = findEntry(state, coveredUuid)
  if (place !== -1) return { text, by, uncovered: place + 1 }
  return {
    reason: 'not-in-context',
    message: 'The last message that the notes cover is no longer in the context.',
  }
}

/** Returns the position of a record in the context; -1 if it is not there. */
function findEntry({ view: { entries } }: SessionState, uuid: string): number {
  return entries.findLastIndex(({ record }) => record.uuid === uuid)
}

/**
 * Returns the position of the first entry to keep. Everything that the notes do not cover is kept, whatever its size. Older
 * entries are added until there are enough tokens and messages with text, up to the largest size and back to the last compaction
 * at most. The cut then moves backwards, so that calls and results, and the records of a response, stay together.
 */
function chooseKeptStart(turn: TurnContext, uncovered: number): number {
  const { minimum, maximum } = turn.host.compaction.scaled.budgets.keptMessages
  const { minimumMessages } = turn.host.policy.notes.kept
  const entries = turn.state.view.entries.toArray()
  const measure = createEntryCounter(turn)
  const floor = entries.findLastIndex(({ record }) => isSummaryOrBoundary(record)) + 1
  let start = Math.max(uncovered, floor)
  const kept = entries.slice(start)
  let tokens = kept.reduce((sum, entry) => sum + measure(entry), 0)
  const messages = new Set(kept.flatMap(listTextMessages))
  while (start > floor && (tokens < minimum || messages.size < minimumMessages)) {
    const entry = entries[start - 1]
    if (entry === undefined) break
    const size = measure(entry)
    if (tokens > 0 && tokens + size > maximum) break
    start -= 1
    tokens += size
    for (const id of listTextMessages(entry)) messages.add(id)
  }
  const waiting = listWaitingCallIds(turn.state.flat)
  const cuts = findCutPoints(
    entries.map(({ record }) => record),
    waiting,
  )
  return cuts.findLast((cut) => cut <= start) ?? 0
}

function isSummaryOrBoundary(record: KnownRecord): boolean {
  return record.isCompactSummary === true || isCompactBoundary(record)
}

/** Returns the id of the message if the record has a text of the user or the model; a response may have several records. */
function listTextMessages({ record }: ContextEntry): readonly string[] {
  if ((record.type !== 'user' && record.type !== 'assistant') || record.isMeta === true) return []
  if (joinTextBlocks(record.message.content).trim() === '') return []
  return [record.type === 'assistant' ? record.message.id : record.uuid]
}

/** Creates a function that estimates the tokens of an entry, corrected by the usage that the provider reported. */
function createEntryCounter({ state, host }: TurnContext): (entry: ContextEntry) => number {
  const { calibration } = withPlanningState(state, host).context.meter
  return (entry) =>
    isVisibleToModel(entry)
      ? calibrateSize(calibration, host.compaction.estimator.entry(entry), host.policy.estimate).expected
      : 0
}

/** Adds a sentence about kept thinking, for models that accept thinking only after unchanged messages. */
function withThinkingNote(plan: CompactionPlan, { host }: TurnContext): CompactionPlan {
  const context = { span: plan.span, outdated: [], isBlock: false, added: [] }
  const lost = listResponsesLosingThinking(context, host.profile).length
  if (lost === 0) return plan
  const note = `The thinking of ${lost === 1 ? 'one kept response is' : `${lost} kept responses is`} no longer sent, because this model accepts it only after unchanged messages. The log keeps it, and an undo restores it.`
  return { ...plan, notes: [...plan.notes, note] }
}

/** Returns the limits of the notes for the model's context window, in tokens, and the counter by which they are meant. */
export function createNotesLimits({ state, host }: Pick<TurnContext, 'state' | 'host'>): NotesLimits {
  const { section, decisions, total } = host.compaction.scaled.budgets.notes
  return { section, decisions, total, countTokens: createCalibratedTokenCounter(state, host) }
}
