/**
 * Reads the lines of a log, of any format version, into records. An invalid line and an incomplete batch are left out and
 * reported as damage with the reason; what comes after them is still read.
 */
import { TidemarkError } from '../errors.ts'
import { decodeRecord, type ParsedLine, withReplyReport } from './decode-record.ts'
import { findUnstableBlockTexts, isNestedTooDeep, isObject, MAX_JSON_DEPTH, parseJson } from './json.ts'
import type { BatchStamp, SessionRecord } from './record.ts'
import type { ReplyReportReader } from './reply-report.ts'

/** A kind of damage in a log. Damage is always reported and never fatal. */
export type DamageKind =
  | 'torn-line' // The last line of the log was cut off.
  | 'bad-json' // A line is not JSON.
  | 'bad-shape' // A line is JSON, but not a valid record of its type.
  | 'incomplete-batch' // Records of a batch are missing, so none of its records is used.
  | 'out-of-order' // The `seq` of a record does not follow that of the record before.
  | 'missing-parent'
  | 'duplicate-uuid'
  | 'cyclic-parent'
  | 'missing-preserved' // A boundary names a kept record that is not in the log.
  | 'missing-anchor' // A boundary names an anchor for its kept records that is not in the log.
  | 'boundary-without-summary'
  | 'bad-undo' // An undo names something other than the newest rewrite that is in effect.

export interface Damage {
  readonly kind: DamageKind
  /** Line number in the log file, from 1; 0 if the damage cannot be assigned to a line. */
  readonly line: number
  /** A sentence that says what was wrong with the log and what was done about it. */
  readonly why: string
  /** uuid of the damaged record, if there is one. */
  readonly uuid?: string
}

// Format versions. The first line of a log names its format version. Lines of an older version are converted each time
// they are read; the file is never rewritten.

/** The header line, which names the format version. It is the first line of a log, and is not a record. */
interface LogHeader {
  readonly type: 'tidemark'
  readonly format: 'tidemark-session'
  readonly version: number
  readonly sessionId: string
  readonly timestamp: string
}

/** Converts a parsed log line from one format version to the next. */
export type Upcast = (line: ParsedLine) => ParsedLine

/**
 * Conversions between format versions: `UPCASTS[0]` converts version 1 to 2. The current version is their number plus
 * one.
 */
const UPCASTS: readonly Upcast[] = []

export const LOG_VERSION: number = UPCASTS.length + 1

export function createLogHeader(sessionId: string, timestamp: string): LogHeader {
  return { type: 'tidemark', format: 'tidemark-session', version: LOG_VERSION, sessionId, timestamp }
}

export function isHeaderLine(line: ParsedLine): boolean {
  return line.type === 'tidemark'
}

/**
 * Returns the format version named in a header line, or null if the header is invalid. Throws `newer-format` if the
 * version is newer than this code supports.
 */
export function readLogVersion(header: ParsedLine, upcasts: readonly Upcast[] = UPCASTS): number | null {
  const { format, version } = header
  if (format !== 'tidemark-session' || !isVersionNumber(version)) return null
  const known = upcasts.length + 1
  if (version <= known) return version
  throw new TidemarkError(
    'newer-format',
    `This session was written in format version ${version}, and this tidemark reads up to version ${known}: update tidemark to open it.`,
    { details: { version, known } },
  )
}

/** Converts a parsed log line from format version `version` to the current version. */
export function upcastLine(line: ParsedLine, version: number, upcasts: readonly Upcast[] = UPCASTS): unknown {
  let present: unknown = line
  for (let step = version; step <= upcasts.length && isObject(present); step += 1)
    present = upcasts[step - 1]?.(present)
  return present
}

function isVersionNumber(version: unknown): version is number {
  return Number.isSafeInteger(version) && Number(version) >= 1
}

// Reads the lines of a session log into records. Tidemark or another tool may have written the log. Unreadable lines
// are reported as damage; only a log of a newer format version throws.

export interface LogLineReader {
  /** Reads the next line, without newline. Returns the records that are valid now; an incomplete batch is held back. */
  readLine(line: string): readonly SessionRecord[]
  /** Ends reading. `rest` is the text after the last newline. Returns the records held back so far, and all damage. */
  finish(rest?: string): LogReadResult
  /** Line number of each record that the last `readLine` or `finish` call returned. */
  readonly lineNumbers: readonly number[]
}

export interface LogReadResult {
  readonly records: readonly SessionRecord[]
  /** Position in the log of the last valid record. Records of other tools have no position and are numbered from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** Format version in the newest header; null for another tool's log, or if no header is readable. */
  readonly version: number | null
  /** False if the file is not a log: it has no record and no header, and does not look like a log that was cut off. */
  readonly isLog: boolean
  /** The place in the log from which a later read can continue; null if a later read must start at the beginning. */
  readonly resume: LogResumePoint | null
}

