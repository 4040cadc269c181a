/**
 * Builds the context: the entries that the model sees in the next API request. The context starts at the newest
 * compaction that was not undone, includes the records that this compaction kept, and has clearings applied. Without a
 * compaction the context contains every record of the branch.
 *
 * The context is updated record by record (`updateContextView`) and rebuilt only when a rewind changes the branch. Both
 * ways give the same context.
 */
import type { Damage, DamageKind } from '../log/decode-log.ts'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type CompactBoundary,
  isCacheDeletionsEnd,
  isClearedByProvider,
  isCompactBoundary,
  isKnownRecord,
  isMicrocompactBoundary,
  type KnownRecord,
  type MicrocompactBoundary,
  type PreservedMessages,
  type PreservedSegment,
  REPLY_DROPPED_SUBTYPE,
  type SystemRecord,
} from '../log/record.ts'
import { findRecordIndex, NO_PARENT, requireRecordAt, type SessionLog } from '../log/session-log.ts'
import {
  applyClearingToEntries,
  type ContextEntry,
  hideResponseParts,
  withoutCacheDeletions,
  withoutPrefixUpdates,
} from './context-entry.ts'

/** A compaction or clearing that is in effect. It holds the entries that it replaced, so that an undo can restore them. */
export interface ContextRewrite {
  readonly kind: 'compact' | 'clear'
  /** uuid of the boundary record of this compaction or clearing. */
  readonly uuid: string
  /** Position of the boundary record in the list of records on the branch. */
  readonly position: number
  /**
   * Id of the batch of records that the compaction or clearing wrote, or null. An undo removes these records from the
   * context.
   */
  readonly batchId: string | null
  readonly summaryUuid: string | null
  readonly replacedEntries: AppendList<ContextEntry>
  /** For which of `replacedEntries` reported usage was valid; an undo makes it valid again. */
  readonly measured: ValidUsageRange
}

/** Tells for which entries the token usage that responses reported is still the size of the present context. */
export interface ValidUsageRange {
  /**
   * Index of the last record that rewrote the context or replaced the prefix snapshot. Token usage that the provider
   * reported before this record measured a different context, except in the `restored` part.
   */
  readonly rewrittenAt: number
  /** The first entries, if an undo restored them: usage that measured them before the rewrite counts again. */
  readonly restored: RestoredPart | null
}

interface RestoredPart extends ValidUsageRange {
  readonly entries: number
}

/** What the model sees of a session, with what the next record or an undo needs. */
export interface ContextView extends ValidUsageRange {
  /** Indexes of the branch records that this context already includes. */
  readonly branch: AppendList<number>
  readonly entries: AppendList<ContextEntry>
  /** Compactions and clearings in effect, oldest first. Only the last one can be undone. */
  readonly rewrites: readonly ContextRewrite[]
  /** Compactions and clearings that were undone, in the order of the undos. */
  readonly undoneRewrites: readonly ContextRewrite[]
  /**
   * A compaction whose boundary record has been read but not its summary. The context does not change until the summary
   * is read.
   */
  readonly pendingCompaction: ContextRewrite | null
  /** Entries kept by a compaction whose anchor record, after which they are inserted, has not been read yet. */
  readonly waitingForAnchor: readonly AnchoredEntries[]
  readonly damage: AppendList<Damage>
}

export function emptyContextView(): ContextView {
  return {
    branch: AppendList.of(),
    entries: AppendList.of(),
    rewrites: [],
    undoneRewrites: [],
    pendingCompaction: null,
    waitingForAnchor: [],
    rewrittenAt: NO_PARENT,
    restored: null,
    damage: AppendList.of(),
  }
}

/** Builds the context of a session from all records of its branch. */
export function buildContextView(session: SessionLog): ContextView {
  return updateContextView(emptyContextView(), session)
}

/**
 * Returns the context of `session`, starting from the context of an earlier state of the session. Processes only the
 * records appended since then; rebuilds everything if a rewind changed the branch.
 */
