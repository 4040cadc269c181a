/**
 * Reads the lines of a session log, Tidemark's own or another tool's, into records. Unreadable lines are reported as
 * damage; only a log of a newer format version throws.
 */
import {
  abandonBatch,
  addRecordToBatch,
  type BatchState,
  checkBatchStamp,
  createBatchState,
  type Damage,
  type DamageKind,
  type PositionedRecord,
} from './batch.ts'
import {
  decodeRecord,
  isLogHeader,
  type ParsedLine,
  readLogVersion,
  UPCASTS,
  type Upcast,
  upcastLine,
} from './decode-record.ts'
import { findRawBlockTexts, isNestedTooDeep, isObject, MAX_JSON_DEPTH, parseJson } from './json.ts'
import type { SessionRecord } from './record.ts'

export interface LogLineReader {
  /** Reads the next line, without its newline. Returns the records that are now valid: none while a batch is incomplete. */
  readLine(line: string): readonly SessionRecord[]
  /** Ends the reading; `rest` is the text after the last newline. Returns the remaining records and all damage. */
  finish(rest?: string): LogReadResult
  /** Line number of each record that the last `readLine` or `finish` call returned. */
  readonly lineNumbers: readonly number[]
}

export interface LogReadResult {
  readonly records: readonly SessionRecord[]
  /** Position of the last valid record. The records of another tool's log are counted from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** Format version in the newest header; null for another tool's log, or if no header is readable. */
  readonly version: number | null
  /** False if no line is a record or a header and the file does not look like the torn start of a log. */
  readonly isLog: boolean
  /** The place from which a later reading can continue; null if it has to start over. */
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
  /** The place in the log to start at; the beginning by default. */
  readonly start?: LogResumePoint
  /** Return only the records after this position; all records by default. */
  readonly from?: number
}

interface ReaderState {
  readonly upcasts: readonly Upcast[]
  readonly gathering: BatchState
  readonly from: number
  lines: readonly number[]
  line: number
  version: number | null
  isRecognised: boolean
  isForeign: boolean
}

const NO_RECORDS: readonly PositionedRecord[] = []

export function createLogLineReader(options: LogReaderOptions = {}): LogLineReader {
  const { upcasts = UPCASTS, start, from = 0 } = options
  const reading: ReaderState = {
    upcasts,
    gathering: createBatchState(start?.position ?? 0),
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
  // A later reading cannot start inside a batch.
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

/** Reads one line. `whenUnreadable` is the damage to report if the line is not JSON: only the last line can be torn. */
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
  // After a crash, a log may begin with part of a JSON object or with a page of NUL bytes that was never written.
  const looksTorn = line.startsWith('\0') || line.trimStart().startsWith('{')
  if (!looksTorn) reading.isForeign = true
  reportDamage(reading, whenUnreadable, describeUnreadableLine(line, whenUnreadable))
  // A hole of NUL bytes may have replaced the newline before a complete line, so the text after the hole is tried too.
  const afterHole = line.slice(line.lastIndexOf('\0') + 1)
  const rescued = afterHole === line ? undefined : parseJson(afterHole)
  return isObject(rescued) ? readValue(reading, rescued, afterHole) : NO_RECORDS
}

function describeUnreadableLine(line: string, kind: DamageKind): string {
  if (line.includes('\0'))
    return 'the line has NUL bytes, as a page lost in a crash leaves; what stands before them is set aside'
  const what = kind === 'torn-line' ? 'the last line was cut off' : 'the line is not JSON'
  return `${what}; it is set aside`
}

function readValue(reading: ReaderState, value: unknown, line: string): readonly PositionedRecord[] {
  if (!isObject(value)) return rejectLine(reading, 'a record is a JSON object; the line is set aside')
  // Each level of nesting takes at least two characters, so most lines are too short to exceed the depth limit.
  if (line.length > 2 * MAX_JSON_DEPTH && isNestedTooDeep(value)) return rejectLine(reading, TOO_DEEP)
  if (isLogHeader(value)) return readHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? checkBatchStamp(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return rejectLine(reading, `${why}; the line is set aside`)
  reading.isRecognised = true
  const { record, note } = decoded
  if (note !== undefined) reportDamage(reading, 'bad-shape', note)
  return addRecordToBatch(
    reading.gathering,
    record.seq == null ? withRawBlocks(record, line) : record,
    reading.line,
  )
}

const TOO_DEEP = `the line is nested more than ${MAX_JSON_DEPTH} levels deep; it is set aside`

/**
 * Adds the exact text of blocks that parse and stringify would change, for a line of another tool. Tidemark's own
 * lines already contain it.
 */
function withRawBlocks(record: SessionRecord, line: string): SessionRecord {
  if (JSON.stringify(record) === line) return record
  const rawBlocks = findRawBlockTexts(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** Reads a header line. A header with the version already in use may be a copied line, so it does not end an open batch. */
function readHeader(reading: ReaderState, header: ParsedLine): readonly PositionedRecord[] {
  const version = readLogVersion(header, reading.upcasts)
  if (version === null)
    return rejectLine(
      reading,
      'a header names the format tidemark-session and its version; the line is set aside',
    )
  const { gathering } = reading
  const waiting = version === reading.version ? NO_RECORDS : abandonBatch(gathering)
  if (gathering.openBatch !== null) gathering.openBatch.isPastHeader = true
  reading.version = version
  reading.isRecognised = true
  return waiting
}

function rejectLine(reading: ReaderState, why: string): readonly PositionedRecord[] {
  reading.isForeign = true
  reportDamage(reading, 'bad-shape', why)
  return NO_RECORDS
}

function reportDamage(reading: ReaderState, kind: DamageKind, why: string): void {
  reading.gathering.damage.push({ kind, line: reading.line, why })
}