/** A place between two lines of a log, with the state that a reader needs to continue from there. */
export interface LogResumePoint {
  /** Number of lines before this place in the log. */
  readonly line: number
  readonly position: number
  readonly version: number | null
}

export interface LogReaderOptions {
  readonly upcasts?: readonly Upcast[]
  /** The place in the log to start reading at. Default: the beginning. */
  readonly start?: LogResumePoint
  /** Return only the records after this position in the log. Default: all records. */
  readonly from?: number
  /** Keep the exact text of blocks (`rawBlocks`), which only requests need; false reads faster. Default: true. */
  readonly keepsRawBlocks?: boolean
  /** Reads what the provider reported with a response. Default: records have only the provider's own fields. */
  readonly readReport?: ReplyReportReader
}

interface ReaderState {
  readonly readReport: ReplyReportReader | undefined
  readonly keepsRawBlocks: boolean
  readonly upcasts: readonly Upcast[]
  readonly gathering: LogReadState
  readonly from: number
  lines: readonly number[]
  line: number
  version: number | null
  isRecognised: boolean
  isForeign: boolean
}

const NO_RECORDS: readonly PositionedRecord[] = []

/** Creates a reader that is given one log line by line. `readLine` throws `newer-format` at the header of a newer version. */
export function createLogLineReader(options: LogReaderOptions = {}): LogLineReader {
  const { upcasts = UPCASTS, start, from = 0, keepsRawBlocks = true, readReport } = options
  const reading: ReaderState = {
    readReport,
    keepsRawBlocks,
    upcasts,
    gathering: createLogReadState(start?.position ?? 0),
    from,
    lines: [],
    line: start?.line ?? 0,
    version: start?.version ?? null,
    isRecognised: start !== undefined,
    isForeign: false,
  }
  return {
    readLine: (line) => selectRecords(reading, readLine(reading, line, 'bad-json')),
    finish: (rest = '') => finishLog(reading, rest),
    get lineNumbers() {
      return reading.lines
    },
  }
}

function selectRecords(reading: ReaderState, counted: readonly PositionedRecord[]): readonly SessionRecord[] {
  const given = counted.filter(({ position }) => position > reading.from)
  reading.lines = given.map(({ line }) => line)
  return given.map(({ record }) => record)
}

function finishLog(reading: ReaderState, rest: string): LogReadResult {
  const { gathering, line } = reading
  // A later read cannot start inside a batch.
  const canResume = rest === '' && reading.isRecognised && gathering.openBatch === null
  const resume = canResume ? { line, position: gathering.position, version: reading.version } : null
  const records = selectRecords(reading, [
    ...readLine(reading, rest, 'torn-line'),
    ...abandonBatch(gathering),
  ])
  const { position, damage } = gathering
  const { version, isRecognised, isForeign } = reading
  return { records, position, damage, version, isLog: isRecognised || !isForeign, resume }
}

/** Reads one line. `whenUnreadable` is the damage to report if the line is not JSON; only a last line is `torn-line`. */
function readLine(
  reading: ReaderState,
  text: string,
  whenUnreadable: DamageKind,
): readonly PositionedRecord[] {
  reading.line += 1
  const line = reading.line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
  const value = parseJson(line)
  if (value !== undefined) return readValue(reading, value, line)
  if (line.trim() === '') return NO_RECORDS
  // After a crash, a log may begin with an incomplete JSON object or with NUL bytes. Such a file still counts as a log.
  const looksTorn = line.startsWith('\0') || line.trimStart().startsWith('{')
  if (!looksTorn) reading.isForeign = true
  reportDamage(reading, whenUnreadable, describeUnreadableLine(line, whenUnreadable))
  // After a crash, NUL bytes may have replaced the newline before a complete line, so the text after them is parsed
  // too.
  const afterHole = line.slice(line.lastIndexOf('\0') + 1)
  const rescued = afterHole === line ? undefined : parseJson(afterHole)
  return isObject(rescued) ? readValue(reading, rescued, afterHole) : NO_RECORDS
}

function describeUnreadableLine(line: string, kind: DamageKind): string {
  if (line.includes('\0'))
    return 'the line has NUL bytes, as a page lost in a crash leaves; what precedes them is left out'
  const what = kind === 'torn-line' ? 'the last line was cut off' : 'the line is not JSON'
  return `${what}; it is left out`
}

