/** Checks new records and converts them to log lines. Also checks the other arguments of journal calls. */
import type { AppendOutcome, NewRecord } from '@tidemark/core/engine/ports'
import type { WriteLock } from '@tidemark/core/engine/session-writer'
import { TidemarkError } from '@tidemark/core/errors'
import { type DecodeResult, decodeRecord, withReplyReport } from '@tidemark/core/log/decode-record'
import { findNonJsonPath, isNestedTooDeep, isObject, MAX_JSON_DEPTH } from '@tidemark/core/log/json'
import { isKnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import { formatErrorValue } from '@tidemark/core/policy/policy-fields'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { toStoredForms } from '@tidemark/wire/readers/stored-records'
import { isSafeMessageText } from './journal-lock.ts'

/** A checked copy of a new record, before the journal assigns its position. */
interface RecordDraft {
  readonly record: SessionRecord
  readonly json: string
}

/** Checks and copies new records. Throws `bad-record` for a record that the log could not return unchanged. */
export function toRecordDrafts(records: readonly NewRecord[]): readonly RecordDraft[] {
  if (!Array.isArray(records))
    throw new TidemarkError(
      'bad-record',
      `Records must be a list, found ${formatErrorValue(records)}. Nothing was written.`,
    )
  return Array.from(records, (given: unknown, index) => {
    const parsed = parseNewRecord(given)
    if (!parsed.ok) {
      const message = `Record ${index} cannot be appended: ${parsed.why}. Nothing was written.`
      throw new TidemarkError('bad-record', message, { details: { index, why: parsed.why } })
    }
    const { stored, read: record } = toStoredForms(parsed.record)
    return { record, json: JSON.stringify(stored) }
  })
}

/**
 * Assigns the positions after `position` to the records, and returns the records with their log lines. Two or more
 * records are marked as one batch.
 */
export function toLogLines(
  drafts: readonly RecordDraft[],
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

/** An append that waits until those before it are written. */
export interface WaitingAppend {
  readonly after: number
  readonly drafts: readonly RecordDraft[]
}

/**
 * Returns an `append` that checks records, and hands all appends that wait at the same time to `write` as one group, in
 * the order of the calls, so that they share one write to disk. If `write` throws, all appends of the group are
 * rejected.
 */
export function createGroupedAppend(
  inOrder: WriteLock,
  write: (group: readonly WaitingAppend[]) => Promise<readonly AppendOutcome[]>,
): (after: number, records: readonly NewRecord[]) => Promise<AppendOutcome> {
  let waiting: WaitingAppend[] = []
  let written: Promise<readonly AppendOutcome[]>
  return async (after, records) => {
    const place = waiting.push({ after, drafts: toRecordDrafts(records) }) - 1
    // The first waiting append schedules one write, which includes all appends that wait when it starts.
    if (place === 0)
      written = inOrder(async () => {
        const group = waiting
        waiting = []
        return write(group)
      })
    return (await written)[place] as AppendOutcome
  }
}

/**
 * Places waiting appends after `position`, in order. One that expects another position is refused as a conflict.
 * `outcomes`: one for each append. `text`: the lines of those that were placed. `position`: the last position after
 * them.
 */
export function placeAppends(
  appends: readonly WaitingAppend[],
  position: number,
): { readonly outcomes: readonly AppendOutcome[]; readonly text: string; readonly position: number } {
  let end = position
  let text = ''
  const outcomes = appends.map(({ after, drafts }): AppendOutcome => {
    if (after !== end) return { ok: false, reason: 'conflict', position: end }
    const lines = toLogLines(drafts, end)
    text += lines.text
    end += lines.records.length
    return { ok: true, position: end, records: lines.records }
  })
  return { outcomes, text, position: end }
}

type Fields = { readonly [field: string]: unknown }

/**
 * Checks a new record and returns it without position and batch, which the journal assigns. Stricter than the log
 * reader: every field must be present and must be the same after it is written and read again.
 */
export function parseNewRecord(given: unknown): DecodeResult {
  if (!isObject(given)) return { ok: false, why: 'a record is an object' }
  const { seq: _seq, batch: _batch, ...fields } = given
  if (isNestedTooDeep(fields)) return { ok: false, why: TOO_DEEP }
  const decoded = decodeRecord(fields)
  if (!decoded.ok) return decoded
  const why = findProblem(decoded.record, fields, decoded.note)
  return why === null ? decoded : { ok: false, why }
}

const TOO_DEEP = `it is nested more than ${MAX_JSON_DEPTH} levels deep, or in itself`

function findProblem(record: SessionRecord, fields: Fields, repaired: string | undefined): string | null {
  if (record.type === 'tidemark') return 'the type tidemark is for headers'
  const problem = linkProblem(record, fields) ?? rawBlocksProblem(fields.rawBlocks)
  if (problem !== null) return problem
  const path = findNonJsonPath(fields)
  if (path !== null) return `${path} is not a JSON value`
  const note = repaired ?? withReplyReport(record, readAnthropicReport).note
  return note === undefined ? null : `it would not be read back as it is: ${note}`
}

/**
 * Checks the fields that link a record to its session: parent, timestamp and session id. Record types of other tools
 * may lack them.
 */
function linkProblem(record: SessionRecord, { parentUuid, timestamp, sessionId }: Fields): string | null {
  if (!isKnownRecord(record)) return null
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

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

/**
 * Throws `bad-option` unless `after` is a number. Whether it equals the last position in the log is checked later, by
 * the append.
 */
export function checkAppendPosition(after: unknown): void {
  if (typeof after === 'number') return
  throwBadOption('after', after, 'the position to append after, 0 in an empty session')
}

export function checkReadPosition(from: unknown): void {
  if (Number.isSafeInteger(from) && Number(from) >= 0) return
  throwBadOption('from', from, 'the position to read from, an integer from 0')
}

export function checkVisitor(visit: unknown): void {
  if (typeof visit !== 'function') throwBadOption('visit', visit, 'a function that takes records')
}

/**
 * Checks the program name and returns it. It is part of the lock file, which a name with control characters would make
 * unreadable. Throws `bad-option`.
 */
export function checkProgramName(program: string): string {
  if (isSafeMessageText(program)) return program
  return throwBadOption('program', program, 'a name of at most 200 characters, all on one line')
}

/** Upper limit of `staleLockMs`, about 30 years; a larger number could exceed the range of dates. */
const MAX_STALE_LOCK_MS = 1e12

export function checkStaleLockMs(ms: number): number {
  if (typeof ms === 'number' && ms >= 1 && ms <= MAX_STALE_LOCK_MS) return ms
  return throwBadOption('staleLockMs', ms, `a number of milliseconds from 1 to ${MAX_STALE_LOCK_MS}`)
}

function throwBadOption(name: string, given: unknown, expected: string): never {
  const message = `${name} is ${formatErrorValue(given)}; expected ${expected}.`
  throw new TidemarkError('bad-option', message, { details: { name, given } })
}