export function updateContextView(view: ContextView, session: SessionLog): ContextView {
  let next = session.branch.extends(view.branch) ? view : emptyContextView()
  for (let position = next.branch.length; position < session.branch.length; position += 1) {
    next = applyRecord(next, session, position)
  }
  return { ...next, branch: session.branch }
}

interface RecordPosition {
  readonly session: SessionLog
  readonly position: number
  readonly index: number
}

function applyRecord(view: ContextView, session: SessionLog, position: number): ContextView {
  const index = session.branch.at(position) ?? NO_PARENT
  const record = requireRecordAt(session, index)
  if (!isKnownRecord(record)) return view
  const at = { session, position, index }
  if (isCompactBoundary(record)) return startCompaction(view, record, at)
  if (isMicrocompactBoundary(record) && !isClearedByProvider(record.microcompactMetadata))
    return applyClearing(view, record, at)
  if (record.isCompactSummary === true && view.pendingCompaction !== null)
    return applyCompaction(view, view.pendingCompaction, record, at)
  if (record.type === 'system') return applySystemRecord(view, record, at)
  return pushEntry(view, { record, index })
}

function pushEntry(view: ContextView, entry: ContextEntry): ContextView {
  const { uuid } = entry.record
  const { waitingForAnchor: waiting } = view
  const following = waiting.length === 0 ? [] : waiting.filter((kept) => kept.anchor === uuid)
  const anchored = following.length === 0 ? waiting : waiting.filter((kept) => kept.anchor !== uuid)
  let next: ContextView = { ...view, entries: addEntry(view.entries, entry), waitingForAnchor: anchored }
  for (const item of hideReplacedUpdates(
    next,
    following.flatMap((kept) => kept.entries),
  ))
    next = pushEntry(next, item)
  return isLastOwnRecord(view.rewrites.at(-1), entry.record) ? withUnanchoredEntries(next) : next
}

/**
 * Adds an entry at the end of the context, except for a response to an earlier request: messages appended since that
 * request come after the response, because the model did not see them. The record of a dropped reply removes that
 * reply.
 */
function addEntry(entries: AppendList<ContextEntry>, entry: ContextEntry): AppendList<ContextEntry> {
  const { record } = entry
  if (record.type === 'system' && record.subtype === REPLY_DROPPED_SUBTYPE)
    return withoutLastResponse(entries, record.response).push(entry)
  if (record.type !== 'assistant' || typeof record.afterUuid !== 'string') return entries.push(entry)
  const place = entries.findLastIndex(
    ({ record: other }) =>
      other.uuid === record.afterUuid ||
      (other.type === 'assistant' && other.message.id === record.message.id),
  )
  return place === -1
    ? entries.push(entry)
    : withTail(entries, place + 1, [entry, ...entries.toArray(place + 1)])
}

/** Replaces the entries from `place` on. The list extends those of earlier contexts that end before `place`. */
function withTail(
  entries: AppendList<ContextEntry>,
  place: number,
  tail: readonly ContextEntry[],
): AppendList<ContextEntry> {
  return tail.reduce((list, entry) => list.push(entry), entries.take(place))
}

/** Removes the records of a response after the last user message. An earlier response with the same id stays. */
function withoutLastResponse(
  entries: AppendList<ContextEntry>,
  response: string | undefined,
): AppendList<ContextEntry> {
  const start = entries.findLastIndex(({ record }) => record.type === 'user') + 1
  const isDropped = ({ record }: ContextEntry): boolean =>
    record.type === 'assistant' && record.message.id === response
  return withTail(
    entries,
    start,
    entries.toArray(start).filter((entry) => !isDropped(entry)),
  )
}

/**
 * True if `record` is the last record that the compaction or clearing wrote. If the anchor record of a kept entry has
 * not been read by then, the anchor is missing.
 */
function isLastOwnRecord(act: ContextRewrite | undefined, record: KnownRecord): boolean {
  if (act === undefined || record.uuid === act.uuid) return false
  if (act.batchId === null) return record.uuid === act.summaryUuid
  return record.batch?.id === act.batchId && record.batch.index === record.batch.of - 1
}

