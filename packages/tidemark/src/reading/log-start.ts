/** Finds out what a file is from its first lines, and says so in one line where it is no log. */
import { isUtf8 } from 'node:buffer'
import { detectFormat, formatOfLine, type LogFormat } from '@tidemark/wire'
import type { LineFeed } from './line-feed.ts'
import type { FedLine } from './line-splitter.ts'
import { type LogRefusal, refuse } from './refusal.ts'

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
