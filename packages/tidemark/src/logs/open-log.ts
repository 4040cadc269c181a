/** Opens a file as a log: finds out what wrote it, then hands over its records as they are read. */

import { isUtf8 } from 'node:buffer'
import type { Damage } from '@tidemark/core'
import {
  createDamageNotes,
  createLogReader,
  detectFormat,
  formatOfLine,
  inLineOrder,
  type LogFormat,
  type LogMeta,
  type ReadRecord,
} from '@tidemark/wire'
import type { FedLine } from '../storage/split-lines.ts'
import { type LogRefusal, refuse } from './found-log.ts'
import {
  DEFAULT_MAX_LINE_BYTES,
  type FeedOptions,
  type LineFeed,
  openLineFeed,
  type Packing,
} from './read-lines.ts'

export interface OpenLog {
  readonly ok: true
  readonly path: string
  readonly format: LogFormat
  readonly packing: Packing
  readonly sizeBytes: number
  readonly modifiedMs: number
  /** Hands over every record that counts, in order and in pieces. Once, and instead of `lines` and `close`. */
  read(visit: (records: readonly ReadRecord[]) => void): Promise<LogEnd>
  /** The same as lines, a piece of the file at a time, for whoever needs them as they stand. */
  lines(): AsyncGenerator<readonly ReadLine[], LogEnd>
  close(): Promise<void>
}

export interface LogEnd {
  readonly lines: number
  /** In the order of lines. */
  readonly damage: readonly Damage[]
  readonly meta: LogMeta
  /** Why there may be more that could not be read, or null; it is among the damage too. */
  readonly fault: string | null
}

/** A line, and the records that count from it on. */
export interface ReadLine extends FedLine {
  readonly line: number
  readonly records: readonly ReadRecord[]
}

export async function openLog(path: string, options: FeedOptions = {}): Promise<OpenLog | LogRefusal> {
  const feed = await openLineFeed(path, options)
  if ('ok' in feed) return feed
  try {
    const start = await startOf(feed, options.maxLineBytes ?? DEFAULT_MAX_LINE_BYTES)
    if (!('ok' in start)) return opened(feed, start)
    await feed.close()
    return start
  } catch (error) {
    await feed.close()
    throw error
  }
}

function opened(feed: LineFeed, start: LogStart): OpenLog {
  const { path, packing, sizeBytes, modifiedMs } = feed
  return {
    ok: true,
    path,
    format: start.format,
    packing,
    sizeBytes,
    modifiedMs,
    read: (visit) => readRecords(feed, start, visit),
    lines: () => readLines(feed, start),
    close: () => feed.close(),
  }
}

async function readRecords(
  feed: LineFeed,
  start: LogStart,
  visit: (records: readonly ReadRecord[]) => void,
): Promise<LogEnd> {
  const pieces = readLines(feed, start)
  for (;;) {
    const { value, done } = await pieces.next()
    if (done) return value
    const records = value.flatMap((line) => line.records)
    if (records.length > 0) visit(records)
  }
}

async function* readLines(feed: LineFeed, start: LogStart): AsyncGenerator<readonly ReadLine[], LogEnd> {
  try {
    const reading = createReading(start.format)
    yield start.lines.map(reading.take)
    let piece = start.rest === null ? await feed.next() : null
    for (; piece !== null; piece = await feed.next()) yield piece.map(reading.take)
    const { last, ...end } = reading.end(start.rest ?? feed.rest(), feed.fault)
    yield [last]
    return end
  } finally {
    await feed.close()
  }
}

interface Reading {
  take(line: FedLine): ReadLine
  end(rest: FedLine, fault: string | null): LogEnd & { readonly last: ReadLine }
}

function createReading(format: LogFormat): Reading {
  const reader = createLogReader(format)
  const flaws = createDamageNotes()
  let lines = 0
  function note(fed: FedLine): void {
    lines += 1
    if (fed.flaw !== null) flaws.add('bad-json', lines, fed.flaw)
  }
  return {
    take(fed) {
      note(fed)
      return { ...fed, line: lines, records: reader.line(fed.text) }
    },
    end(rest, fault) {
      const line = lines + 1
      if (rest.text !== '' || rest.flaw !== null) note(rest)
      const { records, damage, meta } = reader.end(rest.text)
      if (fault !== null) flaws.add('torn-line', lines, fault)
      const last = { ...rest, line, records }
      return { lines, damage: inLineOrder(damage, flaws.list), meta, fault, last }
    },
  }
}

// Finds out what a file is from its first lines, and says so in one line where it is no log.

/** What was read to find out what the file is. */
export interface LogStart {
  readonly format: LogFormat
  readonly lines: readonly FedLine[]
  /** Null where the file goes on. */
  readonly rest: FedLine | null
}

/** So many lines without one that is known are not the beginning of a damaged log. */
const LINES_TO_TELL = 200

export async function startOf(feed: LineFeed, maxLineBytes: number): Promise<LogStart | LogRefusal> {
  const lines: FedLine[] = []
  for (;;) {
    const piece = await feed.next()
    if (piece === null) return startAtEnd(feed, lines)
    for (const line of piece) lines.push(line)
    const format = formatIn(piece)
    if (format !== null) return { format, lines, rest: null }
    if (feed.fedBytes > 0 && !isText(feed.head)) return refuseBinary(feed.path)
    if (lines.length >= LINES_TO_TELL) return refuseUnknown(feed.path, lines)
    if (feed.fedBytes > 2 * maxLineBytes) return refuseUnknown(feed.path, [...lines, UNREAD])
  }
}

function startAtEnd(feed: LineFeed, lines: readonly FedLine[]): LogStart | LogRefusal {
  const rest = feed.rest()
  const format = formatOfLine(rest.text)
  if (format !== null) return { format, lines, rest }
  if (feed.fault !== null)
    return refuse(feed.path, 'unreadable', `has nothing of a log that could be read: ${feed.fault}`)
  if (feed.fedBytes === 0) return refuse(feed.path, 'empty', 'is empty')
  return refuseUnknown(feed.path, [...lines, rest])
}

function formatIn(lines: readonly FedLine[]): LogFormat | null {
  for (const { text } of lines.slice(0, LINES_TO_TELL)) {
    const format = formatOfLine(text)
    if (format !== null) return format
  }
  return null
}

function refuseBinary(path: string): LogRefusal {
  return refuse(
    path,
    'binary',
    'is binary: expected the text of a session log, or that packed with gzip or zstd',
  )
}

/** Stands for a line that is not held: it is no text that could be looked at, but it is not nothing. */
const UNREAD: FedLine = { text: '?', flaw: null }

function refuseUnknown(path: string, lines: readonly FedLine[]): LogRefusal {
  const seen = lines.slice(0, LINES_TO_TELL).map((line) => (line.flaw === null ? line : UNREAD))
  const detected = detectFormat(seen.map(({ text }) => text))
  const isEmpty = seen.length === lines.length && seen.every(({ text }) => text.trim() === '')
  return refuse(path, isEmpty ? 'empty' : 'unknown-format', detected.ok ? 'is no log' : detected.message)
}

/** What begins as a line of a log may do is not given up for a few bad bytes. The last character may be cut. */
function isText(head: Buffer): boolean {
  if (head.toString('latin1').trimStart().startsWith('{')) return true
  if (head.includes(0)) return false
  return [0, 1, 2, 3].some((cut) => isUtf8(head.subarray(0, Math.max(0, head.length - cut))))
}
