/**
 * Records appended together count only when all of them are there, so a log cut at any byte reads as whole
 * batches and nothing else. What is set aside is reported.
 */
import { isObject } from './json.ts'
import type { BatchStamp, SessionRecord } from './record.ts'

/** Where the reading of a log stands. It changes with every line. */
export interface Gathering {
  readonly damage: Damage[]
  /** Position of the last record that counts. */
  position: number
  open: OpenBatch | null
}

/** A record that counts, with its place in the log: the position it says, or else the next. */
export interface Counted extends Line {
  readonly position: number
}

export function gatheringFrom(position: number): Gathering {
  return { damage: [], position, open: null }
}

/** Null where its position and batch can be read; otherwise why not. A record without position has no batch. */
export function stampProblem({ seq, batch }: SessionRecord): string | null {
  if (seq == null) return null
  if (!Number.isSafeInteger(seq) || seq < 1) return 'seq is a whole number from 1 on'
  return batch == null || isStamp(batch) ? null : 'batch has an id, an index and how many there are'
}

/** The records that count from now on: this one, or all of the batch that it completes, or none yet. */
export function gather(gathering: Gathering, record: SessionRecord, line: number): readonly Counted[] {
  const { seq, batch } = record
  if (seq != null && batch != null) return gatherPart(gathering, { record, line }, { ...batch, seq })
  const { open, position } = gathering
  if (open === null || !standsBetween(open, seq ?? null, position))
    return [...closeBatch(gathering), count(gathering, { record, line })]
  open.between.push({ record, line })
  return NONE
}

/** No more parts of the batch will come. Gives what had to wait for it. */
export function closeBatch(gathering: Gathering): readonly Counted[] {
  const { open } = gathering
  if (open === null) return NONE
  gathering.open = null
  gathering.damage.push(incomplete(longest(open), open.of))
  return open.between.map((line) => count(gathering, line))
}

const NONE: readonly Counted[] = []

interface PartStamp extends BatchStamp {
  readonly seq: number
}

function gatherPart(gathering: Gathering, part: Line, stamp: PartStamp): readonly Counted[] {
  const { open, position } = gathering
  if (open !== null && standsBetween(open, stamp.seq - stamp.index, position)) {
    gathering.damage.push({ kind: 'out-of-order', line: part.line, why: STRAY })
    return NONE
  }
  const isNew = open === null || beginsAnew(open, stamp, part.record)
  const waiting = isNew ? closeBatch(gathering) : NONE
  const batch = isNew ? newBatch(stamp, stamp.seq) : open
  gathering.open = batch
  for (const damage of takePart(batch, stamp, part)) gathering.damage.push(damage)
  return isWhole(batch) ? [...waiting, ...countBatch(gathering, batch)] : waiting
}

const STRAY = 'part of an earlier batch stands among the parts of this one; it is set aside'

/** What stood between the parts counts behind them, so that the parts have the positions they say. */
function countBatch(gathering: Gathering, { parts, between }: OpenBatch): readonly Counted[] {
  gathering.open = null
  const counted = [...parts, ...between].map((line) => count(gathering, line))
  return between.length === 0 ? counted : counted.sort((one, other) => one.line - other.line)
}

/** A record keeps its place whatever its position says; the log goes on from the highest. */
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

// One batch while its lines come in. Lines can be copied, and a writer that was cut off may tell its batch anew,
// so a part may come more than once: what is said again is set aside, and the newest telling counts.

/** A record and the line it stands on. */
interface Line {
  readonly record: SessionRecord
  readonly line: number
}

interface OpenBatch {
  readonly id: string
  readonly of: number
  /** The position of its first record. */
  readonly first: number
  parts: Line[]
  /** What an earlier telling had, for as long as that is more than what the present one has. */
  before: readonly Line[]
  /** Lines among the parts that are none: they count once it is known whether the batch does. */
  readonly between: Line[]
  /** A part is missing: the rest is gathered only to be reported as one. */
  isBroken: boolean
  /** A header came: what follows may be from another writer, who need not know this batch. */
  isPastHeader: boolean
}

function newBatch({ id, of, index }: BatchStamp, seq: number): OpenBatch {
  const first = seq - index
  return { id, of, first, parts: [], before: [], between: [], isBroken: false, isPastHeader: false }
}

/**
 * Does a line that says position `first` for itself or its batch (null: none) leave the batch open? So does one of
 * another tool, and an old one that was copied. Whoever goes on after a batch was cut off goes on from `last`.
 */
function standsBetween(open: OpenBatch, first: number | null, last: number): boolean {
  if (first === null) return true
  return first <= last && first < open.first && !open.isPastHeader
}

/** Another batch, or this one from its first part on in other words: whoever wrote it did not go on with this one. */
function beginsAnew(open: OpenBatch, { id, index, of }: BatchStamp, record: SessionRecord): boolean {
  if (id !== open.id) return true
  const [first] = open.parts
  return index === 0 && (open.isBroken || of !== open.of || !isSame(first, record))
}

function isWhole({ parts, of, isBroken }: OpenBatch): boolean {
  return !isBroken && parts.length === of
}

/** Tells what was said twice, or in vain. */
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

/** Of two tellings, the one that has more. */
function longest({ parts, before }: OpenBatch): readonly Line[] {
  return before.length > parts.length ? before : parts
}

function goOn(open: OpenBatch, part: Line): readonly Damage[] {
  const earlier = open.before[open.parts.length]
  open.parts.push(part)
  const isBehind = open.parts.length < open.before.length
  return isBehind && isSame(earlier, part.record) ? [] : dropEarlier(open)
}

/** A copied first line, or a new telling: what comes next will show. */
function tellAgain(open: OpenBatch, part: Line): readonly Damage[] {
  const { parts, before } = open
  open.before = longest(open)
  open.parts = [part]
  if (open.before === before) return parts.map(copied)
  return open.before.length > 1 ? [] : dropEarlier(open)
}

/** The earlier telling was not cut off: what came since were copies of its lines. */
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

/** What was wrong with a log, where, and what was done about it. Damage is reported, never fatal and never silent. */
export type DamageKind =
  | 'torn-line' // the last line was cut off
  | 'bad-json' // a line that is not JSON
  | 'bad-shape' // JSON, but not a record of the kind it says it is
  | 'incomplete-batch' // some records of a batch are missing: none of it counts
  | 'out-of-order' // a position in the log that does not follow the one before
  | 'missing-parent'
  | 'duplicate-uuid'
  | 'cyclic-parent'
  | 'missing-preserved' // a boundary names a kept record that is not in the log
  | 'missing-anchor' // kept records were to stand behind a record that is not there
  | 'boundary-without-summary'
  | 'bad-undo' // an undo of something that is not the newest standing act

export interface Damage {
  readonly kind: DamageKind
  /** Line in the file, 1 for the first; 0 where only the session as a whole can be named. */
  readonly line: number
  readonly why: string
  /** The record concerned, where it is one. */
  readonly uuid?: string
}
