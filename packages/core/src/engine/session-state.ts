/**
 * State of an open session, as immutable values: its log, and what the engine learned since it was opened (pins, failed
 * compactions, how the last answer ended). Updates process only the records that were added.
 */

import type { RewriteAnnouncement } from '../cache/cache-break-types.ts'
import { type CacheLapseTally, type CacheModel, EMPTY_CACHE_LAPSE_TALLY } from '../cache/cache-model.ts'
import { type CacheMonitor, createCacheMonitor, withAnnouncedRewrite } from '../cache/cache-monitor.ts'
import type { SentRequestWithPrefix } from '../cache/sent-request.ts'
import { findReportedDeletedTokens } from '../clearing/cached-clearing.ts'
import type { ProviderEditPlan } from '../clearing/provider-clearing.ts'
import {
  createEmptyToolResultIndex,
  type ToolResultIndex,
  type ToolResultRules,
} from '../clearing/tool-result-index.ts'
import { updateToolResultIndex } from '../clearing/update-tool-result-index.ts'
import {
  buildContextView,
  type ContextView,
  emptyContextView,
  updateContextView,
} from '../context/context-view.ts'
import { type FlattenedContext, flattenContext, listUnansweredCalls } from '../context/flatten-context.ts'
import type { SessionCostTally } from '../cost/session-cost.ts'
import type { Damage } from '../log/decode-log.ts'
import {
  isBranchSwitch,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  isSyntheticError,
  isUndoRecord,
  type MicrocompactMetadata,
  type SessionRecord,
  type SystemRecord,
} from '../log/record.ts'
import {
  appendRecord,
  buildSessionLog,
  emptySessionLog,
  NO_PARENT,
  requireRecordAt,
  type SessionLog,
} from '../log/session-log.ts'
import type { CompactionResultSizes } from '../planner/plan-input.ts'
import type { AutoCompactPolicy } from '../policy/turn-policy.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { type FirstClearableState, NO_FIRST_CLEARABLE } from '../request/cache-markers.ts'
import { emptyKnownPrefix, type KnownPrefix, updateKnownPrefix } from '../request/prefix-snapshot.ts'
import type { RequestSizeState } from '../request/request-size.ts'
import type { SectionTexts } from '../request/system-prompt.ts'
import { NO_SHOWN_ATTACHMENTS, type ShownAttachmentIndex } from '../sources/context-source.ts'
import {
  type ContextMeter,
  replaceEstimator,
  restoreCalibratedMeter,
  updateContextMeter,
} from '../tokens/context-meter.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { toTokenCount } from '../tokens/usage.ts'
import type { ValidationState } from '../validate/validate-request.ts'
import type { Journal } from './ports.ts'

export interface SessionState {
  readonly id: string
  /** Position of the log (`seq` of its last record), after which the next record is appended. */
  readonly position: number
  readonly damage: readonly Damage[]
  readonly session: SessionLog
  /** The context as entries; `flat`: as messages of a request. */
  readonly view: ContextView
  readonly flat: FlattenedContext
  /** System prompt and tools that the model knows: the prefix snapshot and the updates appended since. */
  readonly prefix: KnownPrefix
  /** Log index of the newest record of a model response; -1 if there is none. */
  readonly lastResponseIndex: number
  /** Texts of the system prompt's sections, computed since the session was opened. */
  readonly sectionTexts: SectionTexts
  /** uuid of the newest compaction when `sectionTexts` was computed. After a later compaction the texts are stale. */
  readonly sectionTextsSince: string | null
  /** The last request sent since the session was opened; null if none was sent. Forks read its cached prefix. */
  readonly lastRequest: AssembledRequest | null
  /**
   * Flattened context and prefix at the time of `lastRequest`. If its response is placed before messages appended
   * meanwhile, or is dropped again, the computation continues from here.
   */
  readonly whenRequested: Pick<SessionState, 'flat' | 'prefix'> | null
  /** The first tool calls that a clearing would change, in front of which requests have a cache marker. */
  readonly clearingEdge: FirstClearableState
  /** Expected content of the provider's cache; null until the first request, when it is rebuilt from the log. */
  readonly cacheModel: CacheModel | null
  /** The messages validated so far, so that only new ones are checked; null until the first request. */
  readonly checkedMessages: ValidationState | null
  /** Names of the tools that the frozen messages (which no later record can change) call; null until a request needs them. */
  readonly calledTools: CalledTools | null
  /** Bytes and images of the request that was last measured; null before the first. */
  readonly requestSize: RequestSizeState | null
  /** Expected cache read of each caller (query source), used to detect cache breaks. */
  readonly cacheMonitor: CacheMonitor
  /** The last request passed to the cache monitor, so that its unchanged parts are not processed again. */
  readonly monitoredRequest: SentRequestWithPrefix | null
  /** Costs found in the log; null until the first model call or the first call of `withSessionCosts`. */
  readonly costs: SessionCostTally | null
  /** uuids of the pinned records. Clearings never change them; a compaction keeps the newest, up to `compact.pinTokens`. */
  readonly pins: PinnedUuids
  /** Data for planning a clearing or a compaction; null until it is first needed. */
  readonly context: PlanningState | null
  /** The clearing that the next request asks the provider to do; null if there is none. */
  readonly providerEdits: ProviderEditPlan | null
  /**
   * Set when a compaction could not use the notes: the newest rewrite and what the notes covered then. Until one of them
   * changes, the next compaction cannot use them either.
   */
  readonly refusedNotes?: { readonly rewrite: string | null; readonly coveredUuid: string | null }
  /**
   * Under a client: the context size from which a free compaction is tried again, after one was refused because it would have
   * cost money. Null before such a refusal, and after a rewrite, a move to another branch or a switch of model.
   */
  readonly freeCompactionFrom: number | null
  /** Index of the attachments in the context entries that were read so far. */
  readonly shownAttachments: ShownAttachmentIndex
}

