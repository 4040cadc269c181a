/**
 * Reads a Codex rollout (Codex's session log). Response items become conversation records; other lines become records
 * of their own type at the same place.
 */
import { isNestedTooDeep, isObject, parseJson } from '@tidemark/core/log/json'
import { toCompactionRecords } from './codex-compaction.ts'
import {
  type CodexSurroundings,
  EMPTY_RESPONSE,
  isCodexInputItem,
  type ParsedCodexItem,
  type PendingCodexLine,
  readAgentMessage,
  readCodexItem,
} from './codex-items.ts'
import { type CodexLine, type JsonFields, parseCodexLine } from './codex-line.ts'
import {
  type CodexRecordState,
  collectSessionMeta,
  createCodexRecordState,
  rollBackTurns,
  toResponseRecords,
} from './codex-records.ts'
import {
  createResponseGrouper,
  createUsageReader,
  type GroupedResponse,
  type ResponseGrouper,
  type UsageReader,
} from './codex-responses.ts'
import { createUniqueCallIds, type UniqueCallIds } from './codex-tools.ts'
import {
  createDamageCollector,
  createMetaCollector,
  type DamageCollector,
  type LogReader,
  type MetaCollector,
  NO_RECORDS,
  type RecordWithLine,
  TOO_DEEP_MESSAGE,
} from './log-reader.ts'

interface CodexReaderState {
  readonly damage: DamageCollector
  readonly meta: MetaCollector
  readonly ids: UniqueCallIds
  readonly counts: UsageReader
  readonly responses: ResponseGrouper
  readonly log: CodexRecordState
  line: number
  timestamp: string
  model: string
  surroundings: CodexSurroundings
  /** True if the user has sent a prompt in the current turn. */
  hasUserPrompt: boolean
}

export function createCodexReader(): LogReader {
  const counts = createUsageReader()
  const reading: CodexReaderState = {
    damage: createDamageCollector(),
    meta: createMetaCollector(),
    ids: createUniqueCallIds(),
    counts,
    responses: createResponseGrouper(() => counts.hasUsage),
    log: createCodexRecordState(),
    line: 0,
    timestamp: '',
    model: 'unknown',
    surroundings: {},
    hasUserPrompt: false,
  }
  return {
    format: 'codex',
    readLine: (text) => readText(reading, text, 'bad-json'),
    finish(rest = '') {
      const last = readText(reading, rest, 'torn-line')
      const records = [...last, ...toRecords(reading, reading.responses.close())]
      return { records, damage: reading.damage.list, meta: reading.meta.meta }
    },
  }
}

const UNREADABLE_MESSAGES = {
  'bad-json': 'the line is not JSON; it is left out',
  'torn-line': 'the last line was cut off; it is left out',
} as const

function readText(
  reading: CodexReaderState,
  text: string,
  kind: keyof typeof UNREADABLE_MESSAGES,
): readonly RecordWithLine[] {
  reading.line += 1
  const trimmed = text.trim()
  if (trimmed === '') return NO_RECORDS
  const value = parseJson(trimmed)
  if (value === undefined) return reportDamage(reading, kind, UNREADABLE_MESSAGES[kind])
  if (isNestedTooDeep(value)) return reportDamage(reading, 'bad-shape', TOO_DEEP_MESSAGE)
  const line = isObject(value) ? parseCodexLine(value) : null
  if (line === null || RESERVED_TYPES.has(line.type)) return reportDamage(reading, 'bad-shape', BAD_LINE)
  return readLine(reading, line)
}

const BAD_LINE = 'a line of a rollout has a type and a payload; the line is left out'

/**
 * Line types that have another meaning in Tidemark's own logs. A Codex line with one of these types is reported as
 * damage.
 */
const RESERVED_TYPES = new Set(['user', 'assistant', 'attachment', 'system', 'progress', 'tidemark'])

function reportDamage(
  reading: CodexReaderState,
  kind: 'bad-json' | 'torn-line' | 'bad-shape',
  why: string,
): readonly RecordWithLine[] {
  reading.damage.add(kind, reading.line, why)
  return NO_RECORDS
}

