/** Opens a file as a log: detects its format, then streams its records. */

import { isUtf8 } from 'node:buffer'
import type { Damage } from '@tidemark/core/log/decode-log'
import { createLogReader, detectLineFormat, detectLogFormat } from '@tidemark/wire/readers/log-format'
import {
  createDamageCollector,
  type LogFormat,
  type LogMeta,
  mergeDamage,
  type RecordWithLine,
} from '@tidemark/wire/readers/log-reader'
import type { SplitLine } from '../storage/split-lines.ts'
import {
  type Compression,
  createTextLines,
  DEFAULT_MAX_LINE_BYTES,
  type FileLines,
  type LineReadOptions,
  type LogRefusal,
  type LogText,
  openFileLines,
  refuseLog,
} from './read-lines.ts'

export interface OpenLogOptions extends LineReadOptions {
  /** False if nothing that is read will be sent to a provider, which makes reading faster. Default: true. */
  readonly keepsRawBlocks?: boolean
}

export interface OpenLog {
  readonly ok: true
  readonly path: string
  readonly format: LogFormat
  readonly packing: Compression
  readonly sizeBytes: number
  readonly modifiedMs: number
  /**
   * Passes all valid records of the log to `visit` in chunks, then closes the log. Call either `read` or `lines`, and
   * only once.
   */
  read(visit: (records: readonly RecordWithLine[]) => void): Promise<LogReadResult>
  /**
   * Yields all lines of the log in chunks, each line with its text and records, then closes the log. Call either `read`
   * or `lines`, and only once.
   */
  lines(): AsyncGenerator<readonly ParsedLine[], LogReadResult>
  close(): Promise<void>
}

export interface LogReadResult {
  readonly lines: number
  /** The damaged parts of the log, in line order. */
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
  /**
   * Why reading stopped before the end of the file; null if the file was read completely. `damage` lists this problem
   * too.
   */
  readonly fault: string | null
}

/**
 * A line of a log, and the records that became valid with it. All records of a batch become valid with the last line of
 * the batch.
 */
export interface ParsedLine extends SplitLine {
  readonly line: number
  readonly records: readonly RecordWithLine[]
}

/**
 * Opens a file, or lines that were read elsewhere, and detects the format. Returns a refusal if it cannot be read or is
 * not a log. A result must be read or closed.
 */
export async function openLog(
  source: string | LogText,
  options: OpenLogOptions = {},
): Promise<OpenLog | LogRefusal> {
  const feed = typeof source === 'string' ? await openFileLines(source, options) : createTextLines(source)
  if ('ok' in feed) return feed
  try {
    const start = await readStart(feed, options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES)
    if (!('ok' in start)) return toOpenLog(feed, start, options)
    await feed.close()
    return start
  } catch (error) {
    await feed.close()
    throw error
  }
}

function toOpenLog(feed: FileLines, start: LogStart, options: OpenLogOptions): OpenLog {
  const { path, packing, sizeBytes, modifiedMs } = feed
  const createParser = (): LineParser => createLineParser(start.format, options)
  return {
    ok: true,
    path,
    format: start.format,
    packing,
    sizeBytes,
    modifiedMs,
    read: (visit) => readRecords(readLines(feed, start, createParser()), visit),
    lines: () => readLines(feed, start, createParser()),
    close: () => feed.close(),
  }
}

async function readRecords(
  chunks: ReturnType<typeof readLines>,
  visit: (records: readonly RecordWithLine[]) => void,
): Promise<LogReadResult> {
  for (;;) {
    const { value, done } = await chunks.next()
    if (done) return value
    const records = value.flatMap((line) => line.records)
    if (records.length > 0) visit(records)
  }
}

async function* readLines(
  feed: FileLines,
  start: LogStart,
  parser: LineParser,
): AsyncGenerator<readonly ParsedLine[], LogReadResult> {
  try {
    yield start.lines.map(parser.take)
    let chunk = start.rest === null ? await feed.next() : null
    for (; chunk !== null; chunk = await feed.next()) yield chunk.map(parser.take)
    const { last, ...end } = parser.end(start.rest ?? feed.rest(), feed.fault)
    yield [last]
    return end
  } finally {
    await feed.close()
  }
}

interface LineParser {
  take(line: SplitLine): ParsedLine
  end(rest: SplitLine, fault: string | null): LogReadResult & { readonly last: ParsedLine }
}