/** Reads a session from its log, without locking it. A session that does not exist yet is empty. */
export function readSessionState(journal: Journal, id: string): Promise<SessionState> {
  const [session, view] = [emptySessionLog(), emptyContextView()]
  return refreshSessionState(journal, {
    id,
    position: 0,
    damage: [],
    session,
    view,
    flat: flattenContext(view),
    prefix: emptyKnownPrefix(),
    lastResponseIndex: NO_PARENT,
    sectionTexts: new Map(),
    sectionTextsSince: null,
    lastRequest: null,
    whenRequested: null,
    clearingEdge: NO_FIRST_CLEARABLE,
    cacheModel: null,
    checkedMessages: null,
    calledTools: null,
    requestSize: null,
    cacheMonitor: createCacheMonitor(),
    monitoredRequest: null,
    costs: null,
    pins: NO_PINS,
    context: null,
    providerEdits: null,
    freeCompactionFrom: null,
    shownAttachments: NO_SHOWN_ATTACHMENTS,
  })
}

/** Returns the session with the records appended to the log since it was last read, such as those of other writers. */
export async function refreshSessionState(journal: Journal, state: SessionState): Promise<SessionState> {
  let { session } = state
  const visit = (records: readonly SessionRecord[]): void => {
    for (const record of records) session = appendRecord(session, record)
  }
  const { position, damage } = await journal.read(state.id, visit, state.position)
  return { ...applySession(state, session), position, damage }
}

/** Returns the session with `records` added. `position`: the log position after these records. */
export function applyRecords(
  state: SessionState,
  records: readonly SessionRecord[],
  position: number,
): SessionState {
  const session = records.reduce((before, record) => appendRecord(before, record), state.session)
  return { ...applySession(state, session), position }
}

/** Returns context and pins as they were when the log had only its first `position` records. Reads these records again. */
export function restoreContextAt(state: SessionState, position: number): SessionState {
  const records = state.session.records.toArray(0, position)
  const session = buildSessionLog(records)
  return {
    ...state,
    session,
    view: buildContextView(session),
    pins: applyPinRecords(NO_PINS, records),
    context: null,
  }
}

/** Updates the state to `session`, which extends `state.session`. Only the added records are processed. */
function applySession(state: SessionState, session: SessionLog): SessionState {
  const view = updateContextView(state.view, session)
  const first = state.session.records.length
  const added = session.records.toArray(first)
  const earlier = view.entries.extends(state.view.entries) ? state : (state.whenRequested ?? state)
  const flat = flattenContext(view, earlier.flat)
  const prefix = updateKnownPrefix(earlier.prefix, session, view)
  const newest = added.findLastIndex(isResponse)
  return {
    ...state,
    session,
    view,
    flat,
    prefix,
    lastResponseIndex: newest === -1 ? state.lastResponseIndex : first + newest,
    cacheMonitor: added.reduce(
      (watch, record) => announceRewriteToMonitor(watch, record, state.view),
      state.cacheMonitor,
    ),
    pins: applyPinRecords(state.pins, added),
    freeCompactionFrom: view.rewrites === state.view.rewrites ? state.freeCompactionFrom : null,
  }
}

/** Returns true for a response that the provider sent with an id; false for compaction blocks and subagents. */
function isResponse(record: SessionRecord): boolean {
  if (!isKnownRecord(record) || record.type !== 'assistant') return false
  return record.isSidechain !== true && record.isCompactSummary !== true && !isSyntheticError(record)
}

