/** The state of an open session, as immutable values: the fold of its log, and what was learnt while it was open. */

import type { Announcement } from '../cache/cache-break.ts'
import type { Lineage } from '../cache/cache-model.ts'
import { announceAct, type CacheWatch, emptyCacheWatch } from '../cache/cache-monitor.ts'
import { type CallRuns, NO_RUNS, tallyCall } from '../cache/cache-temperature.ts'
import type { WatchedRequest } from '../cache/sent-request.ts'
import type { NativeEdits } from '../clearing/provider-clearing.ts'
import { emptyRegister, type Register, type RegisterRules } from '../clearing/tool-result-index.ts'
import { advanceRegister } from '../clearing/update-index.ts'
import { advance, emptyView, type View } from '../context/context-view.ts'
import type { Entry } from '../context/entry.ts'
import { partsOf } from '../context/entry.ts'
import { type Flat, flatten } from '../context/flatten.ts'
import type { SessionMoney } from '../cost/session-cost.ts'
import type { Damage } from '../log/batch.ts'
import { isThinking } from '../log/block.ts'
import {
  isCompactBoundary,
  isKnown,
  isMicrocompactBoundary,
  isSyntheticError,
  type MicrocompactMetadata,
  type SessionRecord,
  SYNTHETIC_MODEL,
  type SystemRecord,
} from '../log/record.ts'
import { emptySession, ROOT, reduce, type Session } from '../log/session.ts'
import type { CompactionOutlook } from '../planner/plan-input.ts'
import type { AutoPolicy } from '../policy/policy.ts'
import { advanceTold, nothingTold, type Told } from '../request/announced-prefix.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { type HeldEdge, NO_EDGE } from '../request/cache-markers.ts'
import type { Front } from '../request/prefix.ts'
import type { MediaTally } from '../request/request-size.ts'
import type { SectionTexts } from '../request/system-prompt.ts'
import { NOTHING_SHOWN, type Shown } from '../sources/context-source.ts'
import { advanceMeter, emptyMeter, type Meter } from '../tokens/context-meter.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { countOf } from '../tokens/usage.ts'
import type { Checked } from '../validate/validate.ts'
import type { Journal } from './ports.ts'

export interface SessionState {
  readonly id: string
  /** Position of the log: the next append goes after it. */
  readonly position: number
  readonly damage: readonly Damage[]
  readonly session: Session
  readonly view: View
  readonly flat: Flat
  /** System prompt and tools as the model knows them: the snapshot and the updates announced since. */
  readonly told: Told
  /** Index of the newest record of a model response, or ROOT. */
  readonly answered: number
  /** Texts of the system prompt's sections, rendered since the session was opened. */
  readonly texts: SectionTexts
  /** The compaction in force when they were rendered: after another one they are stale. */
  readonly textsSince: string | null
  /** The last request sent since the session was opened: a fork shares its prefix. */
  readonly sent: AssembledRequest | null
  readonly edge: HeldEdge
  /** The model of the provider's cache; null until the first request, which rebuilds it from the log. */
  readonly lineage: Lineage | null
  readonly checked: Checked | null
  /** Bytes and images of a request; null until the first. */
  readonly size: KnownSize | null
  /** What is expected of the cache, per query source, since the session was opened. */
  readonly watch: CacheWatch
  /** The last request given to the cache monitor; the next one reuses what did not change. */
  readonly watched: WatchedRequest | null
  /** Costs found in the log; null until a caller with prices asks (`withMoney`, or the first call). */
  readonly money: SessionMoney | null
  /** Records that every rewrite keeps verbatim. */
  readonly pins: PinnedUuids
  /** What plans are made from; null until the first plan or measurement. */
  readonly room: RoomState | null
  /** The clearing that the next request asks the provider to do; null if none. */
  readonly native: NativeEdits | null
  /** The attachments that the context shows, as far as it was scanned. */
  readonly shown: Shown
}

/** The session as its log has it; one that does not exist yet is empty. Takes no lock. */
export function openSession(journal: Journal, id: string): Promise<SessionState> {
  const [session, view] = [emptySession(), emptyView()]
  return catchUp(journal, {
    id,
    position: 0,
    damage: [],
    session,
    view,
    flat: flatten(view),
    told: nothingTold(),
    answered: ROOT,
    texts: new Map(),
    textsSince: null,
    sent: null,
    edge: NO_EDGE,
    lineage: null,
    checked: null,
    size: null,
    watch: emptyCacheWatch(),
    watched: null,
    money: null,
    pins: NONE_PINNED,
    room: null,
    native: null,
    shown: NOTHING_SHOWN,
  })
}

