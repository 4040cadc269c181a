/** Reads the lines of a log, Tidemark's own or another tool's, into records and a list of damage. */
import {
  type Counted,
  closeBatch,
  type Damage,
  type DamageKind,
  type Gathering,
  gather,
  gatheringFrom,
  stampProblem,
} from './batch.ts'
import {
  decodeRecord,
  isHeader,
  type ParsedLine,
  UPCASTS,
  type Upcast,
  upcastLine,
  versionOf,
} from './decode-record.ts'
import { isObject, isTooDeep, MAX_DEPTH, rawBlocksIn, readJson } from './json.ts'
import type { SessionRecord } from './record.ts'

export interface LineReader {
  /** Reads the next line, without its newline. Returns the records that are now valid: often none or one. */
  take(line: string): readonly SessionRecord[]
  /** Ends the reading; `rest` is the text after the last newline. Returns the last records and the damage. */
  end(rest?: string): LogEnd
  /** Line number of each record that the last call returned. */
  readonly lines: readonly number[]
}

export interface LogEnd {
  readonly records: readonly SessionRecord[]
  /** Position of the last valid record. Records of another tool's log are counted from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** From the newest header; null for another tool's log, or if no header is readable. */
  readonly version: number | null
  /** False if no line is a record or header and the file does not look like the torn start of a log. */
  readonly isLog: boolean
  /** Where a later reading can continue; null if it has to start over. */
  readonly resume: ReadingStart | null
}

/** A place between two lines of a log, and the state of the reading there. */
export interface ReadingStart {
  /** Number of lines before it. */
  readonly line: number
  readonly position: number
  readonly version: number | null
}

export interface ReadingOptions {
  readonly upcasts?: readonly Upcast[]
  /** Where to start; the beginning of the log by default. */
  readonly start?: ReadingStart
  /** Return only records after this position; all by default. */
  readonly from?: number
}

interface Reading {
  readonly upcasts: readonly Upcast[]
  readonly gathering: Gathering
  readonly from: number
  lines: readonly number[]
  line: number
  version: number | null
  isRecognised: boolean
  isForeign: boolean
}

const NONE: readonly Counted[] = []

export function createLineReader(options: ReadingOptions = {}): LineReader {
  const { upcasts = UPCASTS, start, from = 0 } = options
  const reading: Reading = {
    upcasts,
    gathering: gatheringFrom(start?.position ?? 0),
    from,
    lines: [],
    line: start?.line ?? 0,
    version: start?.version ?? null,
    isRecognised: start !== undefined,
    isForeign: false,
  }
  return {
    take: (line) => give(reading, takeLine(reading, line, 'bad-json')),
    end: (rest = '') => endLog(reading, rest),
    get lines() {
      return reading.lines
    },
  }
}

function give(reading: Reading, counted: readonly Counted[]): readonly SessionRecord[] {
  const given = counted.filter(({ position }) => position > reading.from)
  reading.lines = given.map(({ line }) => line)
  return given.map(({ record }) => record)
}

function endLog(reading: Reading, rest: string): LogEnd {
  const { gathering, line } = reading
  // Inside a batch there is no place to continue from.
  const canResume = rest === '' && reading.isRecognised && gathering.open === null
  const resume = canResume ? { line, position: gathering.position, version: reading.version } : null
  const records = give(reading, [...takeLine(reading, rest, 'torn-line'), ...closeBatch(gathering)])
  const { position, damage } = gathering
  const { version, isRecognised, isForeign } = reading
  return { records, position, damage, version, isLog: isRecognised || !isForeign, resume }
}

/** `whenUnreadable`: the damage if the line is not JSON. Only the last line can be torn. */
function takeLine(reading: Reading, text: string, whenUnreadable: DamageKind): readonly Counted[] {
  reading.line += 1
  const line = reading.line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
  const value = readJson(line)
  if (value !== undefined) return takeValue(reading, value, line)
  if (line.trim() === '') return NONE
  // A log may begin with part of an object, or with a page that was never written, after a crash.
  const looksTorn = line.startsWith('\0') || line.trimStart().startsWith('{')
  if (!looksTorn) reading.isForeign = true
  report(reading, whenUnreadable, unreadable(line, whenUnreadable))
  // A hole of NUL bytes may include the newline before a complete line.
  const afterHole = line.slice(line.lastIndexOf('\0') + 1)
  const rescued = afterHole === line ? undefined : readJson(afterHole)
  return isObject(rescued) ? takeValue(reading, rescued, afterHole) : NONE
}

function unreadable(line: string, kind: DamageKind): string {
  if (line.includes('\0'))
    return 'the line has NUL bytes, as a page lost in a crash leaves; what stands before them is set aside'
  const what = kind === 'torn-line' ? 'the last line was cut off' : 'the line is not JSON'
  return `${what}; it is set aside`
}

function takeValue(reading: Reading, value: unknown, line: string): readonly Counted[] {
  if (!isObject(value)) return refuse(reading, 'a record is a JSON object; the line is set aside')
  // Each level takes at least two characters, so most lines are too short to be too deep.
  if (line.length > 2 * MAX_DEPTH && isTooDeep(value)) return refuse(reading, TOO_DEEP)
  if (isHeader(value)) return takeHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? stampProblem(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return refuse(reading, `${why}; the line is set aside`)
  reading.isRecognised = true
  const { record, note } = decoded
  if (note !== undefined) report(reading, 'bad-shape', note)
  return gather(reading.gathering, record.seq == null ? asWritten(record, line) : record, reading.line)
}

const TOO_DEEP = `the line is nested more than ${MAX_DEPTH} levels deep; it is set aside`

/** A line of another tool: keeps the text of blocks that parse and stringify would change. Our own writer has done so. */
function asWritten(record: SessionRecord, line: string): SessionRecord {
  if (JSON.stringify(record) === line) return record
  const rawBlocks = rawBlocksIn(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** A header with the version already in use may be a copied line; it leaves an open batch unchanged. */
function takeHeader(reading: Reading, header: ParsedLine): readonly Counted[] {
  const version = versionOf(header, reading.upcasts)
  if (version === null)
    return refuse(
      reading,
      'a header names the format tidemark-session and its version; the line is set aside',
    )
  const { gathering } = reading
  const waiting = version === reading.version ? NONE : closeBatch(gathering)
  if (gathering.open !== null) gathering.open.isPastHeader = true
  reading.version = version
  reading.isRecognised = true
  return waiting
}

function refuse(reading: Reading, why: string): readonly Counted[] {
  reading.isForeign = true
  report(reading, 'bad-shape', why)
  return NONE
}

function report(reading: Reading, kind: DamageKind, why: string): void {
  reading.gathering.damage.push({ kind, line: reading.line, why })
}
