/** Detects which program wrote a session log, from its first lines, and creates the reader for that log. */
import { isObject, type LogReaderOptions, parseJson } from '@tidemark/core'
import { createRecordReader } from './claude-code-reader.ts'
import { isCodexLine, type JsonFields } from './codex-line.ts'
import { createCodexReader } from './codex-reader.ts'
import type { LogFormat, LogReader } from './log-reader.ts'

type FormatDetection =
  | { readonly ok: true; readonly format: LogFormat }
  /**
   * The format was not recognized. `message` says what was found and what was expected. It is written to follow
   * the file name in a sentence.
   */
  | { readonly ok: false; readonly message: string }

/** Detects the format of a log from the first line that only one known program writes. Damaged lines are skipped. */
export function detectLogFormat(lines: Iterable<string>): FormatDetection {
  let isJson = false
  let isBlank = true
  for (const line of lines) {
    const format = detectLineFormat(line)
    if (format !== null) return { ok: true, format }
    isBlank &&= line.trim() === ''
    isJson ||= isObject(parseJson(line))
  }
  return { ok: false, message: describeUnknownFormat(isBlank, isJson) }
}

/**
 * Returns the program that wrote a log line. Returns null if several known programs, or none, could have written it.
 */
export function detectLineFormat(line: string): LogFormat | null {
  const text = line.trim()
  const value = text.startsWith('{') ? parseJson(text) : undefined
  if (!isObject(value)) return null
  if (isTidemarkLine(value)) return 'tidemark'
  if (isCodexLine(value)) return 'codex'
  return isClaudeCodeLine(value) ? 'claude-code' : null
}

function isTidemarkLine({ type, format, seq, uuid }: JsonFields): boolean {
  if (type === 'tidemark') return format === 'tidemark-session'
  return typeof type === 'string' && Number.isSafeInteger(seq) && typeof uuid === 'string'
}

/**
 * Types of log lines that have no uuid and that only Claude Code writes, each with a field that such a line must have.
 */
const LINES_WITHOUT_UUID: ReadonlyMap<unknown, string> = new Map([
  ['summary', 'leafUuid'],
  ['file-history-snapshot', 'snapshot'],
  ['queue-operation', 'sessionId'],
  ['cost-state', 'totalCostUSD'],
])

function isClaudeCodeLine(value: JsonFields): boolean {
  if (typeof value.type !== 'string') return false
  const field = LINES_WITHOUT_UUID.get(value.type)
  if (field !== undefined && field in value) return true
  return typeof value.uuid === 'string' && ('sessionId' in value || 'parentUuid' in value)
}

const EXPECTED_FORMATS =
  'expected the JSON lines of a Claude Code session, of a Codex rollout or of a session of Tidemark'

function describeUnknownFormat(isBlank: boolean, isJson: boolean): string {
  if (isBlank) return `has no lines: ${EXPECTED_FORMATS}`
  if (isJson) return `has JSON lines, but none of a kind that is known: ${EXPECTED_FORMATS}`
  return `has no JSON lines: ${EXPECTED_FORMATS}`
}

/**
 * Creates a reader for one log. Each log needs its own reader. `keepsRawBlocks`: false if nothing that was read will be
 * sent to a provider, which makes reading faster.
 */
export function createLogReader(
  format: LogFormat,
  options: Pick<LogReaderOptions, 'keepsRawBlocks'> = {},
): LogReader {
  return format === 'codex' ? createCodexReader() : createRecordReader(format, options)
}
