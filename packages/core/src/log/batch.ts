/**
 * Batches: records appended together are valid only when all of them are present, so a log cut at any byte reads as
 * complete batches. Records that are set aside are reported as damage.
 */
import { isObject } from './json.ts'
import type { BatchStamp, SessionRecord } from './record.ts'

/** State of a reading; mutated by every line. */
export interface Gathering {
  readonly damage: Damage[]
  /** Position of the last valid record. */
  position: number
  open: OpenBatch | null
}

/** A valid record with its position in the log: its `seq`, or the next position. */
export interface Counted extends Line {
  readonly position: number
}

export function gatheringFrom(position: number): Gathering {
  return { damage: [], position, open: null }
}

/** Why `seq` or `batch` is invalid, or null. A record without `seq` has no batch. */
export function stampProblem({ seq, batch }: SessionRecord): string | null {
  if (seq == null) return null
  if (!Number.isSafeInteger(seq) || seq < 1) return 'seq is a whole number from 1 on'
  return batch == null || isStamp(batch) ? null : 'batch has an id, an index and how many there are'
}

/** The records that are now valid: this one, all records of the batch it completes, or none yet. */
export function gather(gathering: Gathering, record: SessionRecord, line: number): readonly Counted[] {
  const { seq, batch } = record
  if (seq != null && batch != null) return gatherPart(gathering, { record, line }, { ...batch, seq })
  const { open, position } = gathering
  if (open === null || !standsBetween(open, seq ?? null, position))
    return [...closeBatch(gathering), count(gathering, { record, line })]
  open.between.push({ record, line })
  return NONE
}

/** Gives up on the open batch and returns the records that waited for it. */
export function closeBatch(gathering: Gathering): readonly Counted[] {
  const { open } = gathering
  if (open === null) return NONE
  gathering.open = null
  gathering.damage.push(incomplete(longest(open), open.of))
  return open.between.map((line) => count(gathering, line))
}

const NONE: readonly Counted[] = []

function gatherPart(
  gathering: Gathering,
  part: Line,
  stamp: BatchStamp & { readonly seq: number },
): readonly Counted[] {
  const { open, position } = gathering
  if (open !== null && standsBetween(open, stamp.seq - stamp.index, position)) {
    const why = 'part of an earlier batch stands among the parts of this one; it is set aside'
    gathering.damage.push({ kind: 'out-of-order', line: part.line, why })
    return NONE
  }
  const isNew = open === null || beginsAnew(open, stamp, part.record)
  const waiting = isNew ? closeBatch(gathering) : NONE
  const batch = isNew ? newBatch(stamp, stamp.seq) : open
  gathering.open = batch
  gathering.damage.push(...takePart(batch, stamp, part))
  const isComplete = !batch.isBroken && batch.parts.length === batch.of
  return isComplete ? [...waiting, ...countBatch(gathering, batch)] : waiting
}

/** Other records between the parts get positions after them, so that the parts have the positions they state. */
function countBatch(gathering: Gathering, { parts, between }: OpenBatch): readonly Counted[] {
  gathering.open = null
  const counted = [...parts, ...between].map((line) => count(gathering, line))
  return between.length === 0 ? counted : counted.sort((one, other) => one.line - other.line)
}

/** A record keeps its place even if its `seq` is out of order; the log continues from the highest position. */
function count(gathering: Gathering, { record, line }: Line): Counted {
  const expected = gathering.position + 1
  const position = record.seq ?? expected
  if (position !== expected) {
    const why = `the record says position ${position} where ${expected} comes next`
    gathering.damage.push({ kind: 'out-of-order', line, why })
  }
  gathering.position = Math.max(gathering.position, position)
  return { record, line, position }
}

function isStamp(stamp: unknown): stamp is BatchStamp {
  if (!isObject(stamp) || typeof stamp.id !== 'string') return false
  const index = Number.isSafeInteger(stamp.index) ? Number(stamp.index) : -1
  return Number.isSafeInteger(stamp.of) && index >= 0 && index < Number(stamp.of)
}

