/**
 * Batches: records appended together are valid only when all of them are present, so a log cut at any byte reads as
 * complete batches. Records that are set aside are reported as damage.
 */
import { isObject } from './json.ts'
import type { BatchStamp, SessionRecord } from './record.ts'

/** State of a reading; mutated by every line. */
export interface BatchState {
  readonly damage: Damage[]
  /** Position of the last valid record. */
  position: number
  openBatch: OpenBatch | null
}

/** A valid record with its position in the log: its `seq`, or the next position. */
export interface PositionedRecord extends NumberedRecord {
  readonly position: number
}

export function createBatchState(position: number): BatchState {
  return { damage: [], position, openBatch: null }
}

/** Why `seq` or `batch` is invalid, or null. A record without `seq` has no batch. */
export function checkStamp({ seq, batch }: SessionRecord): string | null {
  if (seq == null) return null
  if (!Number.isSafeInteger(seq) || seq < 1) return 'seq is a whole number from 1 on'
  return batch == null || isBatchStamp(batch) ? null : 'batch has an id, an index and how many there are'
}

/** The records that are now valid: this one, all records of the batch it completes, or none yet. */
export function addRecord(
  gathering: BatchState,
  record: SessionRecord,
  line: number,
): readonly PositionedRecord[] {
  const { seq, batch } = record
  if (seq != null && batch != null) return addPart(gathering, { record, line }, { ...batch, seq })
  const { openBatch, position } = gathering
  if (openBatch === null || !leavesBatchOpen(openBatch, seq ?? null, position))
    return [...abandonBatch(gathering), assignPosition(gathering, { record, line })]
  openBatch.otherRecords.push({ record, line })
  return NO_RECORDS
}

/** Gives up on the open batch and returns the records that waited for it. */
export function abandonBatch(gathering: BatchState): readonly PositionedRecord[] {
  const { openBatch } = gathering
  if (openBatch === null) return NO_RECORDS
  gathering.openBatch = null
  gathering.damage.push(describeIncompleteBatch(findLongerAttempt(openBatch), openBatch.of))
  return openBatch.otherRecords.map((line) => assignPosition(gathering, line))
}

const NO_RECORDS: readonly PositionedRecord[] = []

function addPart(
  gathering: BatchState,
  part: NumberedRecord,
  stamp: BatchStamp & { readonly seq: number },
): readonly PositionedRecord[] {
  const { openBatch, position } = gathering
  if (openBatch !== null && leavesBatchOpen(openBatch, stamp.seq - stamp.index, position)) {
    const why = 'part of an earlier batch stands among the parts of this one; it is set aside'
    gathering.damage.push({ kind: 'out-of-order', line: part.line, why })
    return NO_RECORDS
  }
  const isNew = openBatch === null || startsNewAttempt(openBatch, stamp, part.record)
  const waiting = isNew ? abandonBatch(gathering) : NO_RECORDS
  const batch = isNew ? createOpenBatch(stamp, stamp.seq) : openBatch
  gathering.openBatch = batch
  gathering.damage.push(...placePart(batch, stamp, part))
  const isComplete = !batch.isBroken && batch.parts.length === batch.of
  return isComplete ? [...waiting, ...completeBatch(gathering, batch)] : waiting
}

/** Other records between the parts get positions after them, so that the parts have the positions they state. */
function completeBatch(
  gathering: BatchState,
  { parts, otherRecords }: OpenBatch,
): readonly PositionedRecord[] {
  gathering.openBatch = null
  const counted = [...parts, ...otherRecords].map((line) => assignPosition(gathering, line))
  return otherRecords.length === 0 ? counted : counted.sort((one, other) => one.line - other.line)
}

/** A record keeps its place even if its `seq` is out of order; the log continues from the highest position. */
function assignPosition(gathering: BatchState, { record, line }: NumberedRecord): PositionedRecord {
  const expected = gathering.position + 1
  const position = record.seq ?? expected
  if (position !== expected) {
    const why = `the record says position ${position} where ${expected} comes next`
    gathering.damage.push({ kind: 'out-of-order', line, why })
  }
  gathering.position = Math.max(gathering.position, position)
  return { record, line, position }
}

function isBatchStamp(stamp: unknown): stamp is BatchStamp {
  if (!isObject(stamp) || typeof stamp.id !== 'string') return false
  const index = Number.isSafeInteger(stamp.index) ? Number(stamp.index) : -1
  return Number.isSafeInteger(stamp.of) && index >= 0 && index < Number(stamp.of)
}

// One open batch. Lines can be copied, and a writer that was interrupted may write its batch again, so a part may
// occur more than once: copies are set aside, and the newest attempt at the batch counts.

/** A record and its line number. */
interface NumberedRecord {
  readonly record: SessionRecord
  readonly line: number
}

interface OpenBatch {
  readonly id: string
  readonly of: number
  /** Position of its first record. */
  readonly first: number
  parts: NumberedRecord[]
  /** Parts of an earlier attempt, while it has more of them than the current one. */
  earlierAttempt: readonly NumberedRecord[]
  /** Records between the parts that belong to no batch: they wait until the batch is complete or given up. */
  readonly otherRecords: NumberedRecord[]
  /** A part is missing: the rest is collected only to be reported together. */
  isBroken: boolean
  /** A header followed: later lines may be from another writer that does not know this batch. */
  isPastHeader: boolean
}

