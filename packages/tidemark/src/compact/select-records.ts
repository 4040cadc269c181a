/** Selects the records of a log to compact, and builds the engine's compaction request from the options of `compactLog`. */
import type { CompactionOptions } from '@tidemark/core/compaction/plan-compaction'
import { findCutPointAtOrBefore } from '@tidemark/core/context/flatten-context'
import { isKnownRecord, type KnownRecord, type SessionRecord } from '@tidemark/core/log/record'
import { buildSessionLog } from '@tidemark/core/log/session-log'
import type { RecordWithLine } from '@tidemark/wire/readers/log-reader'
import type { LogContents } from '../logs/read-log.ts'
import type { CompactLogOptions, CompactLogRefusal } from './compact-report.ts'

/**
 * Selects the records to compact: those up to `options.at`, by default all. If the caller gives a journal, all records
 * are selected, because the journal contains the whole log.
 */
export function selectLogCut(
  all: readonly SessionRecord[],
  { at, journal }: CompactLogOptions,
): LogCompactionCut | CompactLogRefusal {
  const named = at === undefined ? null : findRecordByIdStart(all, at)
  if (named?.ok === false) return { ok: false, reason: 'bad-record', message: `${named.why}.` }
  const cut = cutLogAtRecord(all, named === null ? null : named.uuid)
  if (!cut.ok)
    return { ok: false, reason: 'empty-conversation', message: `There is nothing to compact: ${cut.why}.` }
  if (journal !== undefined) return { ...cut, records: all, movedFrom: null, leftOut: 0 }
  return { ...cut, records: renumberRecords(cut.records) }
}

type CompactionRequestResult =
  | { readonly ok: true; readonly asked: CompactionOptions }
  | { readonly ok: false; readonly message: string }

export function parseCompactionOptions(
  all: readonly SessionRecord[],
  options: CompactLogOptions,
): CompactionRequestResult {
  const { from, upTo, instructions, target } = options
  const given = from ?? upTo
  const pivot = given === undefined ? null : findRecordByIdStart(all, given)
  if (pivot?.ok === false) return { ok: false, message: `${pivot.why}.` }
  return {
    ok: true,
    asked: {
      trigger: 'manual',
      cause: 'person',
      ...(pivot === null ? {} : { form: from === undefined ? 'up_to' : 'from', pivot: pivot.uuid }),
      ...(instructions === undefined ? {} : { instructions }),
      ...(target === undefined ? {} : { target }),
    },
  }
}

// The part of a log up to a requested record. It may end earlier, because a cut must not split a response.

export interface LogCompactionCut {
  readonly ok: true
  readonly records: readonly SessionRecord[]
  /** The uuid of the last conversation record before the cut. */
  readonly at: string
  /** The uuid of the requested record if the log could not be cut after it and was cut earlier; otherwise null. */
  readonly movedFrom: string | null
  /** Number of records after the cut, which are left out. */
  readonly leftOut: number
}

/**
 * Cuts the log after the record with this uuid, or after the newest record if `uuid` is null. The cut moves back if it
 * would split a response.
 */
export function cutLogAtRecord(
  records: readonly SessionRecord[],
  uuid: string | null,
): LogCompactionCut | { readonly ok: false; readonly why: string } {
  const asked = uuid === null ? records.length - 1 : records.findIndex((record) => record.uuid === uuid)
  if (asked < 0)
    return { ok: false, why: uuid === null ? NOTHING_TO_COMPACT : `no record has the id ${uuid}` }
  const branch = findBranchWith(records, asked)
  const position = branch.filter(({ index }) => index <= asked).length
  const cut = findLegalCut(branch, position)
  const last = branch[cut - 1]
  if (last === undefined) return { ok: false, why: NOTHING_TO_COMPACT }
  const isMoved = branch.slice(cut, position).some(({ record }) => isMessage(record))
  const end = uuid === null && !isMoved ? records.length : last.index + 1
  return {
    ok: true,
    records: records.slice(0, end),
    at: last.record.uuid,
    movedFrom: isMoved ? (records[asked]?.uuid ?? last.record.uuid) : null,
    leftOut: records.length - end,
  }
}

