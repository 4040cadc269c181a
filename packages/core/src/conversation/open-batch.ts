/**
 * One batch while its lines come in. Lines can be copied, and a writer that was cut off may tell its batch anew,
 * so a part may come more than once: what is said again is set aside, and the newest telling counts.
 */
import type { Damage } from './damage.ts'
import type { BatchStamp, SessionRecord } from './record.ts'

/** A record and the line it stands on. */
export interface Line {
  readonly record: SessionRecord
  readonly line: number
}

export interface OpenBatch {
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

export function newBatch({ id, of, index }: BatchStamp, seq: number): OpenBatch {
  const first = seq - index
  return { id, of, first, parts: [], before: [], between: [], isBroken: false, isPastHeader: false }
}

/**
 * Does a line that says position `first` for itself or its batch (null: none) leave the batch open? So does one of
 * another tool, and an old one that was copied. Whoever goes on after a batch was cut off goes on from `last`.
 */
export function standsBetween(open: OpenBatch, first: number | null, last: number): boolean {
  if (first === null) return true
  return first <= last && first < open.first && !open.isPastHeader
}

/** Another batch, or this one from its first part on in other words: whoever wrote it did not go on with this one. */
export function beginsAnew(open: OpenBatch, { id, index, of }: BatchStamp, record: SessionRecord): boolean {
  if (id !== open.id) return true
  const [first] = open.parts
  return index === 0 && (open.isBroken || of !== open.of || !isSame(first, record))
}

export function isWhole({ parts, of, isBroken }: OpenBatch): boolean {
  return !isBroken && parts.length === of
}

/** Tells what was said twice, or in vain. */
export function takePart(open: OpenBatch, { index, of }: BatchStamp, part: Line): readonly Damage[] {
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

export function incomplete(parts: readonly Line[], of: number): Damage {
  const why = `${parts.length} of the ${of} records appended together are there; none of them counts`
  return { kind: 'incomplete-batch', line: parts[0]?.line ?? 0, why }
}

/** Of two tellings, the one that has more. */
export function longest({ parts, before }: OpenBatch): readonly Line[] {
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
