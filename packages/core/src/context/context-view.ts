/**
 * The view: the list the model will see next. From the last standing compaction on, with what it kept put
 * back in its place and clearings applied; nothing else.
 *
 * It is folded along the branch and kept up to date (`advance`). A rewind changes the branch, and then it is
 * folded anew; law 1 says that both ways agree after every record.
 */

import type { Damage, DamageKind } from '../log/batch.ts'
import { List } from '../log/persistent-collections.ts'
import {
  CACHE_EDITS_DROPPED,
  type CompactBoundary,
  isClearedRemotely,
  isCompactBoundary,
  isKnown,
  isMicrocompactBoundary,
  type KnownRecord,
  type MicrocompactBoundary,
  type PreservedMessages,
  type PreservedSegment,
  type SystemRecord,
} from '../log/record.ts'
import { placeOf, ROOT, recordAt, type Session } from '../log/session.ts'
import { clearEntries, type Entry, withoutEdits, withoutThinking } from './entry.ts'

/** A compaction or clearing that stands, with what it replaced: to undo it is to look that up. */
export interface Act {
  readonly kind: 'compact' | 'clear'
  readonly uuid: string
  /** Place of its boundary along the branch. */
  readonly position: number
  /** Records of this batch are the act's own and go when it is undone. */
  readonly batch: string | null
  readonly summary: string | null
  readonly before: List<Entry>
}

export interface View {
  /** The branch as far as it has been taken in. */
  readonly branch: List<number>
  readonly entries: List<Entry>
  /** Standing acts, oldest first. Only the last can be undone. */
  readonly acts: readonly Act[]
  readonly undone: readonly Act[]
  /** A compaction whose summary has not come: until it does the view is as before. */
  readonly pending: Act | null
  /** Kept records that wait for the record they stand behind. */
  readonly anchored: readonly Anchored[]
  /** Index of the record that last rewrote the view (or began an epoch): usage from before measured something else. */
  readonly rewrittenAt: number
  readonly damage: List<Damage>
}

const EMPTY: Omit<View, 'branch' | 'entries' | 'damage'> = {
  acts: [],
  undone: [],
  pending: null,
  anchored: [],
  rewrittenAt: ROOT,
}

export function emptyView(): View {
  return { ...EMPTY, branch: List.of(), entries: List.of(), damage: List.of() }
}

/** The view of a session, from scratch. */
export function viewOf(session: Session): View {
  return advance(emptyView(), session)
}

/** The view of `session`, given the view of an earlier state of it. */
export function advance(view: View, session: Session): View {
  let next = session.branch.extends(view.branch) ? view : emptyView()
  for (let position = next.branch.length; position < session.branch.length; position += 1) {
    next = step(next, session, position)
  }
  return { ...next, branch: session.branch }
}

function step(view: View, session: Session, position: number): View {
  const index = session.branch.at(position) ?? ROOT
  const record = recordAt(session, index)
  if (!isKnown(record)) return view
  const at = { session, position, index }
  if (isCompactBoundary(record)) return announced(view, record, at)
  if (isMicrocompactBoundary(record) && !isClearedRemotely(record.microcompactMetadata))
    return cleared(view, record, at)
  if (record.isCompactSummary === true && view.pending !== null)
    return compacted(view, view.pending, record, at)
  if (record.type === 'system') return noticed(view, record, at)
  return pushed(view, { record, index })
}

interface At {
  readonly session: Session
  readonly position: number
  readonly index: number
}

function pushed(view: View, entry: Entry): View {
  const { uuid } = entry.record
  const behind = view.anchored.filter((kept) => kept.anchor === uuid)
  const anchored = behind.length === 0 ? view.anchored : view.anchored.filter((kept) => kept.anchor !== uuid)
  let next: View = { ...view, entries: view.entries.push(entry), anchored }
  for (const item of behind.flatMap((kept) => kept.entries)) next = pushed(next, item)
  return isLastOwn(view.acts.at(-1), entry.record) ? withStranded(next) : next
}

/** The last record that an act wrote: whatever was to stand behind one of them has its place by now. */
function isLastOwn(act: Act | undefined, record: KnownRecord): boolean {
  if (act === undefined || record.uuid === act.uuid) return false
  if (act.batch === null) return record.uuid === act.summary
  return record.batch?.id === act.batch && record.batch.index === record.batch.of - 1
}