const NOTHING_TO_COMPACT = 'nothing that was said stands before the place to compact at'

/**
 * Finds the last valid cut at or before `position`. The first search considers the records after the cut, so that no
 * response is split. The second search ignores them, because a tool call before the cut has no result if its result
 * comes after the cut.
 */
function findLegalCut(branch: readonly BranchRecord[], position: number): number {
  const records = branch.map(({ record }) => record)
  const cut = findCutPointAtOrBefore(records, position)
  return findCutPointAtOrBefore(records.slice(0, cut), cut)
}

interface BranchRecord {
  readonly record: KnownRecord
  readonly index: number
}

/**
 * Returns the current branch of the conversation. If a rewind removed the requested record, returns the branch that
 * contained that record.
 */
function findBranchWith(records: readonly SessionRecord[], asked: number): readonly BranchRecord[] {
  const whole = listBranch(records)
  const isOn = whole.some(({ index }) => index === asked) || !isConversation(records[asked])
  return isOn ? whole : listBranch(records.slice(0, asked + 1))
}

function listBranch(records: readonly SessionRecord[]): readonly BranchRecord[] {
  return [...buildSessionLog(records).branch].flatMap((index) => {
    const record = records[index]
    return record !== undefined && isKnownRecord(record) ? [{ record, index }] : []
  })
}

function isConversation(record: SessionRecord | undefined): boolean {
  return record !== undefined && isKnownRecord(record) && record.isSidechain !== true
}

function isMessage({ type }: KnownRecord): boolean {
  return type === 'user' || type === 'assistant'
}

type RecordLookup =
  | { readonly ok: true; readonly uuid: string }
  | { readonly ok: false; readonly why: string }

/**
 * Minimum number of characters when a record is named by the beginning of its id. Fewer are refused as a likely
 * mistake.
 */
const MIN_PREFIX_LENGTH = 6
const MAX_LISTED = 5

/** Finds the record with the given id, or the only record whose id begins with `given`. */
export function findRecordByIdStart(records: Iterable<SessionRecord>, given: string): RecordLookup {
  const begun = new Set<string>()
  for (const { uuid } of records) {
    if (uuid === given) return { ok: true, uuid }
    if (given.length >= MIN_PREFIX_LENGTH && uuid?.startsWith(given) === true) begun.add(uuid)
  }
  const [only] = begun
  if (only === undefined) return { ok: false, why: `no record has the id ${given}` }
  if (begun.size === 1) return { ok: true, uuid: only }
  const named = [...begun].slice(0, MAX_LISTED).join(', ')
  return { ok: false, why: `${begun.size} records have an id that begins with ${given}: ${named}` }
}

/**
 * Returns all records of a log in line order, including those of subagents in the same file, which are marked as
 * `isSidechain`.
 */
export function listRecordsInLineOrder({ path, records, agents }: LogContents): readonly SessionRecord[] {
  const beside = agents
    .filter((agent) => agent.path === path)
    .flatMap((agent) => agent.records)
    .map(({ record, line }) => ({ record: { ...record, isSidechain: true }, line }))
  if (beside.length === 0) return records.map(({ record }) => record)
  const byLine = (one: RecordWithLine, other: RecordWithLine): number => one.line - other.line
  return [...records, ...beside].toSorted(byLine).map(({ record }) => record)
}

/**
 * Returns the records as a separate log, with new sequence numbers. The `batch` field is removed from records whose
 * batch is incomplete.
 */
export function renumberRecords(records: readonly SessionRecord[]): readonly SessionRecord[] {
  const counts = new Map<string, number>()
  for (const { batch } of records)
    if (batch !== undefined) counts.set(batch.id, (counts.get(batch.id) ?? 0) + 1)
  return records.map((record, index) => {
    const { seq, batch } = record
    const isTorn = batch !== undefined && counts.get(batch.id) !== batch.of
    const moved = seq === undefined || seq === index + 1 ? record : { ...record, seq: index + 1 }
    if (!isTorn) return moved
    const { batch: _, ...rest } = moved
    return rest as SessionRecord
  })
}
