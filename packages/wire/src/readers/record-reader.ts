/** Reads logs of Claude Code and of Tidemark: their lines are records already, and core's reader handles both. */
import { createLineReader, isObject, isTooDeep, type LineReader, type SessionRecord } from '@tidemark/core'
import { CLAUDE_CODE_REMINDER, type ReminderRule } from '../catalogue/estimator-weights.ts'
import {
  createDamageNotes,
  createMetaNotes,
  type DamageNotes,
  inLineOrder,
  type LogReader,
  type MetaNotes,
  NO_RECORDS,
  type ReadEnd,
  type ReadRecord,
  TOO_DEEP,
} from './log-reader.ts'

interface Reading {
  readonly reader: LineReader
  readonly notes: DamageNotes
  readonly meta: MetaNotes
  line: number
}

export function createRecordReader(format: 'claude-code' | 'tidemark'): LogReader {
  const reading: Reading = {
    reader: createLineReader(),
    notes: createDamageNotes(),
    meta: createMetaNotes(),
    line: 0,
  }
  return {
    format,
    line: (text) => takeLine(reading, text),
    end: (rest = '') => endLog(reading, rest),
  }
}

const TORN = 'the last line was cut off; it is set aside'
const NOT_A_RECORD = 'the line is no JSON object with a type; it is set aside'
const NUL_BYTES = 'the line has NUL bytes, as a page lost in a crash leaves; it is set aside'

function takeLine(reading: Reading, text: string): readonly ReadRecord[] {
  reading.line += 1
  const why = problemOf(text)
  if (why !== null) reading.notes.add('bad-json', reading.line, why)
  const { reader } = reading
  return placed(
    reading,
    guarded(reading, () => reader.take(why === null ? text : ''), NONE),
  )
}

function endLog(reading: Reading, rest: string): ReadEnd {
  reading.line += 1
  const isTorn = problemOf(rest) !== null
  if (isTorn) reading.notes.add('torn-line', reading.line, TORN)
  const { reader, notes, meta } = reading
  const found = guarded(reading, () => reader.end(isTorn ? '' : rest), null) ?? reader.end()
  const records = placed(reading, found.records)
  return { records, damage: inLineOrder(found.damage, notes.list), meta: meta.standing }
}

const NONE: readonly SessionRecord[] = []

/** Problems that show without parsing, so that broken lines are cheap. A blank line is no problem. */
function problemOf(text: string): string | null {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (trimmed.includes('\0')) return NUL_BYTES
  const isObjectText = trimmed.startsWith('{') && trimmed.endsWith('}') && trimmed.includes('"type"')
  return isObjectText ? null : NOT_A_RECORD
}

/** Stringifying a line that is nested too deeply overflows the stack: reported as damage. */
function guarded<T>(reading: Reading, read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    reading.notes.add('bad-shape', reading.line, TOO_DEEP)
    return otherwise
  }
}

function placed(reading: Reading, records: readonly SessionRecord[]): readonly ReadRecord[] {
  if (records.length === 0) return NO_RECORDS
  const { lines } = reading.reader
  return records.flatMap((record, index) => {
    const line = lines[index] ?? reading.line
    if (isTooDeep(record)) {
      reading.notes.add('bad-shape', line, TOO_DEEP)
      return []
    }
    note(reading.meta, record)
    return [{ record, line }]
  })
}

function note(meta: MetaNotes, record: SessionRecord): void {
  const fields: { readonly [field: string]: unknown } = { ...record }
  meta.time(fields.timestamp)
  meta.first('cwd', fields.cwd)
  meta.first('forkedFrom', isObject(fields.forkedFrom) ? fields.forkedFrom.sessionId : fields.forkedFrom)
  // A log that continues a copy of another one has the other's id first.
  meta.last('sessionId', fields.sessionId)
  meta.last('version', fields.version)
}

/** Whether Claude Code was restarted at this record: system prompt and tools may then differ. */
export function isClaudeCodeRestart(record: SessionRecord, before: SessionRecord | undefined): boolean {
  return saysStart(record) || saysExit(record) || isOtherVersion(record, before)
}

/** Start hooks leave a record; the one after a compaction is no start. */
function saysStart(record: SessionRecord): boolean {
  const name = [fieldOf(record, 'data'), fieldOf(record, 'attachment')].find(isObject)?.hookName
  return typeof name === 'string' && /^SessionStart:(?!compact)/.test(name)
}

/** A session that continues after `/exit` was restarted. */
function saysExit(record: SessionRecord): boolean {
  const message = fieldOf(record, 'message')
  const content = isObject(message) ? message.content : undefined
  return typeof content === 'string' && /^\s*<command-name>\/(?:exit|quit)<\/command-name>/.test(content)
}

function isOtherVersion(record: SessionRecord, before: SessionRecord | undefined): boolean {
  const [now, then] = [record, before].map((given) => given && fieldOf(given, 'version'))
  return typeof now === 'string' && typeof then === 'string' && now !== then
}

function fieldOf(record: SessionRecord, field: string): unknown {
  return isObject(record) ? record[field] : undefined
}

/** The rule for reminders that the log does not contain. Later versions log them as attachments and need no rule. */
export function claudeCodeReminder(records: Iterable<SessionRecord>): ReminderRule | undefined {
  for (const record of records) if (record.type === 'attachment') return undefined
  return CLAUDE_CODE_REMINDER
}