/** The session with everything in the log that it has not read yet: what other writers appended. */
export async function catchUp(journal: Journal, state: SessionState): Promise<SessionState> {
  let { session } = state
  const visit = (records: readonly SessionRecord[]): void => {
    for (const record of records) session = reduce(session, record)
  }
  const { position, damage } = await journal.read(state.id, visit, state.position)
  return { ...withSession(state, session), position, damage }
}

/** The session after `records` were appended, up to `position`. */
export function withRecords(
  state: SessionState,
  records: readonly SessionRecord[],
  position: number,
): SessionState {
  const session = records.reduce((before, record) => reduce(before, record), state.session)
  return { ...withSession(state, session), position }
}

/** `session` is `state.session` with more records; costs what was added. */
function withSession(state: SessionState, session: Session): SessionState {
  const view = advance(state.view, session)
  const flat = flatten(view, state.flat)
  const told = advanceTold(state.told, session, view)
  const first = state.session.records.length
  const added = session.records.toArray(first)
  const newest = added.findLastIndex(isResponse)
  return {
    ...state,
    session,
    view,
    flat,
    told,
    answered: newest === -1 ? state.answered : first + newest,
    watch: added.reduce((watch, record) => watchAct(watch, record, state.view), state.watch),
    pins: withPins(state.pins, added),
  }
}

/** Not the provider's own summary: the log holds it as a response, but under an id the provider does not know. */
function isResponse(record: SessionRecord): boolean {
  if (!isKnown(record) || record.type !== 'assistant') return false
  return record.isSidechain !== true && record.isCompactSummary !== true && !isSyntheticError(record)
}

/** The size of the last request, from which the next is counted. */
export interface KnownSize {
  readonly tally: MediaTally
  readonly front: Front | null
  /** Bytes of the request without its messages. */
  readonly around: number
}

/** What plans are made from: tool results, context size, earlier attempts. Kept incrementally. */
export interface RoomState {
  readonly register: Register
  readonly meter: Meter
  readonly breaker: Breaker
  readonly tracking: Tracking
  /** Calls so far, and the pauses in which the cache expired. */
  readonly tally: CallTally
  /** What the last compaction of this session left; null before the first. */
  readonly outlook: CompactionOutlook | null
}

const FIRST_TURN = 'start'

/** The state of `view`. Everything is counted again if the estimator or the index rules are other objects than before. */
export function advanceRoom(
  state: RoomState | null,
  view: View,
  { rules, estimator }: { readonly rules: RegisterRules; readonly estimator: Estimator },
): RoomState {
  const isSameIndex = state?.register.rules === rules
  const isSameMeter = state?.meter.estimator === estimator
  return {
    breaker: state?.breaker ?? CLOSED,
    tracking: state?.tracking ?? startTracking(FIRST_TURN),
    tally: state?.tally ?? NO_TALLY,
    outlook: state?.outlook ?? null,
    register: advanceRegister(isSameIndex ? state.register : emptyRegister(rules), view),
    meter: advanceMeter(isSameMeter ? state.meter : emptyMeter(estimator), view),
  }
}

/** Turns since the last compaction: compactions that follow each other closely leave too much in the context. */
interface Tracking {
  /** Turns since the last compaction, or since the session was opened. */
  readonly turns: number
  readonly turnId: string
  /** The turn of the last compaction; null if there was none. */
  readonly compactedIn: string | null
}

export function startTracking(turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: null }
}

/** After a response of the model. */
export function nextTurn(tracking: Tracking, turnId: string): Tracking {
  return { ...tracking, turns: tracking.turns + 1, turnId }
}

/** After a compaction in the present turn. */
export function compactedNow(tracking: Tracking, turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: tracking.turnId }
}

/** How closely a compaction follows the one before. */
export interface ChainLink {
  readonly isClose: boolean
  readonly turnsBetween: number
  readonly previousTurn: string | null
}

export function chainLink(tracking: Tracking, { closeTurns }: AutoPolicy): ChainLink {
  const { turns, compactedIn } = tracking
  const isClose = compactedIn !== null && turns <= closeTurns
  return { isClose, turnsBetween: turns, previousTurn: compactedIn }
}

/** The calls of a session, read from its log: how many in a row, and after how many pauses the cache had expired. */
interface CallTally {
  /** The cache lifetime that pauses are compared with. */
  readonly ttlMs: number
  /** The records counted so far. */
  readonly records: Session['records'] | null
  readonly runs: CallRuns
  readonly response: string | null
  /** Time of the newest response; null before the first. */
  readonly at: number | null
}

export const NO_TALLY: CallTally = { ttlMs: 0, records: null, runs: NO_RUNS, response: null, at: null }

