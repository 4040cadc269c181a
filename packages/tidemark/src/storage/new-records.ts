/** From new records to the lines of a log: checked, stamped with their positions, one line each. */
import {
  type Decoded,
  decodeRecord,
  firstNonJson,
  isKnown,
  isObject,
  isTooDeep,
  MAX_DEPTH,
  type NewRecord,
  type SessionRecord,
  TidemarkError,
} from '@tidemark/core'
import { show } from '../platform/argument-errors.ts'
import { isPlain } from './journal-lock.ts'

/** Records as they will be written, but for their positions. Taken when they are handed in: they may change later. */
export interface Draft {
  readonly record: SessionRecord
  readonly json: string
}

/** Refuses what would not come back from the log as it is. */
export function draftsOf(records: readonly NewRecord[]): readonly Draft[] {
  if (!Array.isArray(records)) throw notAList(records)
  return Array.from(records, (given: unknown, index) => {
    const read = readNewRecord(given)
    if (!read.ok) throw badRecord(index, read.why)
    return { record: read.record, json: JSON.stringify(read.record) }
  })
}

/** The lines' text and the records as they read back, from `position` on. A lone record needs no batch. */
export function stamp(
  drafts: readonly Draft[],
  position: number,
): { readonly text: string; readonly records: readonly SessionRecord[] } {
  const id = drafts.find(({ record }) => record.uuid !== undefined)?.record.uuid ?? `batch-${position + 1}`
  let text = ''
  const records = drafts.map(({ record, json }, index) => {
    const seq = position + index + 1
    const place = drafts.length === 1 ? { seq } : { seq, batch: { id, index, of: drafts.length } }
    text += `${JSON.stringify(place).slice(0, -1)},${json.slice(1)}\n`
    return { ...record, ...place }
  })
  return { text, records }
}

function notAList(given: unknown): TidemarkError {
  const message = `Records are appended as a list, and ${show(given)} is none. Nothing was written.`
  return new TidemarkError('bad-record', message)
}

function badRecord(index: number, why: string): TidemarkError {
  return new TidemarkError('bad-record', `Record ${index} cannot be appended: ${why}. Nothing was written.`, {
    details: { index, why },
  })
}

// What a record has to be to be appended: whole, and the same when it is read back. Reading takes less.

type Fields = { readonly [field: string]: unknown }

/** The record without position and batch, which are the journal's to give; or why it cannot be appended. */
export function readNewRecord(given: unknown): Decoded {
  if (!isObject(given)) return { ok: false, why: 'a record is an object' }
  const { seq: _seq, batch: _batch, ...fields } = given
  if (isTooDeep(fields)) return { ok: false, why: TOO_DEEP }
  const decoded = decodeRecord(fields)
  if (!decoded.ok) return decoded
  const why = problemOf(decoded.record, fields) ?? noteProblem(decoded.note)
  return why === null ? decoded : { ok: false, why }
}

const TOO_DEEP = `it is nested more than ${MAX_DEPTH} levels deep, or in itself`

function problemOf(record: SessionRecord, fields: Fields): string | null {
  if (record.type === 'tidemark') return 'the type tidemark is for headers'
  return linkProblem(record, fields) ?? rawBlocksProblem(fields.rawBlocks) ?? valueProblem(fields)
}

function noteProblem(note: string | undefined): string | null {
  return note === undefined ? null : `it would not be read back as it is: ${note}`
}

/** A line of another tool may lack them; one of ours never does. */
function linkProblem(record: SessionRecord, { parentUuid, timestamp, sessionId }: Fields): string | null {
  if (!isKnown(record)) return null
  if (parentUuid === undefined) return 'parentUuid is the uuid it follows, or null where it follows nothing'
  if (!isText(timestamp)) return 'timestamp is when it was made, as a text'
  return isText(sessionId) ? null : 'sessionId is the session it was made in, as a text'
}

function rawBlocksProblem(rawBlocks: unknown): string | null {
  if (rawBlocks === undefined) return null
  const isGood = Array.isArray(rawBlocks) && Array.from(rawBlocks).every(isRawBlock)
  return isGood ? null : 'rawBlocks is a list of texts, each with the index of its block'
}

function isRawBlock(value: unknown): boolean {
  if (!isObject(value) || typeof value.text !== 'string') return false
  return Number.isSafeInteger(value.index) && Number(value.index) >= 0
}

function valueProblem(fields: Fields): string | null {
  const path = firstNonJson(fields)
  return path === null ? null : `${path} is not a JSON value`
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

// What callers hand in, checked at the door: a wrong argument is told at once and in words.

/** Any number: one that the log is not at is a conflict, not a mistake. */
export function checkAfter(after: unknown): void {
  if (typeof after === 'number') return
  refuse('after', after, 'the position to append behind, 0 in an empty session')
}

export function checkFrom(from: unknown): void {
  if (Number.isSafeInteger(from) && Number(from) >= 0) return
  refuse('from', from, 'the position to read on from, a whole number from 0 on')
}

export function checkVisit(visit: unknown): void {
  if (typeof visit !== 'function') refuse('visit', visit, 'a function that takes records')
}

/** Written into the lock: a name that nobody could read there would make the lock worthless. */
export function checkProgram(program: string): string {
  if (isPlain(program)) return program
  return refuse('program', program, 'a name of at most 200 characters, all on one line')
}

/** Thirty years. It is added to a time, which has an end. */
const LONGEST_MS = 1e12

export function checkStaleLock(ms: number): number {
  if (typeof ms === 'number' && ms >= 1 && ms <= LONGEST_MS) return ms
  return refuse('staleLockMs', ms, `a number of milliseconds from 1 to ${LONGEST_MS}`)
}

function refuse(name: string, given: unknown, expected: string): never {
  const message = `${name} is ${show(given)}: it has to be ${expected}.`
  throw new TidemarkError('bad-option', message, { details: { name, given } })
}
