/** What is known of an open session: the fold of its log, and what was learnt while it was open. Values. */
import type { WatchedRequest } from '../breaks/sent-request.ts'
import { type CacheWatch, emptyCacheWatch } from '../breaks/watch.ts'
import { NOTHING_SHOWN, type Shown } from '../carry/shown.ts'
import type { NativeEdits } from '../clear/native.ts'
import type { Damage } from '../conversation/damage.ts'
import { isKnown, isSyntheticError, type SessionRecord } from '../conversation/record.ts'
import { emptySession, reduce, type Session } from '../conversation/session.ts'
import { ROOT } from '../conversation/tree.ts'
import type { SessionMoney } from '../measure/session-money.ts'
import type { AssembledRequest } from '../prompt/assemble.ts'
import { type HeldEdge, NO_EDGE } from '../prompt/edge.ts'
import type { Lineage } from '../prompt/lineage.ts'
import type { SectionTexts } from '../prompt/section.ts'
import { advanceTold, nothingTold, type Told } from '../prompt/told.ts'
import type { Checked } from '../view/checked.ts'
import { type Flat, flatten } from '../view/flatten.ts'
import { advance, emptyView, type View } from '../view/view.ts'
import type { KnownSize } from './known-size.ts'
import { watchAct } from './own-acts.ts'
import type { Journal } from './ports.ts'
import { NONE_PINNED, type PinnedUuids, withPins } from './rewrite/pins.ts'
import type { RoomState } from './rewrite/room-state.ts'

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
