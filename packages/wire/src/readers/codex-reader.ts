/** Reads a Codex rollout: its items become records; all other lines keep their place under their own type. */
import { isObject, isTooDeep, readJson } from '@tidemark/core'
import { compactionRecords } from './codex-compaction.ts'
import { communicationPart, type Draft, isInput, type Part, partOf, SILENCE } from './codex-items.ts'
import { type CodexLine, codexLineOf, type Fields } from './codex-line.ts'
import { type CodexLog, emptyLog, noteSession, placeResponse, rollBack } from './codex-log.ts'
import {
  createResponses,
  createTokenCounts,
  type Response,
  type Responses,
  type TokenCounts,
} from './codex-responses.ts'
import { type CallIds, createCallIds } from './codex-tools.ts'
import {
  createDamageNotes,
  createMetaNotes,
  type DamageNotes,
  type LogReader,
  type MetaNotes,
  NO_RECORDS,
  type ReadRecord,
  TOO_DEEP,
} from './log-reader.ts'

interface Reading {
  readonly damage: DamageNotes
  readonly meta: MetaNotes
  readonly ids: CallIds
  readonly counts: TokenCounts
  readonly responses: Responses
  readonly log: CodexLog
  line: number
  timestamp: string
  model: string
  /** Whether the current turn has a user prompt. */
  isPrompted: boolean
}

export function createCodexReader(): LogReader {
  const counts = createTokenCounts()
  const reading: Reading = {
    damage: createDamageNotes(),
    meta: createMetaNotes(),
    ids: createCallIds(),
    counts,
    responses: createResponses(() => counts.areTold),
    log: emptyLog(),
    line: 0,
    timestamp: '',
    model: 'unknown',
    isPrompted: false,
  }
  return {
    format: 'codex',
    line: (text) => takeText(reading, text, 'bad-json'),
    end(rest = '') {
      const last = takeText(reading, rest, 'torn-line')
      const records = [...last, ...placed(reading, reading.responses.close())]
      return { records, damage: reading.damage.list, meta: reading.meta.standing }
    },
  }
}

const UNREADABLE = {
  'bad-json': 'the line is not JSON; it is set aside',
  'torn-line': 'the last line was cut off; it is set aside',
} as const

function takeText(reading: Reading, text: string, kind: keyof typeof UNREADABLE): readonly ReadRecord[] {
  reading.line += 1
  const trimmed = text.trim()
  if (trimmed === '') return NO_RECORDS
  const value = readJson(trimmed)
  if (value === undefined) return refuse(reading, kind, UNREADABLE[kind])
  if (isTooDeep(value)) return refuse(reading, 'bad-shape', TOO_DEEP)
  const line = isObject(value) ? codexLineOf(value) : null
  if (line === null || RECORD_TYPES.has(line.type)) return refuse(reading, 'bad-shape', NO_LINE)
  return takeLine(reading, line)
}

const NO_LINE = 'a line of a rollout has a type and a payload; the line is set aside'

/** Types that have another meaning in our own logs. */
const RECORD_TYPES = new Set(['user', 'assistant', 'attachment', 'system', 'progress', 'tidemark'])

function refuse(
  reading: Reading,
  kind: 'bad-json' | 'torn-line' | 'bad-shape',
  why: string,
): readonly ReadRecord[] {
  reading.damage.add(kind, reading.line, why)
  return NO_RECORDS
}

function takeLine(reading: Reading, line: CodexLine): readonly ReadRecord[] {
  const { payload } = line
  reading.timestamp = line.timestamp ?? reading.timestamp
  reading.meta.time(line.timestamp)
  switch (line.type) {
    case 'session_meta':
      noteSession(payload, reading.meta, reading.log)
      return kept(reading, line)
    case 'turn_context':
      noteModel(reading, payload)
      return kept(reading, line)
    case 'response_item':
      return takePart(reading, line, partOf(payload, reading.ids))
    case 'inter_agent_communication':
      return takePart(reading, line, communicationPart(payload))
    case 'token_usage_record':
      return [...takeCount(reading, line), ...kept(reading, line)]
    case 'event_msg':
      return takeEvent(reading, line)
    case 'compacted':
      return takeCompaction(reading, line)
    default:
      return kept(reading, line)
  }
}

function takePart(reading: Reading, line: CodexLine, part: Part): readonly ReadRecord[] {
  if (part.from === 'unreadable') return refuse(reading, 'bad-shape', part.why)
  const before = isInput(part) ? reading.responses.close() : []
  reading.isPrompted ||= part.from === 'user'
  return placed(reading, [...before, ...reading.responses.take(draftOf(reading, line, part))])
}

function kept(reading: Reading, line: CodexLine): readonly ReadRecord[] {
  return placed(reading, reading.responses.take(draftOf(reading, line, { from: 'other' })))
}

/** Events that end a turn: no response continues across them. */
const TURN_EVENTS = new Set([
  'task_started',
  'task_complete',
  'turn_started',
  'turn_complete',
  'turn_aborted',
])

function takeEvent(reading: Reading, line: CodexLine): readonly ReadRecord[] {
  const { type, num_turns: turns } = line.payload
  if (type === 'token_count') return [...takeCount(reading, line), ...kept(reading, line)]
  reading.meta.window(line.payload.model_context_window)
  if (type === 'thread_settings_applied') noteModel(reading, line.payload)
  const isEdge = type === 'thread_rolled_back' || (typeof type === 'string' && TURN_EVENTS.has(type))
  if (!isEdge) return kept(reading, line)
  const before = placed(reading, reading.responses.close())
  reading.isPrompted = false
  if (type === 'thread_rolled_back' && typeof turns === 'number') rollBack(reading.log, turns)
  return [...before, ...kept(reading, line)]
}

function takeCount(reading: Reading, line: CodexLine): readonly ReadRecord[] {
  const { counts, responses, meta } = reading
  const { info } = line.payload
  if (isObject(info)) meta.window(info.model_context_window)
  const count = counts.take(line.payload, responses.isResting)
  if (count === null) return NO_RECORDS
  return placed(reading, responses.counted(count, draftOf(reading, line, SILENCE)))
}

/** The user requested it if the turn has no other prompt. */
function takeCompaction(reading: Reading, line: CodexLine): readonly ReadRecord[] {
  const before = placed(reading, reading.responses.close())
  const trigger = reading.isPrompted ? 'auto' : 'manual'
  const at = { ...draftOf(reading, line, { from: 'other' }), trigger } as const
  return [...before, ...compactionRecords(reading.log, line.payload, at)]
}

function draftOf(reading: Reading, source: CodexLine, part: Draft['part']): Draft {
  const { line, timestamp, model } = reading
  return { line, timestamp, model, part, source }
}

function noteModel(reading: Reading, { model, cwd }: Fields): void {
  if (typeof model === 'string' && model !== '') reading.model = model
  reading.meta.first('cwd', cwd)
}

function placed(reading: Reading, responses: readonly Response[]): readonly ReadRecord[] {
  return responses.flatMap((response) => placeResponse(reading.log, response))
}