/** Appends kept entries whose anchor record is missing to the end of the context. Reports each missing anchor as damage. */
function withUnanchoredEntries(view: ContextView): ContextView {
  let next: ContextView = { ...view, waitingForAnchor: [] }
  for (const { anchor, entries } of view.waitingForAnchor) {
    next = withDamage(next, 'missing-anchor', anchor)
    for (const item of hideReplacedUpdates(next, entries))
      next = { ...next, entries: next.entries.push(item) }
  }
  return next
}

/**
 * Applies a prefix snapshot, which has the newest system prompt and tools, to the entries before it. Hides
 * announcements of earlier changes, thinking that is valid only with an older prefix, and what the snapshot's provider
 * cannot read.
 */
function withPrefixSnapshot(
  entries: AppendList<ContextEntry>,
  { clearedThinking = [], clearedItems = [] }: SystemRecord,
): AppendList<ContextEntry> {
  const kept = withoutPrefixUpdates(entries)
  if (clearedThinking.length + clearedItems.length === 0) return kept
  return AppendList.of(
    hideResponseParts(hideResponseParts(kept.toArray(), clearedThinking, 'thinking'), clearedItems, 'opaque'),
  )
}

/** Hides the updates of the prefix in entries that a compaction kept, if the compaction also started a prefix snapshot. */
function hideReplacedUpdates(
  { entries }: ContextView,
  kept: readonly ContextEntry[],
): readonly ContextEntry[] {
  const isReplaced = kept.length > 0 && [...entries].some(({ record }) => isSnapshotRecord(record))
  return isReplaced ? withoutPrefixUpdates(AppendList.of(kept)).toArray() : kept
}

function isSnapshotRecord(record: KnownRecord): boolean {
  return record.type === 'system' && record.subtype === 'epoch'
}

/** Stores a compaction boundary without changing the context yet, because the log may end before the summary record. */
function startCompaction(view: ContextView, record: CompactBoundary, at: RecordPosition): ContextView {
  const lost =
    view.pendingCompaction === null
      ? view
      : withDamage(view, 'boundary-without-summary', view.pendingCompaction.uuid)
  return { ...lost, pendingCompaction: createRewrite('compact', record, at.position, view) }
}

function applyCompaction(
  view: ContextView,
  pending: ContextRewrite,
  summary: KnownRecord,
  at: RecordPosition,
): ContextView {
  const index = at.session.branch.at(pending.position) ?? NO_PARENT
  const boundary = requireRecordAt(at.session, index) as CompactBoundary
  const kept = collectKeptRecords(boundary, pending.replacedEntries, at.session)
  let next: ContextView = {
    ...view,
    entries: AppendList.of(),
    rewrites: [...view.rewrites, { ...pending, summaryUuid: summary.uuid }],
    pendingCompaction: null,
    waitingForAnchor: kept.anchored,
    rewrittenAt: at.index,
    restored: null,
  }
  for (const uuid of kept.missing) next = withDamage(next, 'missing-preserved', uuid)
  next = pushEntry(next, { record: boundary, index })
  for (const item of listEntriesBetween(at.session, pending.position + 1, at.position))
    next = pushEntry(next, item)
  return pushEntry(next, { record: summary, index: at.index })
}

function applyClearing(view: ContextView, record: MicrocompactBoundary, at: RecordPosition): ContextView {
  const act = createRewrite('clear', record, at.position, view)
  const entries = applyClearingToEntries(view.entries, record.microcompactMetadata)
  const rewrites = [...view.rewrites, act]
  const next = { ...view, entries, rewrites, rewrittenAt: at.index, restored: null }
  return pushEntry(next, { record, index: at.index })
}