function readValue(reading: ReaderState, value: unknown, line: string): readonly PositionedRecord[] {
  if (!isObject(value)) return skipLine(reading, 'a record is a JSON object; the line is left out')
  // Each level of nesting takes at least two characters, so most lines are too short to exceed the depth limit.
  if (line.length > 2 * MAX_JSON_DEPTH && isNestedTooDeep(value)) return skipLine(reading, TOO_DEEP)
  if (isHeaderLine(value)) return readHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? findSeqOrBatchProblem(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return skipLine(reading, `${why}; the line is left out`)
  reading.isRecognised = true
  const { readReport } = reading
  const exact = reading.keepsRawBlocks ? withRawBlocks(decoded.record, line) : decoded.record
  const { record, note } = readReport === undefined ? { record: exact } : withReplyReport(exact, readReport)
  const notes = [note, decoded.note].filter((text) => text !== undefined)
  if (notes.length > 0) reportDamage(reading, 'bad-shape', notes.join('; '))
  return addNextRecord(reading.gathering, withoutForeignBatch(record), reading.line)
}

const TOO_DEEP = `the line is nested more than ${MAX_JSON_DEPTH} levels deep; it is left out`

/**
 * For a log line of another tool: adds the exact JSON text of each block that parse and stringify would change.
 * Tidemark's own lines already contain these texts.
 */
function withRawBlocks(record: SessionRecord, line: string): SessionRecord {
  if (record.seq != null || JSON.stringify(record) === line) return record
  const rawBlocks = findUnstableBlockTexts(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** Reads a header line. If its version is already in use, it may be a duplicate, so an incomplete batch may go on. */
function readHeader(reading: ReaderState, header: ParsedLine): readonly PositionedRecord[] {
  const version = readLogVersion(header, reading.upcasts)
  if (version === null)
    return skipLine(
      reading,
      'a header names the format tidemark-session and its version; the line is left out',
    )
  const { gathering } = reading
  const waiting = version === reading.version ? NO_RECORDS : abandonBatch(gathering)
  if (gathering.openBatch !== null) gathering.openBatch.isPastHeader = true
  reading.version = version
  reading.isRecognised = true
  return waiting
}

function skipLine(reading: ReaderState, why: string): readonly PositionedRecord[] {
  reading.isForeign = true
  reportDamage(reading, 'bad-shape', why)
  return NO_RECORDS
}

function reportDamage(reading: ReaderState, kind: DamageKind, why: string): void {
  reading.gathering.damage.push({ kind, line: reading.line, why })
}

// Batches: log records that were appended together. A batch is valid only if all of its records are present, so a log
// that was cut off at any byte never yields half a batch. An incomplete batch is left out and reported as damage.

/** State of reading a log: the damage so far, the position, and the incomplete batch. Updated in place with each record. */
export interface LogReadState {
  readonly damage: Damage[]
  /** Position in the log of the last valid record. */
  position: number
  openBatch: OpenBatch | null
}

/**
 * A valid record with its position in the log. The position is the record's `seq`, or the next free position if it has
 * no `seq`.
 */
export interface PositionedRecord extends NumberedRecord {
  readonly position: number
}

/** Starts reading after `position`, the position of the last record that was read before. */
export function createLogReadState(position: number): LogReadState {
  return { damage: [], position, openBatch: null }
}

/** Returns why a record's `seq` or `batch` is invalid, or null if both are valid. Without `seq`, `batch` is not checked. */
export function findSeqOrBatchProblem({ seq, batch }: SessionRecord): string | null {
  if (seq == null) return null
  if (!Number.isSafeInteger(seq) || seq < 1) return 'seq is a whole number from 1 on'
  return batch == null || isBatchStamp(batch) ? null : 'batch has an id, an index and how many there are'
}

/**
 * Returns the record without its `batch` field if that is not the stamp of a batch. Records of other tools may use a
 * field of this name for anything.
 */
function withoutForeignBatch(record: SessionRecord): SessionRecord {
  if (record.batch === undefined || isBatchStamp(record.batch)) return record
  const { batch: _, ...rest } = record
  return rest as SessionRecord
}

/**
 * Adds the next record of the log. Returns the records that are valid now: this record, all records of the batch that
 * it completes, or none if its batch is still incomplete.
 */
export function addNextRecord(
  gathering: LogReadState,
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

/**
 * Ends the incomplete batch, if there is one, and reports it as damage. Returns the records between its parts that
 * belong to no batch.
 */
export function abandonBatch(gathering: LogReadState): readonly PositionedRecord[] {
  const { openBatch } = gathering
  if (openBatch === null) return NO_RECORDS
  gathering.openBatch = null
  gathering.damage.push(describeIncompleteBatch(findLongerAttempt(openBatch), openBatch.of))
  return openBatch.otherRecords.map((line) => assignPosition(gathering, line))
}

function addPart(
  gathering: LogReadState,
  part: NumberedRecord,
  stamp: BatchStamp & { readonly seq: number },
): readonly PositionedRecord[] {
  const { openBatch, position } = gathering
  if (openBatch !== null && leavesBatchOpen(openBatch, stamp.seq - stamp.index, position)) {
    const why = 'part of an earlier batch is among the parts of this one; it is left out'
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

/**
 * Returns the records of a complete batch, and the records of no batch that were between them. The latter get positions
 * after the batch, so that the records of the batch keep the positions in their `seq`.
 */
function completeBatch(
  gathering: LogReadState,
  { parts, otherRecords }: OpenBatch,
): readonly PositionedRecord[] {
  gathering.openBatch = null
  const counted = [...parts, ...otherRecords].map((line) => assignPosition(gathering, line))
  return otherRecords.length === 0 ? counted : counted.sort((one, other) => one.line - other.line)
}

/**
 * Gives a record its position in the log. If the `seq` of the record is out of order, it is used anyway and reported as
 * damage; later records are numbered from the highest position so far.
 */
function assignPosition(gathering: LogReadState, { record, line }: NumberedRecord): PositionedRecord {
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

// The incomplete batch that is being read. The same record of a batch may occur more than once, because log lines can
// be duplicated and an interrupted writer may write its batch again. Duplicates are left out, and the newest attempt to
// write the batch is used.

/** A record with the number of its line in the log. */
interface NumberedRecord {
  readonly record: SessionRecord
  readonly line: number
}

interface OpenBatch {
  readonly id: string
  readonly of: number
  /** Position of the first record of the batch. */
  readonly first: number
  parts: NumberedRecord[]
  /** Records of an earlier attempt to write this batch. Kept while the current attempt has fewer records. */
  earlierAttempt: readonly NumberedRecord[]
  /**
   * Records of no batch, found between the records of this batch. They are returned when the batch is complete or
   * abandoned.
   */
  readonly otherRecords: NumberedRecord[]
  /** True if a record of the batch is missing. Its other records are then collected only to report them as one damage. */
  isBroken: boolean
  /** True after a header line. The lines after a header may come from another writer, which does not continue this batch. */
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
 * Returns true if the incomplete batch may still continue after a line at position `first`. It may if the line has no
 * position (another tool wrote it), or if the line duplicates one from before the batch. `last` is the last valid
 * position.
 */
function leavesBatchOpen(open: OpenBatch, first: number | null, last: number): boolean {
  if (first === null) return true
  return first <= last && first < open.first && !open.isPastHeader
}

/**
 * Returns true if a batch record belongs to another batch, or starts the same batch again with different content. In
 * both cases the batch read so far is not continued.
 */
function startsNewAttempt(open: OpenBatch, { id, index, of }: BatchStamp, record: SessionRecord): boolean {
  if (id !== open.id) return true
  const [first] = open.parts
  return index === 0 && (open.isBroken || of !== open.of || !isSameRecord(first, record))
}

/** Adds a record to the incomplete batch. Returns the damage: duplicated lines, and an earlier attempt that was given up. */
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
  const upTo = parts.length > 1 ? `, up to line ${parts.at(-1)?.line}` : ''
  const why = `${parts.length} of the ${of} records appended together are there${upTo}; none of them counts`
  return { kind: 'incomplete-batch', line: parts[0]?.line ?? 0, why }
}

/** Returns the attempt to write the batch that has more records; the current attempt if both have the same number. */
function findLongerAttempt({ parts, earlierAttempt }: OpenBatch): readonly NumberedRecord[] {
  return earlierAttempt.length > parts.length ? earlierAttempt : parts
}

function continueAttempt(open: OpenBatch, part: NumberedRecord): readonly Damage[] {
  const earlier = open.earlierAttempt[open.parts.length]
  open.parts.push(part)
  const isBehind = open.parts.length < open.earlierAttempt.length
  return isBehind && isSameRecord(earlier, part.record) ? [] : dropEarlierAttempt(open)
}

/**
 * Handles the first record of a batch when it occurs again. It is either a duplicated line or a new attempt to write
 * the batch; the lines after it show which.
 */
function restartAttempt(open: OpenBatch, part: NumberedRecord): readonly Damage[] {
  const { parts, earlierAttempt } = open
  open.earlierAttempt = findLongerAttempt(open)
  open.parts = [part]
  if (open.earlierAttempt === earlierAttempt) return parts.map(describeCopy)
  return open.earlierAttempt.length > 1 ? [] : dropEarlierAttempt(open)
}

/**
 * Handles a record that continues the earlier attempt to write the batch. The records read since that attempt are then
 * duplicated lines.
 */
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
  return { kind: 'duplicate-uuid', line, why: 'the line repeats an earlier one; it is left out' }
}

function isSameRecord(line: NumberedRecord | undefined, record: SessionRecord): boolean {
  return line !== undefined && JSON.stringify(line.record) === JSON.stringify(record)
}