/** Costs what was appended since; with another lifetime everything is counted again. */
export function advanceTally(tally: CallTally, { records }: Session, ttlMs: number): CallTally {
  const follows = tally.records !== null && tally.ttlMs === ttlMs && records.extends(tally.records)
  let next = follows ? tally : { ...NO_TALLY, ttlMs }
  for (const record of records.toArray(next.records?.length ?? 0)) next = withCall(next, record)
  return { ...next, records }
}

function withCall(tally: CallTally, record: SessionRecord): CallTally {
  if (!isKnown(record) || record.type !== 'assistant' || record.isSidechain === true) return tally
  const { id, model } = record.message
  const at = Date.parse(record.timestamp)
  if (id === tally.response || model === SYNTHETIC_MODEL || Number.isNaN(at)) return tally
  const gap = tally.at === null ? null : at - tally.at
  return { ...tally, runs: tallyCall(tally.runs, gap, tally.ttlMs), response: id, at }
}

/**
 * Announces a rewrite to the cache monitor, for every source, so that the cache loss it causes is not reported as a
 * break. Rewrites are read from the log, so one by another process is announced too. `view`: before `record`.
 */
export function watchAct(watch: CacheWatch, record: SessionRecord, view: View): CacheWatch {
  const announcement = watch.sources.size === 0 ? null : announcementFor(record, view)
  if (announcement === null) return watch
  return [...watch.sources.keys()].reduce((next, source) => announceAct(next, source, announcement), watch)
}

function announcementFor(record: SessionRecord, view: View): Announcement | null {
  if (!isKnown(record) || record.type !== 'system' || record.isSidechain === true) return null
  if (isCompactBoundary(record)) return { kind: 'compaction' }
  if (isMicrocompactBoundary(record)) {
    const { way, tokensSaved } = record.microcompactMetadata
    const cost = { act: describeClearing(record.microcompactMetadata), freedTokens: countOf(tokensSaved) }
    return way === 'cached'
      ? { kind: 'cache-edits', deletedBefore: countDeleted(view), ...cost }
      : { kind: 'clearing', ...cost }
  }
  return record.subtype === 'compact_undone' || record.subtype === 'clear_undone' ? { kind: 'undo' } : null
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

/** Tokens deleted in the provider's cache so far, from the newest response that reports them. */
function countDeleted({ entries }: View): number {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    const deleted =
      record?.type === 'assistant' ? record.message.usage?.cache_deleted_input_tokens : undefined
    if (typeof deleted === 'number') return deleted
  }
  return 0
}

/** uuids of pinned records, in the order of pinning. */
export type PinnedUuids = ReadonlySet<string>

export const NONE_PINNED: PinnedUuids = new Set()

/** The newest pin record for a target decides. The same object if `records` has none. */
export function withPins(pins: PinnedUuids, records: readonly SessionRecord[]): PinnedUuids {
  const changes = records.filter(isPinRecord)
  if (changes.length === 0) return pins
  const next = new Set(pins)
  for (const { pin } of changes) {
    next.delete(pin.target)
    if (pin.pinned) next.add(pin.target)
  }
  return next
}

type PinRecord = SystemRecord & { readonly pin: NonNullable<SystemRecord['pin']> }

function isPinRecord(record: SessionRecord): record is PinRecord {
  const { pin, subtype } = record as SystemRecord
  return (
    record.type === 'system' &&
    subtype === 'pin' &&
    typeof pin?.target === 'string' &&
    record.isSidechain !== true
  )
}

/**
 * Stops automatic compaction after failures in a row. A successful compaction, automatic or manual, closes it; a new
 * prompt after the last failure allows one more attempt.
 */
export interface Breaker {
  readonly failures: number
  /** Reason of the last failure; null if there was none. */
  readonly lastReason: string | null
  /** Index of the newest record at the last failure. */
  readonly at: number
}

export const CLOSED: Breaker = { failures: 0, lastReason: null, at: -1 }

export function isOpen({ failures }: Breaker, { breakerFailures }: AutoPolicy): boolean {
  return failures >= breakerFailures
}

/** Result of an attempt. Aborts, blocks by a hook and "nothing to compact" are not failures. */
export type AttemptEnd =
  | { readonly kind: 'committed' }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'aborted' | 'blocked' | 'nothing-to-do' }

/** `at`: index of the newest record of the session. */
export function afterAttempt(breaker: Breaker, end: AttemptEnd, at: number): Breaker {
  if (end.kind === 'committed') return CLOSED
  if (end.kind !== 'failed') return breaker
  return { failures: breaker.failures + 1, lastReason: end.reason, at }
}

/** Responses (`message.id`) whose thinking `entries` show, in order. */
export function thinkersIn(entries: readonly Entry[]): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    return record.type === 'assistant' && partsOf(entry).some(({ block }) => isThinking(block))
      ? [record.message.id]
      : []
  })
  return [...new Set(ids)]
}