/** Kept records whose anchor never came stand here: they are shown, and the damage is told. */
function withStranded(view: View): View {
  let next: View = { ...view, anchored: [] }
  for (const { anchor, entries } of view.anchored) {
    next = withDamage(next, 'missing-anchor', anchor)
    for (const item of entries) next = { ...next, entries: next.entries.push(item) }
  }
  return next
}

/** A boundary alone changes nothing: a log may end there. */
function announced(view: View, record: CompactBoundary, at: At): View {
  const lost = view.pending === null ? view : withDamage(view, 'boundary-without-summary', view.pending.uuid)
  return { ...lost, pending: actOf('compact', record, at.position, view.entries) }
}

function compacted(view: View, pending: Act, summary: KnownRecord, at: At): View {
  const boundary = recordAt(at.session, at.session.branch.at(pending.position) ?? ROOT) as CompactBoundary
  const kept = keptBy(boundary, pending.before, at.session)
  let next: View = {
    ...view,
    entries: List.of(),
    acts: [...view.acts, { ...pending, summary: summary.uuid }],
    pending: null,
    anchored: kept.anchored,
    rewrittenAt: at.index,
  }
  for (const uuid of kept.missing) next = withDamage(next, 'missing-preserved', uuid)
  next = pushed(next, { record: boundary, index: at.session.branch.at(pending.position) ?? ROOT })
  for (const item of since(at, pending.position)) next = pushed(next, item)
  return pushed(next, { record: summary, index: at.index })
}

function cleared(view: View, record: MicrocompactBoundary, at: At): View {
  const act = actOf('clear', record, at.position, view.entries)
  const entries = clearEntries(view.entries, record.microcompactMetadata)
  const next = { ...view, entries, acts: [...view.acts, act], rewrittenAt: at.index }
  return pushed(next, { record, index: at.index })
}

function noticed(view: View, record: SystemRecord, at: At): View {
  const rewritten = record.subtype === 'epoch' ? { ...view, rewrittenAt: at.index } : view
  const next = pushed(rewritten, { record, index: at.index })
  if (record.subtype === CACHE_EDITS_DROPPED)
    return { ...next, entries: withoutEdits(next.entries), rewrittenAt: at.index }
  if (record.subtype !== 'compact_undone' && record.subtype !== 'clear_undone') return next
  return undone(next, record, at)
}

/** Back to what the act replaced, and behind it what has come since, less the act's own records. */
function undone(view: View, record: SystemRecord, at: At): View {
  const act = view.acts.at(-1)
  if (act === undefined || act.uuid !== record.of)
    return withDamage(view, 'bad-undo', record.of ?? record.uuid)
  const gone = [...view.undone, act]
  let next: View = {
    ...view,
    entries: act.before,
    acts: view.acts.slice(0, -1),
    undone: gone,
    anchored: [],
    rewrittenAt: at.index,
  }
  const come = since({ ...at, position: at.position + 1 }, act.position).filter(
    ({ record: said }) => !gone.some((taken) => isOwn(said, taken)),
  )
  for (const item of withoutThinking(come, record.clearedThinking)) next = pushed(next, item)
  return come.some(isDrop) ? { ...next, entries: withoutEdits(next.entries) } : next
}

function isDrop({ record }: Entry): boolean {
  return record.type === 'system' && record.subtype === CACHE_EDITS_DROPPED
}

/** What came along the branch between a boundary and the present position. */
function since(at: At, position: number): readonly Entry[] {
  const indices = at.session.branch.toArray(position + 1, at.position)
  return indices.flatMap((index) => {
    const record = recordAt(at.session, index)
    return isKnown(record) ? [{ record, index }] : []
  })
}

function isOwn(record: KnownRecord, act: Act): boolean {
  if (record.uuid === act.uuid || record.uuid === act.summary) return true
  return act.batch !== null && record.batch?.id === act.batch
}

function actOf(kind: Act['kind'], record: SystemRecord, position: number, before: List<Entry>): Act {
  return { kind, uuid: record.uuid, position, batch: record.batch?.id ?? null, summary: null, before }
}