function createLineParser(format: LogFormat, { keepsRawBlocks = true }: OpenLogOptions): LineParser {
  const reader = createLogReader(format, { keepsRawBlocks })
  const flaws = createDamageCollector()
  let lines = 0
  function countLine({ problem }: SplitLine): void {
    lines += 1
    if (problem !== null) flaws.add('bad-json', lines, problem)
  }
  return {
    take(line) {
      countLine(line)
      return { ...line, line: lines, records: reader.readLine(line.text) }
    },
    end(rest, fault) {
      const line = lines + 1
      if (rest.text !== '' || rest.problem !== null) countLine(rest)
      const { records, damage, meta } = reader.finish(rest.text)
      if (fault !== null) flaws.add('torn-line', lines, fault)
      const last = { ...rest, line, records }
      return { lines, damage: mergeDamage(damage, flaws.list), meta, fault, last }
    },
  }
}

/** The first lines of a file, which were read to detect its format. */
interface LogStart {
  readonly format: LogFormat
  readonly lines: readonly SplitLine[]
  /** The last line of the file if the file was read to its end; otherwise null. */
  readonly rest: SplitLine | null
}

/**
 * Maximum number of lines that are searched for a known log format. A file without one is refused instead of being
 * treated as a damaged log.
 */
const MAX_START_LINES = 200

async function readStart(feed: FileLines, maxLineBytes: number): Promise<LogStart | LogRefusal> {
  const lines: SplitLine[] = []
  for (;;) {
    const chunk = await feed.next()
    if (chunk === null) return startOfWholeFile(feed, lines)
    for (const line of chunk) lines.push(line)
    const format = findFormat(chunk)
    if (format !== null) return { format, lines, rest: null }
    if (feed.processedBytes > 0 && !isText(feed.head))
      return refuseLog(
        feed.path,
        'binary',
        'is binary: expected the text of a session log, or that text compressed with gzip or zstd',
      )
    if (lines.length >= MAX_START_LINES) return refuseUnknown(feed.path, lines)
    // A file that begins like a log is read further: an overlong line is not kept in memory, and other lines may follow it.
    if (feed.processedBytes > 2 * maxLineBytes && !beginsLikeLog(feed.head))
      return refuseUnknown(feed.path, [...lines, UNREAD])
  }
}

function startOfWholeFile(feed: FileLines, lines: readonly SplitLine[]): LogStart | LogRefusal {
  const rest = feed.rest()
  const format = detectLineFormat(rest.text)
  if (format !== null) return { format, lines, rest }
  if (feed.fault !== null)
    return refuseLog(feed.path, 'unreadable', `contains no readable part of a log: ${feed.fault}`)
  if (feed.processedBytes === 0) return refuseLog(feed.path, 'empty', 'is empty')
  const filled = [...lines, rest].filter(({ text, problem }) => problem !== null || text.trim() !== '')
  const tooLong = filled.find(({ text, problem }) => text === '' && problem !== null)
  if (tooLong !== undefined && filled.length === 1)
    return refuseLog(feed.path, 'unreadable', `has no other line than this one: ${tooLong.problem}`)
  return refuseUnknown(feed.path, [...lines, rest])
}

function findFormat(lines: readonly SplitLine[]): LogFormat | null {
  for (const { text } of lines.slice(0, MAX_START_LINES)) {
    const format = detectLineFormat(text)
    if (format !== null) return format
  }
  return null
}

/** Stands for a line of a file that is not empty but whose text is not available. */
const UNREAD: SplitLine = { text: '?', problem: null }

function refuseUnknown(path: string, lines: readonly SplitLine[]): LogRefusal {
  const seen = lines.slice(0, MAX_START_LINES).map((line) => (line.problem === null ? line : UNREAD))
  const detected = detectLogFormat(seen.map(({ text }) => text))
  const isEmpty = seen.length === lines.length && seen.every(({ text }) => text.trim() === '')
  return refuseLog(
    path,
    isEmpty ? 'empty' : 'unknown-format',
    detected.ok ? 'is not a log' : detected.message,
  )
}

function beginsLikeLog(head: Buffer): boolean {
  return head.toString('latin1').trimStart().startsWith('{')
}

/**
 * Checks from the first bytes of a file whether it is text. A file that begins with `{` is accepted despite invalid
 * bytes. The last character of `head` may be incomplete.
 */
function isText(head: Buffer): boolean {
  if (beginsLikeLog(head)) return true
  if (head.includes(0)) return false
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, Math.max(0, head.length - cut))))
}
