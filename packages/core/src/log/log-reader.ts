/** Reads the lines of a log, Tidemark's own or another tool's, into records and a list of damage. */
import {
  abandonBatch,
  addRecord,
  type BatchState,
  checkStamp,
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
import { findRawBlocks, isObject, isTooDeep, MAX_JSON_DEPTH, parseJson } from './json.ts'
import type { SessionRecord } from './record.ts'

export interface LogLineReader {
  /** Reads the next line, without its newline. Returns the records that are now valid: often none or one. */
  readLine(line: string): readonly SessionRecord[]
  /** Ends the reading; `rest` is the text after the last newline. Returns the last records and the damage. */
  finish(rest?: string): LogReadResult
  /** Line number of each record that the last call returned. */
  readonly lineNumbers: readonly number[]
}

export interface LogReadResult {
  readonly records: readonly SessionRecord[]
  /** Position of the last valid record. Records of another tool's log are counted from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** From the newest header; null for another tool's log, or if no header is readable. */
  readonly version: number | null
  /** False if no line is a record or header and the file does not look like the torn start of a log. */
  readonly isLog: boolean
  /** Where a later reading can continue; null if it has to start over. */
  readonly resume: LogPosition | null
}

/** A place between two lines of a log, and the state of the reading there. */
export interface LogPosition {
  /** Number of lines before it. */
  readonly line: number
  readonly position: number
  readonly version: number | null
}

export interface LogReaderOptions {
  readonly upcasts?: readonly Upcast[]
  /** Where to start; the beginning of the log by default. */
  readonly start?: LogPosition
  /** Return only records after this position; all by default. */
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
  // Inside a batch there is no place to continue from.
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

/** `whenUnreadable`: the damage if the line is not JSON. Only the last line can be torn. */
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
  // A log may begin with part of an object, or with a page that was never written, after a crash.
  const looksTorn = line.startsWith('\0') || line.trimStart().startsWith('{')
  if (!looksTorn) reading.isForeign = true
  reportDamage(reading, whenUnreadable, describeUnreadableLine(line, whenUnreadable))
  // A hole of NUL bytes may include the newline before a complete line.
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
  // Each level takes at least two characters, so most lines are too short to be too deep.
  if (line.length > 2 * MAX_JSON_DEPTH && isTooDeep(value)) return rejectLine(reading, TOO_DEEP)
  if (isLogHeader(value)) return readHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? checkStamp(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return rejectLine(reading, `${why}; the line is set aside`)
  reading.isRecognised = true
  const { record, note } = decoded
  if (note !== undefined) reportDamage(reading, 'bad-shape', note)
  return addRecord(reading.gathering, record.seq == null ? withRawBlocks(record, line) : record, reading.line)
}

const TOO_DEEP = `the line is nested more than ${MAX_JSON_DEPTH} levels deep; it is set aside`

/** A line of another tool: keeps the text of blocks that parse and stringify would change. Our own writer has done so. */
function withRawBlocks(record: SessionRecord, line: string): SessionRecord {
  if (JSON.stringify(record) === line) return record
  const rawBlocks = findRawBlocks(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** A header with the version already in use may be a copied line; it leaves an open batch unchanged. */
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
