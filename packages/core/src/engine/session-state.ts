/** What is known of an open session: the fold of its log, and what was learnt while it was open. Values. */

import type { Announcement, ProviderZone } from '../cache/cache-break.ts'
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
import type { Profile } from '../policy/provider-profile.ts'
import { advanceTold, nothingTold, type Told } from '../request/announced-prefix.ts'
import type { AssembledRequest } from '../request/build-request.ts'
import { type HeldEdge, NO_EDGE } from '../request/cache-markers.ts'
import type { Front } from '../request/prefix.ts'
import type { ChangeCause } from '../request/prefix-updates.ts'
import type { MediaTally } from '../request/request-size.ts'
import type { SectionTexts } from '../request/system-prompt.ts'
import { NOTHING_SHOWN, type Shown } from '../sources/context-source.ts'
import type { Span } from '../summary/select-span.ts'
import { advanceMeter, emptyMeter, type Meter } from '../tokens/context-meter.ts'
import type { Estimator } from '../tokens/estimator.ts'
import { countOf } from '../tokens/usage.ts'
import type { Checked } from '../validate/validate.ts'
import type { Journal } from './ports.ts'

export interface SessionState {
  readonly id: string
  /** Where the log stands: what the next append comes after. */
  readonly position: number
  readonly damage: readonly Damage[]
  readonly session: Session
  readonly view: View
  readonly flat: Flat
  readonly told: Told
  /** Index of the newest record that a model said, or ROOT. */
  readonly answered: number
  /** Texts of the sections computed since the session was opened. */
  readonly texts: SectionTexts
  /** The compaction that stood when they were: another one makes them stale. */
  readonly textsSince: string | null
  /** The request that went out last since then: what a fork shares the prefix of. */
  readonly sent: AssembledRequest | null
  readonly edge: HeldEdge
  /** Null until the first request, which reads it off the log. */
  readonly lineage: Lineage | null
  readonly checked: Checked | null
  /** How large requests are; null until the first. */
  readonly size: KnownSize | null
  /** What is expected of the cache, source by source, since the session was opened. */
  readonly watch: CacheWatch
  /** The request that was watched last, of which the next takes over what still holds. */
  readonly watched: WatchedRequest | null
  /** What the log tells of money; null until somebody with prices asks (`withMoney`, or the first call). */
  readonly money: SessionMoney | null
  /** Records that every rewrite keeps verbatim. */
  readonly pins: PinnedUuids
  /** What is known for making room; null until it is asked for. */
  readonly room: RoomState | null
  /** What the next request asks of the provider to clear by itself; null where nothing. */
  readonly native: NativeEdits | null
  /** What attachments the view shows, as far as it was looked at. */
  readonly shown: Shown
}

/** The session as its log tells it; one that does not exist yet is empty. Takes no lock. */
export function openSession(journal: Journal, id: string): Promise<SessionState> {
  return catchUp(journal, unread(id))
}

/** The session with what others have appended since: what to do after a conflict. */
export async function catchUp(journal: Journal, state: SessionState): Promise<SessionState> {
  let { session } = state
  const visit = (records: readonly SessionRecord[]): void => {
    for (const record of records) session = reduce(session, record)
  }
  const { position, damage } = await journal.read(state.id, visit, state.position)
  return { ...folded(state, session), position, damage }
}

/** The session once `records` have come, up to `position`. */
export function withRecords(
  state: SessionState,
  records: readonly SessionRecord[],
  position: number,
): SessionState {
  return {
    ...folded(
      state,
      records.reduce((session, record) => reduce(session, record), state.session),
    ),
    position,
  }
}

function folded(state: SessionState, session: Session): SessionState {
  const view = advance(state.view, session)
  const flat = flatten(view, state.flat)
  const told = advanceTold(state.told, session, view)
  const [answered, watch] = [newestAnswer(session, state), watchActs(state, session)]
  const pins = withPins(state.pins, session.records.toArray(state.session.records.length))
  return { ...state, session, view, flat, told, answered, watch, pins }
}