function applySystemRecord(view: ContextView, record: SystemRecord, at: RecordPosition): ContextView {
  const rewritten = isSnapshotRecord(record)
    ? {
        ...view,
        entries: withPrefixSnapshot(view.entries, record),
        rewrittenAt: at.index,
        restored: null,
      }
    : view
  const next = pushEntry(rewritten, { record, index: at.index })
  if (isCacheDeletionsEnd(record))
    return { ...next, entries: withoutCacheDeletions(next.entries), rewrittenAt: at.index, restored: null }
  if (record.subtype !== 'compact_undone' && record.subtype !== 'clear_undone') return next
  return applyUndo(next, record, at)
}

/**
 * Undoes the newest compaction or clearing: restores the entries that it replaced, then appends the records that came
 * later. Records that the compaction or clearing itself wrote are left out.
 */
function applyUndo(view: ContextView, record: SystemRecord, at: RecordPosition): ContextView {
  const act = view.rewrites.at(-1)
  if (act === undefined || act.uuid !== record.of)
    return withDamage(view, 'bad-undo', record.of ?? record.uuid)
  const gone = [...view.undoneRewrites, act]
  const later = listEntriesBetween(at.session, act.position + 1, at.position + 1).filter(
    (entry) => !gone.some((rewrite) => isOwnRecord(entry.record, rewrite)),
  )
  const dropsEdits = later.some((entry) => isCacheDeletionsEnd(entry.record))
  // With another prefix snapshot, or without the deletions in the cache, usage from before measured other requests.
  const isMeasured = !dropsEdits && !later.some((entry) => isSnapshotRecord(entry.record))
  let next: ContextView = {
    ...view,
    entries: act.replacedEntries,
    rewrites: view.rewrites.slice(0, -1),
    undoneRewrites: gone,
    waitingForAnchor: [],
    rewrittenAt: at.index,
    restored: isMeasured ? { ...act.measured, entries: act.replacedEntries.length } : null,
  }
  for (const item of hideResponseParts(later, record.clearedThinking, 'thinking')) {
    if (isSnapshotRecord(item.record))
      next = { ...next, entries: withPrefixSnapshot(next.entries, item.record as SystemRecord) }
    next = pushEntry(next, item)
  }
  return dropsEdits ? { ...next, entries: withoutCacheDeletions(next.entries) } : next
}

function listEntriesBetween(session: SessionLog, from: number, to: number): readonly ContextEntry[] {
  return session.branch.toArray(from, to).flatMap((index) => {
    const record = requireRecordAt(session, index)
    return isKnownRecord(record) ? [{ record, index }] : []
  })
}

function isOwnRecord(record: KnownRecord, act: ContextRewrite): boolean {
  if (record.uuid === act.uuid || record.uuid === act.summaryUuid) return true
  return act.batchId !== null && record.batch?.id === act.batchId
}

function createRewrite(
  kind: ContextRewrite['kind'],
  record: SystemRecord,
  position: number,
  { entries, rewrittenAt, restored }: ContextView,
): ContextRewrite {
  return {
    kind,
    uuid: record.uuid,
    position,
    batchId: record.batch?.id ?? null,
    summaryUuid: null,
    replacedEntries: entries,
    measured: { rewrittenAt, restored },
  }
}

const DAMAGE_REASONS: Partial<Record<DamageKind, string>> = {
  'boundary-without-summary': 'is a compaction without a summary, so it is ignored',
  'missing-preserved': 'was kept by a compaction, but is not in the log',
  'missing-anchor':
    'is not in the log; the records that a compaction kept after it are shown at the end of that compaction',
  'bad-undo': 'is not the newest compaction or clearing in force, so its undo is ignored',
}

function withDamage(view: ContextView, kind: DamageKind, uuid: string): ContextView {
  return {
    ...view,
    damage: view.damage.push({ kind, line: 0, uuid, why: `${uuid} ${DAMAGE_REASONS[kind] ?? ''}` }),
  }
}

// The function below chooses the compaction or clearing that an undo reverts.

