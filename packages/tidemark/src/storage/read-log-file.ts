/**
 * Reads the log file of a session in chunks. Returns the damage found, and the size and last position that the next
 * append needs.
 */
import { TidemarkError } from '@tidemark/core/errors'
import type { Damage } from '@tidemark/core/log/decode-log'
import {
  createLogLineReader,
  type LogReaderOptions,
  type LogReadResult,
  type LogResumePoint,
} from '@tidemark/core/log/decode-log'
import type { SessionRecord } from '@tidemark/core/log/record'
import { readAnthropicReport } from '@tidemark/wire/providers/message-usage'
import { readByteRange } from './atomic-file.ts'
import { type FileSystem, ioError, type OpenFile } from './file-system.ts'
import { readLines, type SplitLine } from './split-lines.ts'

/** What an append must know of a log file, as it was when it was read: its end, format and damage. */
export interface LogFileState {
  readonly exists: boolean
  readonly position: number
  readonly damage: readonly Damage[]
  /** Format version in the log's header; null if the log has no readable header. */
  readonly version: number | null
  readonly sizeBytes: number
  readonly endsInNewline: boolean
  /** Identity of the log file; null if the file does not exist. */
  readonly identity: string | null
  /** Mark at the end of the log from which a later read can resume; null if reading cannot resume there. */
  readonly mark: ResumeMark | null
}

export interface LogFileLocation {
  readonly files: FileSystem
  readonly session: string
  readonly path: string
}

export type RecordVisitor = (records: readonly SessionRecord[]) => void

const NO_LOG: LogFileState = {
  exists: false,
  position: 0,
  damage: [],
  version: null,
  sizeBytes: 0,
  endsInNewline: true,
  identity: null,
  mark: null,
}

/** The part of a log file that is read. */
interface ReadRange {
  /** Number of bytes to read from the file. Later bytes may belong to a write that is still in progress. */
  readonly limit: number
  /** Only records after this log position are passed to the visitor. */
  readonly from: number
  /** Resume marks of earlier reads. Reading starts at the last mark that is still valid. */
  readonly marks: ResumeMarks
}

/**
 * Reads a log file; a missing file is an empty log. Throws `io-failed` if reading fails, and `not-a-session` if the
 * path is not a regular file or the file is not a Tidemark log.
 */
export async function readLogFile(
  place: LogFileLocation,
  visit: RecordVisitor,
  reach: ReadRange,
): Promise<LogFileState> {
  const file = await openLog(place)
  if (file === null) return NO_LOG
  try {
    return await readOpenLog(place, withReadErrors(place, file), visit, reach)
  } finally {
    await file.close()
  }
}

async function openLog(place: LogFileLocation): Promise<OpenFile | null> {
  try {
    return await place.files.open(place.path, 'read')
  } catch (error) {
    if ((await place.files.facts(place.path).catch(() => null))?.kind === 'other')
      throw notRegularError(place)
    throw readError(place, error)
  }
}

async function readOpenLog(
  place: LogFileLocation,
  file: OpenFile,
  visit: RecordVisitor,
  { limit, from, marks }: ReadRange,
): Promise<LogFileState> {
  const { kind, identity } = await file.facts()
  if (kind !== 'file') throw notRegularError(place)
  const start = await marks.latest(file, from, limit)
  const offset = start?.sizeBytes ?? 0
  const records = createRecordReader(visit, start === null ? { from } : { from, start })
  const unread: OpenFile = { ...file, read: (into, position) => file.read(into, offset + position) }
  const lines = await readLines(unread, limit - offset, records.take)
  const { isLog, resume, ...end } = records.end(lines.rest)
  if (!isLog) throw notASessionError(place)
  const damage = start === null ? end.damage : [...start.damage, ...end.damage]
  const sizeBytes = offset + lines.sizeBytes
  const mark =
    resume === null
      ? null
      : { ...resume, sizeBytes, identity, damage, tail: await readLastBytes(file, sizeBytes) }
  return { ...end, damage, exists: true, sizeBytes, endsInNewline: lines.endsInNewline, identity, mark }
}

/**
 * Creates a reader that parses log lines into records. Calls `visit` once per chunk of the file, with all records of
 * the chunk.
 */