function watchActs(state: SessionState, { records }: Session): CacheWatch {
  const news = state.watch.sources.size === 0 ? [] : records.toArray(state.session.records.length)
  return news.reduce((watch, record) => watchAct(watch, record, state.view), state.watch)
}

function newestAnswer({ records }: Session, { session, answered }: SessionState): number {
  for (let index = records.length - 1; index >= session.records.length; index -= 1) {
    const record = records.at(index)
    if (record !== undefined && isAnswer(record)) return index
  }
  return answered
}

/** A provider's own summary stands in the log as if the model had said it, under an id that no provider knows. */
function isAnswer(record: SessionRecord): boolean {
  if (!isKnown(record) || record.type !== 'assistant') return false
  return record.isSidechain !== true && record.isCompactSummary !== true && !isSyntheticError(record)
}

function unread(id: string): SessionState {
  const [session, view] = [emptySession(), emptyView()]
  return {
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
  }
}

// What is known of the size of requests, to go on from.

export interface KnownSize {
  readonly tally: MediaTally
  readonly front: Front | null
  readonly around: number
}

// What is known of a session that makes room: its results, how full it is, and how earlier attempts went. Values.

export interface RoomState {
  readonly register: Register
  readonly meter: Meter
  readonly breaker: Breaker
  readonly tracking: Tracking
  /** How its calls came so far. */
  readonly tally: CallTally
  /** What the last compaction of this session left; null before the first. */
  readonly outlook: CompactionOutlook | null
}

const FIRST_TURN = 'start'

/** What it is kept by: another object means that all is taken in anew. */
interface RoomRules {
  readonly rules: RegisterRules
  readonly estimator: Estimator
}

/** The room of `view`, given that of an earlier state of it under the same rules. */
export function advanceRoom(state: RoomState | null, view: View, room: RoomRules): RoomState {
  const before = state ?? startRoom(room)
  const register = before.register.rules === room.rules ? before.register : emptyRegister(room.rules)
  const meter = before.meter.estimator === room.estimator ? before.meter : emptyMeter(room.estimator)
  return { ...before, register: advanceRegister(register, view), meter: advanceMeter(meter, view) }
}

function startRoom({ rules, estimator }: RoomRules): RoomState {
  return {
    register: emptyRegister(rules),
    meter: emptyMeter(estimator),
    breaker: CLOSED,
    tracking: startTracking(FIRST_TURN),
    tally: NO_TALLY,
    outlook: null,
  }
}

// Which turn it is since the last compaction, and how closely one follows another: a chain means that too much comes back.

interface Tracking {
  /** Turns since the last compaction, or since the session was opened. */
  readonly turns: number
  readonly turnId: string
  /** The turn in which the last compaction was made; null where none was. */
  readonly compactedIn: string | null
}

export function startTracking(turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: null }
}

/** A call to the model was answered. */
export function nextTurn(tracking: Tracking, turnId: string): Tracking {
  return { ...tracking, turns: tracking.turns + 1, turnId }
}

/** A compaction was made in the present turn: counting begins anew. */
export function compactedNow(tracking: Tracking, turnId: string): Tracking {
  return { turns: 0, turnId, compactedIn: tracking.turnId }
}

/** How a compaction that would be made now stands to the one before it. */
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

// How the calls of a session came so far, one after the other or with the cache gone in between: read off its log.

interface CallTally {
  /** The lifetime that gaps were held against. */
  readonly ttlMs: number
  /** What has been taken in. */
  readonly records: Session['records'] | null
  readonly runs: CallRuns
  readonly response: string | null
  /** When the newest response came; null before the first. */
  readonly at: number | null
}

export const NO_TALLY: CallTally = { ttlMs: 0, records: null, runs: NO_RUNS, response: null, at: null }