/** The compaction or clearing to undo. If nothing can be undone: the reason, and a `message` for the user. */
type UndoTarget =
  | { readonly ok: true; readonly act: ContextRewrite; readonly subtype: 'compact_undone' | 'clear_undone' }
  | { readonly ok: false; readonly reason: 'nothing-to-undo' | 'not-standing'; readonly message: string }
  | { readonly ok: false; readonly reason: 'not-newest'; readonly newest: string; readonly message: string }

/** Finds the compaction or clearing to undo. Only the newest one can be undone, so `id`, if given, must be its id. */
export function findUndoTarget(view: ContextView, id?: string): UndoTarget {
  const newest = view.rewrites.at(-1)
  if (newest === undefined) {
    return { ok: false, reason: 'nothing-to-undo', message: 'There is no compaction or clearing to undo.' }
  }
  if (id === undefined || id === newest.uuid) {
    return { ok: true, act: newest, subtype: newest.kind === 'compact' ? 'compact_undone' : 'clear_undone' }
  }
  if (!view.rewrites.some((act) => act.uuid === id)) {
    const message = `${id} is not a standing compaction or clearing of this conversation.`
    return { ok: false, reason: 'not-standing', message }
  }
  const message = `${id} is not the newest: undo ${newest.uuid} (${newest.kind}) first.`
  return { ok: false, reason: 'not-newest', newest: newest.uuid, message }
}

// Finds the entries that a compaction kept unchanged: messages after its pivot, pinned records, and unanswered ones.

/** Entries that a compaction kept, with the uuid of the record after which they are inserted (the anchor). */
interface AnchoredEntries {
  readonly anchor: string
  readonly entries: readonly ContextEntry[]
}

interface KeptRecords {
  readonly anchored: readonly AnchoredEntries[]
  /** uuids of records that the compaction should have kept but that are not in the log. */
  readonly missing: readonly string[]
}

/**
 * Returns each record that the compaction kept, with the clearings that the context had applied to it. A record that
 * was not in the context is read from the log, without clearings.
 */
function collectKeptRecords(
  boundary: CompactBoundary,
  before: AppendList<ContextEntry>,
  session: SessionLog,
): KeptRecords {
  const metadata = boundary.compactMetadata
  const kept = metadata?.preservedMessages ?? toPreservedMessages(before, metadata?.preservedSegment)
  const lists = [kept, metadata?.unansweredMessages].filter((list) => list != null)
  const shown = new Map([...before].map((entry) => [entry.record.uuid, entry]))
  const missing: string[] = []
  const seen = new Set<string>()
  const anchored = lists.map(({ anchorUuid, uuids }) => {
    const unique = uuids.filter((uuid) => !seen.has(uuid) && seen.add(uuid))
    const entries = unique.flatMap((uuid) => {
      const entry = shown.get(uuid) ?? findEntryInLog(uuid, session)
      if (entry === undefined) missing.push(uuid)
      return entry ?? []
    })
    return { anchor: anchorUuid, entries: hideResponseParts(entries, metadata?.clearedThinking, 'thinking') }
  })
  return { anchored: anchored.filter(({ entries }) => entries.length > 0), missing }
}

function toPreservedMessages(
  before: AppendList<ContextEntry>,
  segment: PreservedSegment | undefined,
): PreservedMessages | undefined {
  if (segment == null) return undefined
  const { anchorUuid, headUuid, tailUuid } = segment
  const uuids = [...before].map((entry) => entry.record.uuid)
  const head = uuids.indexOf(headUuid)
  const tail = uuids.lastIndexOf(tailUuid)
  if (head !== -1 && tail >= head) return { anchorUuid, uuids: uuids.slice(head, tail + 1) }
  // The preserved segment comes from a log that other programs may have written, so values that are not strings are
  // ignored.
  return { anchorUuid, uuids: [headUuid, tailUuid].filter((uuid) => typeof uuid === 'string') }
}

function findEntryInLog(uuid: string, session: SessionLog): ContextEntry | undefined {
  const index = findRecordIndex(session, uuid)
  const record = index === undefined ? undefined : requireRecordAt(session, index)
  return index === undefined || record === undefined || !isKnownRecord(record) ? undefined : { record, index }
}
