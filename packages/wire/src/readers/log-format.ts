/** Detects which program wrote a log, from its first lines, and creates the reader for it. */
import { isObject, readJson } from '@tidemark/core'
import { type Fields, isCodexLine } from './codex-line.ts'
import { createCodexReader } from './codex-reader.ts'
import type { LogFormat, LogReader } from './log-reader.ts'
import { createRecordReader } from './record-reader.ts'

type DetectedFormat =
  | { readonly ok: true; readonly format: LogFormat }
  /** `message` says what was found and what was expected; it continues a sentence that begins with the file name. */
  | { readonly ok: false; readonly message: string }

/** Damaged lines are skipped: the first line that only one program writes decides. */
export function detectFormat(lines: Iterable<string>): DetectedFormat {
  let isJson = false
  let isBlank = true
  for (const line of lines) {
    const format = formatOfLine(line)
    if (format !== null) return { ok: true, format }
    isBlank &&= line.trim() === ''
    isJson ||= isObject(readJson(line))
  }
  return { ok: false, message: refusal(isBlank, isJson) }
}

/** Null if the line does not identify a program. */
export function formatOfLine(line: string): LogFormat | null {
  const text = line.trim()
  const value = text.startsWith('{') ? readJson(text) : undefined
  if (!isObject(value)) return null
  if (isOurs(value)) return 'tidemark'
  if (isCodexLine(value)) return 'codex'
  return isClaudeCodes(value) ? 'claude-code' : null
}

function isOurs({ type, format, seq, uuid }: Fields): boolean {
  if (type === 'tidemark') return format === 'tidemark-session'
  return typeof type === 'string' && Number.isSafeInteger(seq) && typeof uuid === 'string'
}

/** Lines without a uuid that only Claude Code writes, each with a field to recognise it by. */
const LINES_WITHOUT_UUID: ReadonlyMap<unknown, string> = new Map([
  ['summary', 'leafUuid'],
  ['file-history-snapshot', 'snapshot'],
  ['queue-operation', 'sessionId'],
])

function isClaudeCodes(value: Fields): boolean {
  if (typeof value.type !== 'string') return false
  const field = LINES_WITHOUT_UUID.get(value.type)
  if (field !== undefined && field in value) return true
  return typeof value.uuid === 'string' && ('sessionId' in value || 'parentUuid' in value)
}

const EXPECTED =
  'expected the JSON lines of a Claude Code session, of a Codex rollout or of a session of Tidemark'

function refusal(isBlank: boolean, isJson: boolean): string {
  if (isBlank) return `has no lines: ${EXPECTED}`
  if (isJson) return `has JSON lines, but none of a kind that is known: ${EXPECTED}`
  return `has no JSON lines: ${EXPECTED}`
}

/** A reader reads one log. */
export function createLogReader(format: LogFormat): LogReader {
  return format === 'codex' ? createCodexReader() : createRecordReader(format)
}