function createRecordReader(
  visit: RecordVisitor,
  options: LogReaderOptions,
): {
  take(lines: readonly SplitLine[]): void
  end(rest: SplitLine): Omit<LogReadResult, 'records'>
} {
  const reader = createLogLineReader({ ...options, readReport: readAnthropicReport })
  const flaws: Damage[] = []
  let lineCount = options.start?.line ?? 0
  const noteFlaw = ({ problem }: SplitLine): void => {
    if (problem !== null) flaws.push({ kind: 'bad-json', line: lineCount + 1, why: problem })
  }
  return {
    take(lines) {
      const records: SessionRecord[] = []
      for (const line of lines) {
        noteFlaw(line)
        lineCount += 1
        for (const record of reader.readLine(line.text)) records.push(record)
      }
      if (records.length > 0) visit(records)
    },
    end(rest) {
      noteFlaw(rest)
      const { records, damage, ...found } = reader.finish(rest.text)
      if (records.length > 0) visit(records)
      return { ...found, damage: flaws.length === 0 ? damage : [...damage, ...flaws].sort(byLine) }
    },
  }
}

function byLine(one: Damage, other: Damage): number {
  return one.line - other.line
}

/** Converts file read errors to `io-failed`, so that they differ from errors thrown by the visitor. */
function withReadErrors(place: LogFileLocation, file: OpenFile): OpenFile {
  const fail = (error: unknown) => Promise.reject(readError(place, error))
  return {
    ...file,
    read: (into, position) => file.read(into, position).catch(fail),
    facts: () => file.facts().catch(fail),
  }
}

function readError({ session, path }: LogFileLocation, cause: unknown): TidemarkError {
  return ioError(`read session "${session}" (${path})`, cause, { session, path })
}

function notRegularError({ session, path }: LogFileLocation): TidemarkError {
  const message = `Session "${session}" cannot be read: ${path} is not a regular file (symbolic links are not followed). Put the log itself there.`
  return new TidemarkError('not-a-session', message, { details: { session, path } })
}

function notASessionError({ session, path }: LogFileLocation): TidemarkError {
  const message = `${path} is not a Tidemark session: none of its lines is a record or a header. Nothing was changed; move it away or choose another session id.`
  return new TidemarkError('not-a-session', message, { details: { session, path } })
}

/**
 * A point between two lines of a log from which a later read can resume. Includes data to check that the file before
 * this point is unchanged.
 */
export interface ResumeMark extends LogResumePoint {
  /** Offset of the mark in the file, in bytes. */
  readonly sizeBytes: number
  readonly identity: string
  /** Damage found in the log lines before the mark. */
  readonly damage: readonly Damage[]
  /** The last bytes of the file before the mark. If the file has other bytes there, the log was rewritten. */
  readonly tail: Uint8Array
}

const TAIL_BYTES = 512

/** Returns the last 512 bytes of a chunk, for a resume mark at its end. */
export function sliceLastBytes(bytes: Uint8Array): Uint8Array {
  return bytes.slice(-TAIL_BYTES)
}

/** Returns the last 512 bytes of the file before offset `sizeBytes`, for a resume mark there; fewer if the file is shorter. */
export async function readLastBytes(file: OpenFile, sizeBytes: number): Promise<Uint8Array> {
  return readByteRange(file, Math.max(0, sizeBytes - TAIL_BYTES), sizeBytes)
}

const MAX_MARKS = 8

/** The newest resume marks of one log. A reader that continues an earlier read usually stopped at one of them. */
export class ResumeMarks {
  /** Resume marks, sorted by their offset in the file. */
  #marks: readonly ResumeMark[] = []

  add(mark: ResumeMark | null): void {
    if (mark === null) return
    const others = this.#marks.filter(
      ({ identity, sizeBytes }) => identity === mark.identity && sizeBytes !== mark.sizeBytes,
    )
    const marks = [...others, mark].sort((one, other) => one.sizeBytes - other.sizeBytes)
    this.#marks = marks.slice(-MAX_MARKS)
  }

  /**
   * Returns the last resume mark that is not after log position `position` or byte offset `limit`; null if there is
   * none. Marks that no longer match the file are removed.
   */
  async latest(file: OpenFile, position: number, limit: number): Promise<ResumeMark | null> {
    const facts = await file.facts()
    const end = Math.min(limit, facts.sizeBytes)
    for (const mark of this.#marks.toReversed()) {
      const { sizeBytes, tail } = mark
      if (mark.position > position || sizeBytes > end) continue
      const isSame =
        mark.identity === facts.identity &&
        Buffer.from(tail).equals(await readByteRange(file, sizeBytes - tail.length, sizeBytes))
      if (isSame) return mark
      this.#marks = this.#marks.filter((other) => other !== mark)
    }
    return null
  }
}