// One open batch. Lines can be copied, and a writer that was interrupted may write its batch again, so a part may
// occur more than once: copies are set aside, and the newest attempt at the batch counts.

/** A record and its line number. */
interface Line {
  readonly record: SessionRecord
  readonly line: number
}

interface OpenBatch {
  readonly id: string
  readonly of: number
  /** Position of its first record. */
  readonly first: number
  parts: Line[]
  /** Parts of an earlier attempt, while it has more of them than the current one. */
  before: readonly Line[]
  /** Records between the parts that belong to no batch: they wait until the batch is complete or given up. */
  readonly between: Line[]
  /** A part is missing: the rest is collected only to be reported together. */
  isBroken: boolean
  /** A header followed: later lines may be from another writer that does not know this batch. */
  isPastHeader: boolean
}

function newBatch({ id, of, index }: BatchStamp, seq: number): OpenBatch {
  const first = seq - index
  return { id, of, first, parts: [], before: [], between: [], isBroken: false, isPastHeader: false }
}

/**
 * True if a line that starts at position `first` (null: it has none) leaves the batch open: a line of another tool, or
 * a copy of an old line. A writer that continues after an interrupted batch continues from `last`.
 */
function standsBetween(open: OpenBatch, first: number | null, last: number): boolean {
  if (first === null) return true
  return first <= last && first < open.first && !open.isPastHeader
}

/** Another batch, or this one from its first part with other content: its writer did not continue this one. */
function beginsAnew(open: OpenBatch, { id, index, of }: BatchStamp, record: SessionRecord): boolean {
  if (id !== open.id) return true
  const [first] = open.parts
  return index === 0 && (open.isBroken || of !== open.of || !isSame(first, record))
}

/** Adds the part and returns the damage: copies, and an attempt that is given up. */
function takePart(open: OpenBatch, { index, of }: BatchStamp, part: Line): readonly Damage[] {
  open.isPastHeader = false
  if (!open.isBroken && of === open.of) {
    if (index === open.parts.length) return goOn(open, part)
    if (index === 0) return tellAgain(open, part)
    if (index === open.before.length) return goOnWithEarlier(open, part)
    if (isSame(open.parts[index] ?? open.before[index], part.record)) return [copied(part)]
  }
  open.isBroken = true
  open.parts.push(part)
  return []
}

function incomplete(parts: readonly Line[], of: number): Damage {
  const why = `${parts.length} of the ${of} records appended together are there; none of them counts`
  return { kind: 'incomplete-batch', line: parts[0]?.line ?? 0, why }
}

/** Of two attempts, the one with more parts. */
function longest({ parts, before }: OpenBatch): readonly Line[] {
  return before.length > parts.length ? before : parts
}

function goOn(open: OpenBatch, part: Line): readonly Damage[] {
  const earlier = open.before[open.parts.length]
  open.parts.push(part)
  const isBehind = open.parts.length < open.before.length
  return isBehind && isSame(earlier, part.record) ? [] : dropEarlier(open)
}

/** A copied first line or a new attempt: the next lines decide. */
function tellAgain(open: OpenBatch, part: Line): readonly Damage[] {
  const { parts, before } = open
  open.before = longest(open)
  open.parts = [part]
  if (open.before === before) return parts.map(copied)
  return open.before.length > 1 ? [] : dropEarlier(open)
}

/** The earlier attempt continues: the parts since were copies of its lines. */
function goOnWithEarlier(open: OpenBatch, part: Line): readonly Damage[] {
  const copies = open.parts.map(copied)
  open.parts = [...open.before, part]
  open.before = []
  return copies
}

function dropEarlier(open: OpenBatch): readonly Damage[] {
  const { before } = open
  open.before = []
  return before.length === 0 ? [] : [incomplete(before, open.of)]
}

function copied({ line }: Line): Damage {
  return { kind: 'duplicate-uuid', line, why: 'the line says again what stood before; it is set aside' }
}

function isSame(line: Line | undefined, record: SessionRecord): boolean {
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