/** Names of the tools that messages call, in the order of their first calls. */
interface CalledTools {
  readonly frozen: FlattenedContext['frozen']
  readonly names: ReadonlySet<string>
}

/** Data for planning a clearing or a compaction: tool results, context size, earlier attempts. Updated incrementally. */
export interface PlanningState {
  readonly register: ToolResultIndex
  readonly meter: ContextMeter
  readonly breaker: CompactionBreaker
  readonly tracking: TurnsSinceCompaction
  /** Number of model calls, and of pauses between them that outlasted the cache. */
  readonly tally: CacheLapseTally
  /** Token sizes after the last compaction, used to predict the next one; null before the first. */
  readonly expectedResult: CompactionResultSizes | null
}

/**
 * Updates the planning data to `view`. Counts everything again if the estimator or the index rules changed; what was
 * learned about the size of content stays.
 */
export function updatePlanningState(
  state: PlanningState | null,
  view: ContextView,
  { rules, estimator }: { readonly rules: ToolResultRules; readonly estimator: Estimator },
): PlanningState {
  const isSameIndex = state?.register.rules === rules
  const meter = state?.meter ?? restoreCalibratedMeter(estimator, view.rewrites)
  return {
    breaker: state?.breaker ?? NO_COMPACTION_FAILURES,
    tracking: state?.tracking ?? NO_COMPACTION_YET,
    tally: state?.tally ?? EMPTY_CACHE_LAPSE_TALLY,
    expectedResult: state?.expectedResult ?? null,
    register: updateToolResultIndex(isSameIndex ? state.register : createEmptyToolResultIndex(rules), view),
    meter:
      meter.estimator === estimator
        ? updateContextMeter(meter, view)
        : replaceEstimator(meter, estimator, view),
  }
}

/**
 * Number of turns since the last compaction, used to detect compactions in quick succession. Each model response counts as one.
 */
interface TurnsSinceCompaction {
  /** Turns since the last compaction, or since the session was opened. */
  readonly turns: number
  readonly turnId: string
  /** Id of the turn in which the last compaction ran; null if there was none. */
  readonly compactedIn: string | null
}

const NO_COMPACTION_YET: TurnsSinceCompaction = { turns: 0, turnId: 'start', compactedIn: null }

/** Starts counting turns again. Call it after a compaction. */
export function resetCompactionTracking(
  tracking: TurnsSinceCompaction,
  turnId: string,
): TurnsSinceCompaction {
  return { turns: 0, turnId, compactedIn: tracking.turnId }
}

/** How many turns lie between a compaction and the previous one. */
export interface CompactionSpacing {
  /** True if no more turns lie between them than policy has as `closeTurns`. */
  readonly isClose: boolean
  readonly turnsBetween: number
  /** Id of the turn in which the previous compaction ran; null if there was none. */
  readonly previousTurn: string | null
}

/** Returns how many turns lie between the last compaction and this one, and whether they are too few by policy. */
export function measureCompactionSpacing(
  { turns, compactedIn }: TurnsSinceCompaction,
  { closeTurns }: AutoCompactPolicy,
): CompactionSpacing {
  const isClose = compactedIn !== null && turns <= closeTurns
  return { isClose, turnsBetween: turns, previousTurn: compactedIn }
}

/**
 * Tells the cache monitor about a compaction, clearing or undo in the log, so that the cache loss it causes is not
 * reported as a cache break. Rewrites by other processes are in the log too. `view`: the context before `record`.
 */
export function announceRewriteToMonitor(
  watch: CacheMonitor,
  record: SessionRecord,
  view: ContextView,
): CacheMonitor {
  const announcement = watch.sources.size === 0 ? null : toAnnouncement(record, view)
  if (announcement === null) return watch
  return [...watch.sources.keys()].reduce(
    (next, source) => withAnnouncedRewrite(next, source, announcement),
    watch,
  )
}

function toAnnouncement(record: SessionRecord, view: ContextView): RewriteAnnouncement | null {
  if (!isKnownRecord(record) || record.type !== 'system' || record.isSidechain === true) return null
  if (isCompactBoundary(record)) return { kind: 'compaction' }
  if (isMicrocompactBoundary(record)) {
    const { way, tokensSaved } = record.microcompactMetadata
    // The cost of a clearing by the provider was already counted with the response that reported it.
    if (way === 'native') return null
    const act = describeClearing(record.microcompactMetadata)
    const cost = { act, freedTokens: toTokenCount(tokensSaved) }
    return way === 'cached'
      ? { kind: 'cache-edits', deletedBefore: findReportedDeletedTokens(view), ...cost }
      : { kind: 'clearing', ...cost }
  }
  return isUndoRecord(record) || isBranchSwitch(record) ? { kind: 'undo' } : null
}

