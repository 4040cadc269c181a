/**
 * The context: the entries the model sees next. It starts at the last standing compaction, with the records that the
 * compaction kept back in place and clearings applied. Without a compaction it is every record of the branch.
 *
 * It is updated record by record (`updateContextView`) and rebuilt only when a rewind changes the branch. Both ways
 * give the same context after every record (law 1).
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

/** A compaction or clearing that stands, with the entries it replaced: undo restores them. */
export interface Act {
  readonly kind: 'compact' | 'clear'
  /** uuid of its boundary. */
  readonly uuid: string
  /** Position of its boundary along the branch. */
  readonly position: number
  /** Records of this batch were written by the rewrite and leave the context when it is undone. */
  readonly batch: string | null
  readonly summary: string | null
  readonly before: List<Entry>
}

export interface View {
  /** The part of the branch processed so far. */
  readonly branch: List<number>
  readonly entries: List<Entry>
  /** Standing rewrites, oldest first. Only the last can be undone. */
  readonly acts: readonly Act[]
  readonly undone: readonly Act[]
  /** A compaction whose summary has not been read yet; until then the context is unchanged. */
  readonly pending: Act | null
  /** Kept records waiting for the record they follow. */
  readonly anchored: readonly Anchored[]
  /** Index of the last record that rewrote the context or replaced the prefix: earlier usage measured something else. */
  readonly rewrittenAt: number
  readonly damage: List<Damage>
}

/** Kept records and the uuid of the record they follow in the context. */
interface Anchored {
  readonly anchor: string
  readonly entries: readonly Entry[]
}

export function emptyView(): View {
  return {
    branch: List.of(),
    entries: List.of(),
    acts: [],
    undone: [],
    pending: null,
    anchored: [],
    rewrittenAt: ROOT,
    damage: List.of(),
  }
}

/** The context of a session, from scratch. */
export function viewOf(session: Session): View {
  return advance(emptyView(), session)
}

/** The context of `session`, given the context of an earlier state of it. Costs what was appended since. */
export function advance(view: View, session: Session): View {
  let next = session.branch.extends(view.branch) ? view : emptyView()
  for (let position = next.branch.length; position < session.branch.length; position += 1) {
    next = step(next, session, position)
  }
  return { ...next, branch: session.branch }
}

