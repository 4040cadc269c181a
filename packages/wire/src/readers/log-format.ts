/** Detects which program wrote a session log from the first line that tells, and creates the reader for a format. */
import type { LogReaderOptions } from '@tidemark/core/log/decode-log'
import { isObject, parseJson } from '@tidemark/core/log/json'
import { createRecordLogReader } from './claude-code-reader.ts'
import { readCodexItem } from './codex-items.ts'
import { type JsonFields, parseCodexLine } from './codex-line.ts'
import { createCodexReader } from './codex-reader.ts'
import { UNCHANGED_IDS } from './codex-tools.ts'
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
  let head = ''
  let program: string | null = null
  for (const line of lines) {
    const format = detectLineFormat(line)
    if (format !== null) return { ok: true, format }
    isBlank &&= line.trim() === ''
    const value = parseJson(line)
    isJson ||= isObject(value)
    if (isPiLine(value)) program ??= 'pi'
    if (head.length < HEAD_CHARACTERS) head += `${line.slice(0, HEAD_CHARACTERS)}\n`
  }
  if (OPENCODE_HEAD.test(head)) program ??= 'opencode'
  if (program !== null)
    return { ok: false, message: `is a session of ${program}, which cannot be read yet: ${EXPECTED_FORMATS}` }
  return { ok: false, message: describeUnknownFormat(isBlank, isJson) }
}

// Programs whose logs are recognized but not supported, so that the refusal can name the program.

/** A session of pi has a line `{type: "session", cwd}`, then `{type: "message", message: {role}}`. */
function isPiLine(value: unknown): boolean {
  if (!isObject(value)) return false
  if (value.type === 'session') return typeof value.id === 'string' && typeof value.cwd === 'string'
  return value.type === 'message' && isObject(value.message) && typeof value.message.role === 'string'
}

/** opencode exports a session as one JSON document, and stores sessions, messages and parts as such documents. */
const OPENCODE_HEAD = /^\s*\{\s*(?:"info"\s*:\s*\{\s*)?"(?:id|sessionID)"\s*:\s*"(?:ses|msg|prt)_/
const HEAD_CHARACTERS = 1000

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

/** Line types that only Codex writes. Its reader accepts other types as well if the line has a payload. */
const CODEX_LINE_TYPES = new Set([
  'session_meta',
  'turn_context',
  'response_item',
  'event_msg',
  'compacted',
  'world_state',
  'inter_agent_communication',
  'inter_agent_communication_metadata',
  'token_usage_record',
  'rollout_reference',
])

/** Types of items that any fields make readable. They do not show which program wrote the line. */
const SHAPELESS_ITEM_TYPES: ReadonlySet<unknown> = new Set(['reasoning', 'web_search_call'])

/** Content types that show that Codex wrote a message. Many programs write messages with plain text or with blocks of text. */
const CODEX_CONTENT_TYPES: ReadonlySet<unknown> = new Set(['input_text', 'input_image', 'output_text'])

/**
 * Checks whether Codex wrote the line, with or without the envelope. Without it, the item must be readable, and a
 * message must have content as Codex writes it.
 */
function isCodexLine(value: JsonFields): boolean {
  const line = typeof value.uuid === 'string' ? null : parseCodexLine(value)
  if (line === null) return false
  if (line.payload !== value) return CODEX_LINE_TYPES.has(line.type)
  if (line.type === 'session_meta') return 'instructions' in value
  if (line.type === 'state') return value.record_type === 'state'
  if (value.type === 'message' && !hasCodexContent(value)) return false
  return !SHAPELESS_ITEM_TYPES.has(value.type) && readCodexItem(value, UNCHANGED_IDS).from !== 'unreadable'
}

function hasCodexContent({ content }: JsonFields): boolean {
  return (
    Array.isArray(content) && content.some((item) => isObject(item) && CODEX_CONTENT_TYPES.has(item.type))
  )
}

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
  return format === 'codex' ? createCodexReader() : createRecordLogReader(format, options)
}