function describeClearing({ compactedToolIds, clearedMedia }: MicrocompactMetadata): string {
  const count = (list: unknown): number => (Array.isArray(list) ? list.length : 0)
  const [results, media] = [count(compactedToolIds), count(clearedMedia)]
  const parts = [
    ...(results > 0 || media === 0 ? [`cleared ${results} ${results === 1 ? 'result' : 'results'}`] : []),
    ...(media > 0 ? [`left out ${media} ${media === 1 ? 'image' : 'images'}`] : []),
  ]
  return parts.join(', ')
}

/** uuids of the pinned records, oldest pin first. */
export type PinnedUuids = ReadonlySet<string>

export const NO_PINS: PinnedUuids = new Set()

/**
 * Applies pin and unpin records. Of several about one record, the newest counts, on whichever branch it was appended.
 * Returns `pins` itself if `records` has none.
 */
export function applyPinRecords(pins: PinnedUuids, records: readonly SessionRecord[]): PinnedUuids {
  const changes = records.filter(isPinRecord)
  if (changes.length === 0) return pins
  const next = new Set(pins)
  for (const { pin } of changes) {
    next.delete(pin.target)
    if (pin.pinned) next.add(pin.target)
  }
  return next
}

function isPinRecord(record: SessionRecord): record is SystemRecord & Required<Pick<SystemRecord, 'pin'>> {
  const { pin, subtype } = record as SystemRecord
  return (
    record.type === 'system' &&
    subtype === 'pin' &&
    typeof pin?.target === 'string' &&
    record.isSidechain !== true
  )
}

/**
 * Count of failed compactions in a row. After several, automatic compaction stops. A success resets the count. A new prompt
 * after the last failure allows one more attempt.
 */
interface CompactionBreaker {
  readonly failures: number
  /** Reason of the last failure; null if there was none. */
  readonly lastReason: string | null
  /** Log index of the newest record when the last compaction failed. */
  readonly at: number
}

export const NO_COMPACTION_FAILURES: CompactionBreaker = { failures: 0, lastReason: null, at: -1 }

/** Returns true if so many compactions failed in a row that automatic ones stop. */
export function isCompactionBreakerOpen(
  { failures }: CompactionBreaker,
  { breakerFailures }: AutoCompactPolicy,
): boolean {
  return failures >= breakerFailures
}

interface LastAnswer {
  /** True if the model ended the answer by itself. */
  readonly isFinished: boolean
  /** True if the answer was cut off. False as well for a paused turn, which continues if it is sent back unchanged. */
  readonly isCut: boolean
  readonly isInterrupted: boolean
}

const FINISHED_STOPS: ReadonlySet<unknown> = new Set(['done', 'sequence', 'refused'])
const CUT_STOPS: ReadonlySet<unknown> = new Set(['cut', 'window', null])

/**
 * Returns how the answer at the end of the conversation ended; null if the last message is not an answer, or if tool calls still
 * wait for results. If a compaction has summarized the answer, it counts only if it was finished: a summarized answer can no longer
 * be continued.
 */
export function findLastAnswerEnd(state: SessionState): LastAnswer | null {
  const { flat, view } = state
  if (listUnansweredCalls(flat).length > 0) return null
  if (isAnsweredBeforeCompaction(state)) return { isFinished: true, isCut: false, isInterrupted: false }
  const last = flat.tail.at(-1) ?? flat.frozen.last
  if (last?.message.role !== 'assistant') return null
  const uuid = last.origins.at(-1)
  const record = view.entries.findLast((entry) => entry.record.uuid === uuid)?.record
  if (record?.isCompactSummary === true) return null
  const answer = record?.type === 'assistant' ? record : null
  const stop = answer?.stop ?? null
  const isInterrupted = answer?.isInterrupted === true
  return { isFinished: FINISHED_STOPS.has(stop), isCut: CUT_STOPS.has(stop), isInterrupted }
}

/** True if the newest rewrite is a compaction, nothing follows it, and the last message before it is a finished answer. */
function isAnsweredBeforeCompaction({ session, view }: SessionState): boolean {
  const newest = view.rewrites.at(-1)
  if (newest?.kind !== 'compact') return false
  for (let position = view.branch.length - 1; position >= 0; position -= 1) {
    const record = requireRecordAt(session, view.branch.at(position) ?? 0)
    if (!isKnownRecord(record) || record.type === 'system') continue
    if (position > newest.position && record.batch?.id === newest.batchId) continue
    if (position > newest.position || record.type === 'user') return false
    if (record.type === 'assistant') return FINISHED_STOPS.has(record.stop)
  }
  return false
}