interface At {
  readonly session: Session
  readonly position: number
  readonly index: number
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

function pushed(view: View, entry: Entry): View {
  const { uuid } = entry.record
  const following = view.anchored.filter((kept) => kept.anchor === uuid)
  const anchored =
    following.length === 0 ? view.anchored : view.anchored.filter((kept) => kept.anchor !== uuid)
  let next: View = { ...view, entries: view.entries.push(entry), anchored }
  for (const item of following.flatMap((kept) => kept.entries)) next = pushed(next, item)
  return isLastOwn(view.acts.at(-1), entry.record) ? withStranded(next) : next
}

/** The last record that a rewrite wrote: by now every kept record has its place, or its anchor is missing. */
function isLastOwn(act: Act | undefined, record: KnownRecord): boolean {
  if (act === undefined || record.uuid === act.uuid) return false
  if (act.batch === null) return record.uuid === act.summary
  return record.batch?.id === act.batch && record.batch.index === record.batch.of - 1
}

/** Kept records whose anchor is missing are shown here, and the damage is reported. */
function withStranded(view: View): View {
  let next: View = { ...view, anchored: [] }
  for (const { anchor, entries } of view.anchored) {
    next = withDamage(next, 'missing-anchor', anchor)
    for (const item of entries) next = { ...next, entries: next.entries.push(item) }
  }
  return next
}

/** A boundary alone changes nothing: the log may end before its summary. */
function announced(view: View, record: CompactBoundary, at: At): View {
  const lost = view.pending === null ? view : withDamage(view, 'boundary-without-summary', view.pending.uuid)
  return { ...lost, pending: actOf('compact', record, at.position, view.entries) }
}

function compacted(view: View, pending: Act, summary: KnownRecord, at: At): View {
  const index = at.session.branch.at(pending.position) ?? ROOT
  const boundary = recordAt(at.session, index) as CompactBoundary
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
  next = pushed(next, { record: boundary, index })
  for (const item of entriesBetween(at.session, pending.position + 1, at.position)) next = pushed(next, item)
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

/** The entries the rewrite replaced, then those appended since, without the rewrite's own records. */
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
  const later = entriesBetween(at.session, act.position + 1, at.position + 1).filter(
    (entry) => !gone.some((rewrite) => isOwn(entry.record, rewrite)),
  )
  for (const item of withoutThinking(later, record.clearedThinking)) next = pushed(next, item)
  const dropsEdits = later.some((entry) => (entry.record as SystemRecord).subtype === CACHE_EDITS_DROPPED)
  return dropsEdits ? { ...next, entries: withoutEdits(next.entries) } : next
}

function entriesBetween(session: Session, from: number, to: number): readonly Entry[] {
  return session.branch.toArray(from, to).flatMap((index) => {
    const record = recordAt(session, index)
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

// What a compaction kept verbatim.

interface Kept {
  readonly anchored: readonly Anchored[]
  /** uuids of kept records that are not in the log. */
  readonly missing: readonly string[]
}

/** Each kept record as it was in the context, clearings included; if it was not there, as it is in the log. */
function keptBy(boundary: CompactBoundary, before: List<Entry>, session: Session): Kept {
  const metadata = boundary.compactMetadata
  const kept = metadata?.preservedMessages ?? segmentOf(before, metadata?.preservedSegment)
  const lists = [kept, metadata?.unansweredMessages].filter((list) => list != null)
  const shown = new Map([...before].map((entry) => [entry.record.uuid, entry]))
  const missing: string[] = []
  const seen = new Set<string>()
  const anchored = lists.map(({ anchorUuid, uuids }) => {
    const unique = uuids.filter((uuid) => !seen.has(uuid) && seen.add(uuid))
    const entries = unique.flatMap((uuid) => {
      const entry = shown.get(uuid) ?? fromLog(uuid, session)
      if (entry === undefined) missing.push(uuid)
      return entry ?? []
    })
    return { anchor: anchorUuid, entries: withoutThinking(entries, metadata?.clearedThinking) }
  })
  return { anchored: anchored.filter(({ entries }) => entries.length > 0), missing }
}

function segmentOf(
  before: List<Entry>,
  segment: PreservedSegment | undefined,
): PreservedMessages | undefined {
  if (segment == null) return undefined
  const { anchorUuid, headUuid, tailUuid } = segment
  const uuids = [...before].map((entry) => entry.record.uuid)
  const head = uuids.indexOf(headUuid)
  const tail = uuids.lastIndexOf(tailUuid)
  if (head !== -1 && tail >= head) return { anchorUuid, uuids: uuids.slice(head, tail + 1) }
  // Other programs may write anything there.
  return { anchorUuid, uuids: [headUuid, tailUuid].filter((uuid) => typeof uuid === 'string') }
}

function fromLog(uuid: string, session: Session): Entry | undefined {
  const index = placeOf(session, uuid)
  const record = index === undefined ? undefined : recordAt(session, index)
  return index === undefined || record === undefined || !isKnown(record) ? undefined : { record, index }
}

// Undo.

/** The rewrite to undo, or why there is none; `message` says it to the user. */
export type UndoChoice =
  | { readonly ok: true; readonly act: Act; readonly subtype: 'compact_undone' | 'clear_undone' }
  | { readonly ok: false; readonly reason: 'nothing-to-undo' | 'not-standing'; readonly message: string }
  | { readonly ok: false; readonly reason: 'not-newest'; readonly newest: string; readonly message: string }

/** Only the newest rewrite can be undone; it is chosen when no id is given. */
export function chooseUndo(view: View, id?: string): UndoChoice {
  const newest = view.acts.at(-1)
  if (newest === undefined) {
    return { ok: false, reason: 'nothing-to-undo', message: 'There is no compaction or clearing to undo.' }
  }
  if (id === undefined || id === newest.uuid) {
    return { ok: true, act: newest, subtype: newest.kind === 'compact' ? 'compact_undone' : 'clear_undone' }
  }
  if (!view.acts.some((act) => act.uuid === id)) {
    const message = `${id} is not a standing compaction or clearing of this conversation.`
    return { ok: false, reason: 'not-standing', message }
  }
  const message = `${id} is not the newest: undo ${newest.uuid} (${newest.kind}) first.`
  return { ok: false, reason: 'not-newest', newest: newest.uuid, message }
}
