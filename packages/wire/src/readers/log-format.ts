/** Which program wrote a log, told from its first lines. */
import { isObject, readJson } from '@tidemark/core'
import { isCodexLine } from './codex-line.ts'
import { createCodexReader } from './codex-reader.ts'
import type { LogFormat, LogReader } from './log-reader.ts'
import { createRecordReader } from './record-reader.ts'

type DetectedFormat =
  | { readonly ok: true; readonly format: LogFormat }
  /** `message` says what was expected and what was found; it goes on from the name of the file. */
  | { readonly ok: false; readonly message: string }

type Fields = { readonly [field: string]: unknown }

/** Damaged lines among the first ones do not matter: the first that can be told from all others decides. */
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

/** Null where the line alone does not tell. */
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

/** Lines without identity that only Claude Code writes, and a field of theirs. */
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

/** A reader for one log of that format. */
export function createLogReader(format: LogFormat): LogReader {
  return format === 'codex' ? createCodexReader() : createRecordReader(format)
}