/** Costs what has come since; another lifetime means that all is counted anew. */
export function advanceTally(tally: CallTally, { records }: Session, ttlMs: number): CallTally {
  const follows = tally.records !== null && tally.ttlMs === ttlMs && records.extends(tally.records)
  let next = follows ? tally : { ...NO_TALLY, ttlMs }
  for (let index = next.records?.length ?? 0; index < records.length; index += 1) {
    const record = records.at(index)
    if (record !== undefined) next = taken(next, record)
  }
  return { ...next, records }
}

function taken(tally: CallTally, record: SessionRecord): CallTally {
  if (!isKnown(record) || record.type !== 'assistant' || record.isSidechain === true) return tally
  const { id, model } = record.message
  const at = Date.parse(record.timestamp)
  if (id === tally.response || model === SYNTHETIC_MODEL || Number.isNaN(at)) return tally
  const gap = tally.at === null ? null : at - tally.at
  return { ...tally, runs: tallyCall(tally.runs, gap, tally.ttlMs), response: id, at }
}

// Tells the watch over the cache what the engine itself does to the next request. Acts are read off the log as
// their records come, whoever wrote them: a compaction by another process is as well announced as one of ours.

/** `view`: as it was before `record`. All sources that are watched here read the same conversation. */
export function watchAct(watch: CacheWatch, record: SessionRecord, view: View): CacheWatch {
  const announcement = watch.sources.size === 0 ? null : announcementOf(record, view)
  if (announcement === null) return watch
  return [...watch.sources.keys()].reduce((next, source) => announceAct(next, source, announcement), watch)
}

function announcementOf(record: SessionRecord, view: View): Announcement | null {
  if (!isKnown(record) || record.type !== 'system' || record.isSidechain === true) return null
  if (isCompactBoundary(record)) return { kind: 'compaction' }
  if (isMicrocompactBoundary(record)) return clearingOf(record.microcompactMetadata, view)
  return record.subtype === 'compact_undone' || record.subtype === 'clear_undone' ? { kind: 'undo' } : null
}

function clearingOf(metadata: MicrocompactMetadata, view: View): Announcement {
  const { way, tokensSaved } = metadata
  const price = { act: clearingText(metadata), freedTokens: countOf(tokensSaved) }
  return way === 'cached'
    ? { kind: 'cache-edits', deletedBefore: deletedSoFar(view), ...price }
    : { kind: 'clearing', ...price }
}

function clearingText({ compactedToolIds, clearedMedia }: MicrocompactMetadata): string {
  const sizeOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0)
  const [results, media] = [sizeOf(compactedToolIds), sizeOf(clearedMedia)]
  const said = [
    ...(results > 0 || media === 0 ? [`cleared ${results} ${results === 1 ? 'result' : 'results'}`] : []),
    ...(media > 0 ? [`left out ${media} ${media === 1 ? 'image' : 'images'}`] : []),
  ]
  return said.join(', ')
}

/** The provider's running total, from the newest response that tells it. */
function deletedSoFar({ entries }: View): number {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const record = entries.at(index)?.record
    const deleted =
      record?.type === 'assistant' ? record.message.usage?.cache_deleted_input_tokens : undefined
    if (typeof deleted === 'number') return deleted
  }
  return 0
}

/**
 * A new epoch in the place of one that was in use. It takes in all that had waited, so whatever changed about the
 * prefix changed by it, in whichever zone.
 */
export function announceEpoch(watch: CacheWatch, source: string, causes: readonly ChangeCause[]): CacheWatch {
  const act = causes.map(causeText).join(', ')
  return ZONES.reduce((next, zone) => announceAct(next, source, { kind: 'rewrite', zone, act }), watch)
}

const ZONES: readonly ProviderZone[] = ['model', 'tools', 'system', 'other']