const WHY: Partial<Record<DamageKind, string>> = {
  'boundary-without-summary': 'has no summary behind it and is left out of account',
  'missing-preserved': 'was to be kept and is not in the log',
  'missing-anchor':
    'is not there for kept records to stand behind: they stand at the end of what the compaction wrote',
  'bad-undo': 'is not the newest standing act, so its undoing is left out of account',
}

function withDamage(view: View, kind: DamageKind, uuid: string): View {
  return { ...view, damage: view.damage.push({ kind, line: 0, uuid, why: `${uuid} ${WHY[kind] ?? ''}` }) }
}

// What a compaction kept verbatim, and behind which record each piece stands in the view.

interface Anchored {
  readonly anchor: string
  readonly entries: readonly Entry[]
}

interface Kept {
  readonly anchored: readonly Anchored[]
  /** Named as kept, and nowhere to be found. */
  readonly missing: readonly string[]
}

function keptBy(boundary: CompactBoundary, before: List<Entry>, session: Session): Kept {
  const metadata = boundary.compactMetadata
  const kept = metadata?.preservedMessages ?? segmentOf(before, metadata?.preservedSegment)
  const lists = [kept, metadata?.unansweredMessages].filter((list) => list != null)
  const missing: string[] = []
  const taken = new Set<string>()
  const anchored = lists.map((list) => {
    const uuids = list.uuids.filter((uuid) => !taken.has(uuid) && taken.add(uuid))
    const entries = withoutThinking(found(uuids, before, session, missing), metadata?.clearedThinking)
    return { anchor: list.anchorUuid, entries }
  })
  return { anchored: anchored.filter(({ entries }) => entries.length > 0), missing }
}

function segmentOf(
  before: List<Entry>,
  segment: PreservedSegment | undefined,
): PreservedMessages | undefined {
  if (segment == null) return undefined
  const uuids = [...before].map((entry) => entry.record.uuid)
  const head = uuids.indexOf(segment.headUuid)
  const tail = uuids.lastIndexOf(segment.tailUuid)
  if (head === -1 || tail < head)
    return { anchorUuid: segment.anchorUuid, uuids: [segment.headUuid, segment.tailUuid] }
  return { anchorUuid: segment.anchorUuid, uuids: uuids.slice(head, tail + 1) }
}

/** As it stood in the view, clearings and all; failing that, as it stands in the log. */
function found(
  uuids: readonly string[],
  before: List<Entry>,
  session: Session,
  missing: string[],
): readonly Entry[] {
  const shown = new Map([...before].map((entry) => [entry.record.uuid, entry]))
  return uuids.flatMap((uuid) => {
    const entry = shown.get(uuid) ?? fromLog(uuid, session)
    if (entry === undefined) missing.push(uuid)
    return entry === undefined ? [] : [entry]
  })
}

function fromLog(uuid: string, session: Session): Entry | undefined {
  const index = placeOf(session, uuid)
  const record = index === undefined ? undefined : recordAt(session, index)
  return index === undefined || record === undefined || !isKnown(record) ? undefined : { record, index }
}

// Which act can be taken back, and the word to the person when it is not the one asked for.

export type UndoChoice =
  | { readonly ok: true; readonly act: Act; readonly subtype: 'compact_undone' | 'clear_undone' }
  | { readonly ok: false; readonly reason: 'nothing-to-undo' | 'not-standing'; readonly message: string }
  | { readonly ok: false; readonly reason: 'not-newest'; readonly newest: string; readonly message: string }

/** Undo goes newest first. Without an id it is the newest act that is meant. */
export function chooseUndo(view: View, id?: string): UndoChoice {
  const newest = view.acts.at(-1)
  if (newest === undefined) {
    return { ok: false, reason: 'nothing-to-undo', message: 'There is no compaction or clearing to undo.' }
  }
  if (id === undefined || id === newest.uuid) {
    return { ok: true, act: newest, subtype: newest.kind === 'compact' ? 'compact_undone' : 'clear_undone' }
  }
  if (!view.acts.some((act) => act.uuid === id)) {
    return {
      ok: false,
      reason: 'not-standing',
      message: `${id} is no standing compaction or clearing of this view.`,
    }
  }
  const message = `${id} is not the newest: undo ${newest.uuid} (${newest.kind}) first.`
  return { ok: false, reason: 'not-newest', newest: newest.uuid, message }
}
