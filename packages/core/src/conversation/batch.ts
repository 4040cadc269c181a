/**
 * Records appended together count only when all of them are there, so a log cut at any byte reads as whole
 * batches and nothing else. What is set aside is reported.
 */
import type { Damage } from './damage.ts'
import { isObject } from './json.ts'
import type { BatchStamp, SessionRecord } from './record.ts'

/** Where the reading of a log stands. It changes with every line. */
export interface Gathering {
  readonly damage: Damage[]
  /** Position of the last record that counts. */
  position: number
  open: OpenBatch | null
}

interface OpenBatch {
  readonly id: string
  readonly of: number
  readonly lines: number[]
  readonly records: SessionRecord[]
  /** A part is missing: the rest is gathered only to be reported as one. */
  isBroken: boolean
}

export function emptyGathering(): Gathering {
  return { damage: [], position: 0, open: null }
}

/** Null where its position and batch can be read; otherwise why not. A record without position has no batch. */
export function stampProblem({ seq, batch }: SessionRecord): string | null {
  if (seq == null) return null
  if (!Number.isSafeInteger(seq) || seq < 1) return 'seq is a whole number from 1 on'
  return batch == null || isStamp(batch) ? null : 'batch has an id, an index and how many there are'
}

/** The records that count from now on: this one, or all of the batch that it completes, or none yet. */
export function gather(gathering: Gathering, record: SessionRecord, line: number): readonly SessionRecord[] {
  if (record.seq != null && record.batch != null) return gatherPart(gathering, record, line)
  closeBatch(gathering)
  count(gathering, record, line)
  return [record]
}

/** No more parts of the batch will come. */
export function closeBatch(gathering: Gathering): void {
  const { open } = gathering
  if (open === null) return
  gathering.open = null
  const why = `${open.records.length} of the ${open.of} records appended together are there; none of them counts`
  gathering.damage.push({ kind: 'incomplete-batch', line: open.lines[0] ?? 0, why })
}

const NONE: readonly SessionRecord[] = []

function gatherPart(gathering: Gathering, record: SessionRecord, line: number): readonly SessionRecord[] {
  const { batch: stamp } = record
  if (stamp === undefined) return NONE
  const batch = batchFor(gathering, stamp)
  if (stamp.index !== batch.records.length || stamp.of !== batch.of) batch.isBroken = true
  batch.records.push(record)
  batch.lines.push(line)
  if (batch.isBroken || batch.records.length < batch.of) return NONE
  gathering.open = null
  for (const [index, part] of batch.records.entries()) count(gathering, part, batch.lines[index] ?? line)
  return batch.records
}

/** A first part always begins anew: whoever appends after an incomplete batch goes on from the last whole one. */
function batchFor(gathering: Gathering, { id, index, of }: BatchStamp): OpenBatch {
  const { open } = gathering
  if (open !== null && open.id === id && index > 0) return open
  closeBatch(gathering)
  const batch: OpenBatch = { id, of, lines: [], records: [], isBroken: false }
  gathering.open = batch
  return batch
}

/** A record keeps its place whatever its position says; the log goes on from the highest. */
function count(gathering: Gathering, record: SessionRecord, line: number): void {
  const expected = gathering.position + 1
  const seq = record.seq ?? expected
  if (seq !== expected) {
    const why = `the record says position ${seq} where ${expected} comes next`
    gathering.damage.push({ kind: 'out-of-order', line, why })
  }
  gathering.position = Math.max(gathering.position, seq)
}

function isStamp(stamp: unknown): stamp is BatchStamp {
  if (!isObject(stamp) || typeof stamp.id !== 'string') return false
  const index = Number.isSafeInteger(stamp.index) ? Number(stamp.index) : -1
  return Number.isSafeInteger(stamp.of) && index >= 0 && index < Number(stamp.of)
}