function causeText(cause: ChangeCause): string {
  switch (cause.kind) {
    case 'model':
      return `changed the model from ${cause.from} to ${cause.to}`
    case 'sections':
      return `rewrote ${counted('section', cause.names)}`
    case 'tools':
      return `defined ${counted('tool', cause.names)}`
    case 'parameters':
      return `changed ${counted('parameter', cause.names)}`
  }
}

const MOST_NAMES = 3

function counted(noun: string, names: readonly string[]): string {
  const more = names.length - MOST_NAMES
  const listed = names.slice(0, MOST_NAMES).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return `${noun}${names.length === 1 ? '' : 's'} ${listed}`
}

// Records that must survive every rewrite verbatim: the newest word on each counts.

/** uuids, in the order in which they were pinned. */
export type PinnedUuids = ReadonlySet<string>

export const NONE_PINNED: PinnedUuids = new Set()

export function withPins(pins: PinnedUuids, records: readonly SessionRecord[]): PinnedUuids {
  const words = records.filter(isPinRecord)
  if (words.length === 0) return pins
  const next = new Set(pins)
  for (const { pin } of words) {
    next.delete(pin.target)
    if (pin.pinned) next.add(pin.target)
  }
  return next
}

interface PinsSeen {
  readonly pins: PinnedUuids
  readonly span: Pick<Span, 'summarised'>
}

/** Records that were pinned after `seen` was planned, which takes them out of the view. */
export function pinnedMeanwhile({ pins: seen, span }: PinsSeen, pins: PinnedUuids): readonly string[] {
  const fresh = new Set([...pins].filter((uuid) => !seen.has(uuid)))
  if (fresh.size === 0) return []
  return span.summarised.map(({ record }) => record.uuid).filter((uuid) => fresh.has(uuid))
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

// Stops compacting by itself when it does not help. Failures in a row open it; a compaction that succeeds, by itself
// or by hand, closes it. New words of the person's after the last attempt are something new to try on: they are worth
// one more attempt.

export interface Breaker {
  readonly failures: number
  /** Why the last one failed; null where none has. */
  readonly lastReason: string | null
  /** Index of the newest record when it did. */
  readonly at: number
}

export const CLOSED: Breaker = { failures: 0, lastReason: null, at: -1 }

export function isOpen({ failures }: Breaker, { breakerFailures }: AutoPolicy): boolean {
  return failures >= breakerFailures
}

/** What became of an attempt. Aborts, vetoes and "nothing to compact" say nothing about whether it helps. */
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

// Thinking that a rewrite makes invalid: where it is bound to every byte before it, whatever stands behind the first
// change loses it whole. The log keeps it, so that undoing the rewrite brings it back.

export interface Keeping {
  readonly span: Span
  /** uuids of kept attachments that are left out after all. */
  readonly superseded: readonly string[]
  /** The provider wrote the summary itself: what directly follows its block stays valid. */
  readonly isBlock: boolean
  /** What has come while the summary was made. */
  readonly late: readonly Entry[]
}

/** Responses (`message.id`) that a compaction keeps without their thinking, in order. */
export function thinkingLost(
  { span, superseded, isBlock, late }: Keeping,
  profile: Profile,
): readonly string[] {
  if (profile.thinking.binding !== 'prefix') return []
  const isIntact = isBlock || span.form === 'from'
  const intact = isIntact ? untilChanged(span.kept, new Set(superseded)) : 0
  return thinkersIn([...span.kept.slice(intact), ...span.pinned, ...late])
}

/** How many of the first entries have nothing changed in front of them. */
function untilChanged(kept: readonly Entry[], gone: ReadonlySet<string>): number {
  const first = kept.findIndex(({ record }) => gone.has(record.uuid))
  return first === -1 ? kept.length : first
}

/** Responses that show thinking among `entries`. */
export function thinkersIn(entries: readonly Entry[]): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    return record.type === 'assistant' && partsOf(entry).some(({ block }) => isThinking(block))
      ? [record.message.id]
      : []
  })
  return [...new Set(ids)]
}