function readLine(reading: CodexReaderState, line: CodexLine): readonly RecordWithLine[] {
  const { payload } = line
  reading.timestamp = line.timestamp ?? reading.timestamp
  reading.meta.addTime(line.timestamp)
  switch (line.type) {
    case 'session_meta':
      if (reading.meta.meta.sessionId === null) readSurroundings(reading, payload)
      collectSessionMeta(payload, reading.meta, reading.log)
      return keepLine(reading, line)
    case 'turn_context':
      readModel(reading, payload)
      return keepLine(reading, line)
    case 'response_item':
      return addItem(reading, line, readCodexItem(payload, reading.ids))
    case 'inter_agent_communication':
      return addItem(reading, line, readAgentMessage(payload))
    case 'token_usage_record':
      return [...readUsage(reading, line), ...keepLine(reading, line)]
    case 'event_msg':
      return readEvent(reading, line)
    case 'compacted':
      return readCompaction(reading, line)
    default:
      return keepLine(reading, line)
  }
}

function addItem(
  reading: CodexReaderState,
  line: CodexLine,
  part: ParsedCodexItem,
): readonly RecordWithLine[] {
  if (part.from === 'unreadable') return reportDamage(reading, 'bad-shape', part.why)
  const before = isCodexInputItem(part) ? reading.responses.close() : []
  reading.hasUserPrompt ||= part.from === 'user'
  return toRecords(reading, [...before, ...reading.responses.add(createPendingRecord(reading, line, part))])
}

function keepLine(reading: CodexReaderState, line: CodexLine): readonly RecordWithLine[] {
  return toRecords(reading, reading.responses.add(createPendingRecord(reading, line, { from: 'other' })))
}

/** Types of events that start or end a turn. They also end the current model response. */
const TURN_EVENTS = new Set([
  'task_started',
  'task_complete',
  'turn_started',
  'turn_complete',
  'turn_aborted',
])

function readEvent(reading: CodexReaderState, line: CodexLine): readonly RecordWithLine[] {
  const { type, num_turns: turns } = line.payload
  if (type === 'token_count') return [...readUsage(reading, line), ...keepLine(reading, line)]
  reading.meta.setContextWindow(line.payload.model_context_window)
  if (type === 'thread_settings_applied') readModel(reading, line.payload)
  const isEdge = type === 'thread_rolled_back' || (typeof type === 'string' && TURN_EVENTS.has(type))
  if (!isEdge) return keepLine(reading, line)
  const before = toRecords(reading, reading.responses.close())
  reading.hasUserPrompt = false
  if (type === 'thread_rolled_back' && typeof turns === 'number') rollBackTurns(reading.log, turns)
  return [...before, ...keepLine(reading, line)]
}

function readUsage(reading: CodexReaderState, line: CodexLine): readonly RecordWithLine[] {
  const { counts, responses, meta } = reading
  const { info } = line.payload
  if (isObject(info)) meta.setContextWindow(info.model_context_window)
  const count = counts.read(line.payload, responses.isIdle)
  if (count === null) return NO_RECORDS
  return toRecords(reading, responses.addUsage(count, createPendingRecord(reading, line, EMPTY_RESPONSE)))
}

/**
 * Converts a compaction line to records. The trigger is `manual` if the turn has no user prompt, because the user then
 * requested the compaction; otherwise `auto`.
 */
function readCompaction(reading: CodexReaderState, line: CodexLine): readonly RecordWithLine[] {
  const before = toRecords(reading, reading.responses.close())
  const trigger = reading.hasUserPrompt ? 'auto' : 'manual'
  const at = { ...createPendingRecord(reading, line, { from: 'other' }), trigger } as const
  return [...before, ...toCompactionRecords(reading.log, line.payload, at)]
}

function createPendingRecord(
  reading: CodexReaderState,
  source: CodexLine,
  part: PendingCodexLine['item'],
): PendingCodexLine {
  const { line, timestamp, model, surroundings } = reading
  return { line, timestamp, model, surroundings, item: part, source }
}

function readModel(reading: CodexReaderState, payload: JsonFields): void {
  const { model, cwd } = payload
  if (typeof model === 'string' && model !== '') reading.model = model
  reading.meta.setOnce('cwd', cwd)
  readSurroundings(reading, payload)
}

/** Reads the working directory, which each turn may change, and the Git branch, which only the header has. */
function readSurroundings(reading: CodexReaderState, { cwd, git }: JsonFields): void {
  const branch = isObject(git) ? git.branch : undefined
  const hasFolder = typeof cwd === 'string' && cwd !== '' && cwd !== reading.surroundings.cwd
  if (hasFolder) reading.surroundings = { ...reading.surroundings, cwd }
  if (typeof branch === 'string' && branch !== '')
    reading.surroundings = { ...reading.surroundings, gitBranch: branch }
}

function toRecords(
  reading: CodexReaderState,
  responses: readonly GroupedResponse[],
): readonly RecordWithLine[] {
  return responses.flatMap((response) => toResponseRecords(reading.log, response))
}
