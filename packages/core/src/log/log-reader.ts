/** From the lines of a log, Tidemark's own or another tool's, to the records that count and what was wrong. */
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
import { isObject, isTooDeep, MAX_DEPTH, rawBlocksIn } from './json.ts'
import type { SessionRecord } from './record.ts'

export interface LineReader {
  /** The next line, without its newline. Gives the records that count from now on, often none or one. */
  take(line: string): readonly SessionRecord[]
  /** After the last newline: `rest` is what stands behind it. Gives the last records and the findings. */
  end(rest?: string): LogEnd
  /** Of each record that the last call gave, the line it stands on. */
  readonly lines: readonly number[]
}

export interface LogEnd {
  readonly records: readonly SessionRecord[]
  /** Position of the last record that counts. Records of a foreign log are counted from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** What the newest header says; null for a foreign log, or where no header survived. */
  readonly version: number | null
  /** False for a file that has no line of a log and does not look like the torn beginning of one. */
  readonly isLog: boolean
  /** From where a later reading can go on as if this one had; null where it has to begin anew. */
  readonly resume: ReadingStart | null
}

/** A place between two lines of a log: what the lines before it have come to. */
export interface ReadingStart {
  /** How many they are. */
  readonly line: number
  readonly position: number
  readonly version: number | null
}

export interface ReadingOptions {
  readonly upcasts?: readonly Upcast[]
  /** The first line to be taken is the one behind this; the beginning of the log unless given. */
  readonly start?: ReadingStart
  /** Only records behind this position are given; all of them unless given. */
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
const NO_RECORDS: readonly SessionRecord[] = []

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
  if (counted.length === 0 && reading.lines.length === 0) return NO_RECORDS
  const given = counted.filter(({ position }) => position > reading.from)
  reading.lines = given.map(({ line }) => line)
  return given.map(({ record }) => record)
}

function endLog(reading: Reading, rest: string): LogEnd {
  const { gathering } = reading
  const resume = rest === '' ? placeOf(reading) : null
  const records = give(reading, [...takeLine(reading, rest, 'torn-line'), ...closeBatch(gathering)])
  const { position, damage } = gathering
  const { version, isRecognised, isForeign } = reading
  return { records, position, damage, version, isLog: isRecognised || !isForeign, resume }
}

/** Between the parts of a batch there is no place to go on from. */
function placeOf({ gathering, line, version, isRecognised }: Reading): ReadingStart | null {
  const { open, position } = gathering
  return isRecognised && open === null ? { line, position, version } : null
}

/** `whenUnreadable`: what it means that the line is not JSON. Only the last one can be cut off. */
function takeLine(reading: Reading, text: string, whenUnreadable: DamageKind): readonly Counted[] {
  reading.line += 1
  const line = reading.line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
  const value = parse(line)
  if (value !== undefined) return takeValue(reading, value, line)
  if (line.trim() === '') return NONE
  if (!looksTorn(line)) reading.isForeign = true
  report(reading, whenUnreadable, unreadable(line, whenUnreadable))
  return takeBehindHole(reading, line)
}

/** A hole may have swallowed the newline before a line that is whole. No part of a line parses by chance. */
function takeBehindHole(reading: Reading, line: string): readonly Counted[] {
  const behind = line.slice(line.lastIndexOf('\0') + 1)
  const value = behind === line ? undefined : parse(behind)
  return isObject(value) ? takeValue(reading, value, behind) : NONE
}

/** Undefined, which no JSON text stands for, where the line is none. */
function parse(line: string): unknown {
  if (line === '') return undefined
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

/** Part of an object, or a page that was never written: a log may begin so after a crash. */
function looksTorn(line: string): boolean {
  return line.startsWith('\0') || line.trimStart().startsWith('{')
}

function unreadable(line: string, kind: DamageKind): string {
  if (line.includes('\0'))
    return 'the line has NUL bytes, as a page lost in a crash leaves; what stands before them is set aside'
  const what = kind === 'torn-line' ? 'the last line was cut off' : 'the line is not JSON'
  return `${what}; it is set aside`
}

function takeValue(reading: Reading, value: unknown, line: string): readonly Counted[] {
  if (!isObject(value)) return refuse(reading, 'a record is a JSON object; the line is set aside')
  // Each level takes two characters at least: most lines are too short to be too deep.
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

/** Another tool's line: what parse and stringify would change is kept beside it. Our own writer has done so. */
function asWritten(record: SessionRecord, line: string): SessionRecord {
  if (JSON.stringify(record) === line) return record
  const rawBlocks = rawBlocksIn(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** One that only repeats the version may be a copied line, and leaves an open batch as it is. */
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
