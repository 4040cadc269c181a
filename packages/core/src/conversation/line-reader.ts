/** From the lines of a log, Tidemark's own or another tool's, to the records that count and what was wrong. */
import { closeBatch, emptyGathering, type Gathering, gather, stampProblem } from './batch.ts'
import type { Damage, DamageKind } from './damage.ts'
import { decodeRecord } from './decode.ts'
import { isObject } from './json.ts'
import { rawBlocksIn } from './raw-text.ts'
import type { SessionRecord } from './record.ts'
import { isHeader, type ParsedLine, UPCASTS, type Upcast, upcastLine, versionOf } from './upcast.ts'

export interface LineReader {
  /** The next line, without its newline. Gives the records that count from now on, often none or one. */
  take(line: string): readonly SessionRecord[]
  /** After the last newline: `rest` is what stands behind it. Gives the last records and the findings. */
  end(rest?: string): LogEnd
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
}

interface Reading {
  readonly upcasts: readonly Upcast[]
  readonly gathering: Gathering
  line: number
  version: number | null
  isRecognised: boolean
  isForeign: boolean
}

const NONE: readonly SessionRecord[] = []

export function createLineReader(upcasts: readonly Upcast[] = UPCASTS): LineReader {
  const reading: Reading = {
    upcasts,
    gathering: emptyGathering(),
    line: 0,
    version: null,
    isRecognised: false,
    isForeign: false,
  }
  return {
    take: (line) => takeLine(reading, line, 'bad-json'),
    end: (rest = '') => endLog(reading, rest),
  }
}

function endLog(reading: Reading, rest: string): LogEnd {
  const { gathering } = reading
  const records = takeLine(reading, rest, 'torn-line')
  closeBatch(gathering)
  const { position, damage } = gathering
  return {
    records,
    position,
    damage,
    version: reading.version,
    isLog: reading.isRecognised || !reading.isForeign,
  }
}

/** `whenUnreadable`: what it means that the line is not JSON. Only the last one can be cut off. */
function takeLine(reading: Reading, text: string, whenUnreadable: DamageKind): readonly SessionRecord[] {
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
function takeBehindHole(reading: Reading, line: string): readonly SessionRecord[] {
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

function takeValue(reading: Reading, value: unknown, line: string): readonly SessionRecord[] {
  if (!isObject(value)) return refuse(reading, 'a record is a JSON object')
  if (isHeader(value)) return takeHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? stampProblem(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return refuse(reading, why ?? '')
  reading.isRecognised = true
  const { record } = decoded
  return gather(reading.gathering, record.seq == null ? asWritten(record, line) : record, reading.line)
}

/** Another tool's line: what parse and stringify would change is kept beside it. Our own writer has done so. */
function asWritten(record: SessionRecord, line: string): SessionRecord {
  if (JSON.stringify(record) === line) return record
  const rawBlocks = rawBlocksIn(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

function takeHeader(reading: Reading, header: ParsedLine): readonly SessionRecord[] {
  const version = versionOf(header, reading.upcasts)
  if (version === null) return refuse(reading, 'a header names the format tidemark-session and its version')
  closeBatch(reading.gathering)
  reading.version = version
  reading.isRecognised = true
  return NONE
}

function refuse(reading: Reading, why: string): readonly SessionRecord[] {
  reading.isForeign = true
  return report(reading, 'bad-shape', `${why}; the line is set aside`)
}

function report(reading: Reading, kind: DamageKind, why: string): readonly SessionRecord[] {
  reading.gathering.damage.push({ kind, line: reading.line, why })
  return NONE
}
