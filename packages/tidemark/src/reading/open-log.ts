/** Opens a file as a log: finds out what wrote it, then hands over its records as they are read. */
import type { Damage } from '@tidemark/core'
import {
  createDamageNotes,
  createLogReader,
  inLineOrder,
  type LogFormat,
  type LogMeta,
  type ReadRecord,
} from '@tidemark/wire'
import { DEFAULT_MAX_LINE_BYTES, type FeedOptions, type LineFeed, openLineFeed } from './line-feed.ts'
import type { FedLine } from './line-splitter.ts'
import { type LogStart, startOf } from './log-start.ts'
import type { Packing } from './packing.ts'
import type { LogRefusal } from './refusal.ts'

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