function createOpenBatch({ id, of, index }: BatchStamp, seq: number): OpenBatch {
  const first = seq - index
  return {
    id,
    of,
    first,
    parts: [],
    earlierAttempt: [],
    otherRecords: [],
    isBroken: false,
    isPastHeader: false,
  }
}

/**
 * True if a line that starts at position `first` (null: it has none) leaves the batch open: a line of another tool, or
 * a copy of an old line. A writer that continues after an interrupted batch continues from `last`.
 */
function leavesBatchOpen(open: OpenBatch, first: number | null, last: number): boolean {
  if (first === null) return true
  return first <= last && first < open.first && !open.isPastHeader
}

/** Another batch, or this one from its first part with other content: its writer did not continue this one. */
function startsNewAttempt(open: OpenBatch, { id, index, of }: BatchStamp, record: SessionRecord): boolean {
  if (id !== open.id) return true
  const [first] = open.parts
  return index === 0 && (open.isBroken || of !== open.of || !isSameRecord(first, record))
}

/** Adds the part and returns the damage: copies, and an attempt that is given up. */
function placePart(open: OpenBatch, { index, of }: BatchStamp, part: NumberedRecord): readonly Damage[] {
  open.isPastHeader = false
  if (!open.isBroken && of === open.of) {
    if (index === open.parts.length) return continueAttempt(open, part)
    if (index === 0) return restartAttempt(open, part)
    if (index === open.earlierAttempt.length) return resumeEarlierAttempt(open, part)
    if (isSameRecord(open.parts[index] ?? open.earlierAttempt[index], part.record))
      return [describeCopy(part)]
  }
  open.isBroken = true
  open.parts.push(part)
  return []
}

function describeIncompleteBatch(parts: readonly NumberedRecord[], of: number): Damage {
  const why = `${parts.length} of the ${of} records appended together are there; none of them counts`
  return { kind: 'incomplete-batch', line: parts[0]?.line ?? 0, why }
}

/** Of two attempts, the one with more parts. */
function findLongerAttempt({ parts, earlierAttempt }: OpenBatch): readonly NumberedRecord[] {
  return earlierAttempt.length > parts.length ? earlierAttempt : parts
}

function continueAttempt(open: OpenBatch, part: NumberedRecord): readonly Damage[] {
  const earlier = open.earlierAttempt[open.parts.length]
  open.parts.push(part)
  const isBehind = open.parts.length < open.earlierAttempt.length
  return isBehind && isSameRecord(earlier, part.record) ? [] : dropEarlierAttempt(open)
}

/** A copied first line or a new attempt: the next lines decide. */
function restartAttempt(open: OpenBatch, part: NumberedRecord): readonly Damage[] {
  const { parts, earlierAttempt } = open
  open.earlierAttempt = findLongerAttempt(open)
  open.parts = [part]
  if (open.earlierAttempt === earlierAttempt) return parts.map(describeCopy)
  return open.earlierAttempt.length > 1 ? [] : dropEarlierAttempt(open)
}

/** The earlier attempt continues: the parts since were copies of its lines. */
function resumeEarlierAttempt(open: OpenBatch, part: NumberedRecord): readonly Damage[] {
  const copies = open.parts.map(describeCopy)
  open.parts = [...open.earlierAttempt, part]
  open.earlierAttempt = []
  return copies
}

function dropEarlierAttempt(open: OpenBatch): readonly Damage[] {
  const { earlierAttempt } = open
  open.earlierAttempt = []
  return earlierAttempt.length === 0 ? [] : [describeIncompleteBatch(earlierAttempt, open.of)]
}

function describeCopy({ line }: NumberedRecord): Damage {
  return { kind: 'duplicate-uuid', line, why: 'the line says again what stood before; it is set aside' }
}

function isSameRecord(line: NumberedRecord | undefined, record: SessionRecord): boolean {
  return line !== undefined && JSON.stringify(line.record) === JSON.stringify(record)
}

/** What was wrong with a log. Damage is always reported and never fatal. */
export type DamageKind =
  | 'torn-line' // the last line was cut off
  | 'bad-json' // a line that is not JSON
  | 'bad-shape' // JSON, but not a valid record of its type
  | 'incomplete-batch' // records of a batch are missing: none of it is used
  | 'out-of-order' // `seq` does not follow the record before
  | 'missing-parent'
  | 'duplicate-uuid'
  | 'cyclic-parent'
  | 'missing-preserved' // a boundary names a kept record that is not in the log
  | 'missing-anchor' // kept records were to follow a record that is not there
  | 'boundary-without-summary'
  | 'bad-undo' // an undo of something other than the newest standing rewrite

export interface Damage {
  readonly kind: DamageKind
  /** Line in the file, from 1; 0 if only the session as a whole is known. */
  readonly line: number
  /** What was wrong and what was done about it. */
  readonly why: string
  /** The record concerned, if there is one. */
  readonly uuid?: string
}
