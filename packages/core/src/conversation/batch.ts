/**
 * Records appended together count only when all of them are there, so a log cut at any byte reads as whole
 * batches and nothing else. What is set aside is reported.
 */
import type { Damage } from './damage.ts'
import { isObject } from './json.ts'
import {
  beginsAnew,
  incomplete,
  isWhole,
  type Line,
  longest,
  newBatch,
  type OpenBatch,
  standsBetween,
  takePart,
} from './open-batch.ts'
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
