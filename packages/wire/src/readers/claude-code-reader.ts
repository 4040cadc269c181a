/** Reads session logs of Claude Code and of Tidemark. Each line of these logs is already a record. */

import { readUserInputs } from '@tidemark/core/facts/user-input'
import { createLogLineReader, type LogLineReader, type LogReaderOptions } from '@tidemark/core/log/decode-log'
import { isObject, parseJson } from '@tidemark/core/log/json'
import type { SessionRecord } from '@tidemark/core/log/record'
import { readAnthropicReport } from '../providers/message-usage.ts'
import {
  createDamageCollector,
  createMetaCollector,
  type DamageCollector,
  type LogEndResult,
  type LogReader,
  type MetaCollector,
  mergeDamage,
  NO_RECORDS,
  type RecordWithLine,
  TOO_DEEP_MESSAGE,
} from './log-reader.ts'

interface RecordReaderState {
  readonly format: 'claude-code' | 'tidemark'
  readonly reader: LogLineReader
  readonly queue: QueuedMessages
  readonly damage: DamageCollector
  readonly meta: MetaCollector
  line: number
}

/** Creates a reader for a log whose lines are records. For Claude Code, queued messages become attachments. */
export function createRecordLogReader(
  format: 'claude-code' | 'tidemark',
  options: Pick<LogReaderOptions, 'keepsRawBlocks'> = {},
): LogReader {
  const reading: RecordReaderState = {
    format,
    reader: createLogLineReader({ ...options, readReport: readAnthropicReport }),
    queue: { waiting: [], dequeued: [], lastUuid: null },
    damage: createDamageCollector(),
    meta: createMetaCollector(),
    line: 0,
  }
  return {
    format,
    readLine: (text) => readLine(reading, text),
    finish: (rest = '') => finishLog(reading, rest),
  }
}

const TORN_LINE = 'the last line was cut off; it is left out'
const NOT_A_RECORD = 'the line is no JSON object with a type; it is left out'
const NUL_BYTES = 'the line has NUL bytes, as a page lost in a crash leaves; it is left out'

function readLine(reading: RecordReaderState, text: string): readonly RecordWithLine[] {
  reading.line += 1
  const why = findLineProblem(text)
  if (why !== null) reading.damage.add('bad-json', reading.line, why)
  else if (text.startsWith(HEADER_START)) readOrigin(reading.meta, text)
  const { reader } = reading
  return withLineNumbers(
    reading,
    catchTooDeep(reading, () => reader.readLine(why === null ? text : ''), NO_SESSION_RECORDS),
  )
}

const HEADER_START = '{"type":"tidemark"'

/** Reads from the header of a copy which log it was copied from. */
function readOrigin(meta: MetaCollector, header: string): void {
  const value = parseJson(header)
  if (isObject(value)) meta.setOrigin(value.copiedFrom)
}

function finishLog(reading: RecordReaderState, rest: string): LogEndResult {
  reading.line += 1
  const isTorn = findLineProblem(rest) !== null
  if (isTorn) reading.damage.add('torn-line', reading.line, TORN_LINE)
  const { reader, damage, meta } = reading
  const found = catchTooDeep(reading, () => reader.finish(isTorn ? '' : rest), null) ?? reader.finish()
  const records = [...withLineNumbers(reading, found.records), ...listWaitingMessages(reading)]
  return { records, damage: mergeDamage(found.damage, damage.list), meta: meta.meta }
}

const NO_SESSION_RECORDS: readonly SessionRecord[] = []

/**
 * Finds an obvious problem of a log line without parsing it, which is cheap. Returns null if there is none or the line
 * is blank.
 */
function findLineProblem(text: string): string | null {
  const trimmed = text.trim()
  if (trimmed === '') return null
  if (trimmed.includes('\0')) return NUL_BYTES
  const isObjectText = trimmed.startsWith('{') && trimmed.endsWith('}') && trimmed.includes('"type"')
  return isObjectText ? null : NOT_A_RECORD
}

/** Runs `read`. If a log line is nested so deeply that the stack overflows, reports damage and returns `otherwise`. */
function catchTooDeep<T>(reading: RecordReaderState, read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    reading.damage.add('bad-shape', reading.line, TOO_DEEP_MESSAGE)
    return otherwise
  }
}

function withLineNumbers(
  reading: RecordReaderState,
  records: readonly SessionRecord[],
): readonly RecordWithLine[] {
  if (records.length === 0) return NO_RECORDS
  const { lineNumbers } = reading.reader
  return records.map((record, index) => {
    const line = lineNumbers[index] ?? reading.line
    collectMeta(reading.meta, record)
    return { record: reading.format === 'tidemark' ? record : readQueue(reading.queue, record, line), line }
  })
}

// Messages that the user sends while the model works are queued. Newer versions log an attachment when the model gets a
// queued message. Older versions log only that a message left the queue, without its text; messages of the user leave
// before notices of programs. A message may still be in the queue when the log ends.

interface QueuedMessages {
  /** The records of messages that wait in the queue, oldest first. */
  waiting: WaitingMessage[]
  /** Contents of messages that left the queue to become prompts, whose records have not been read yet. */
  dequeued: unknown[]
  /** uuid of the newest record of the main conversation, which a queued message follows. */
  lastUuid: string | null
}

interface WaitingMessage {
  readonly record: { readonly [field: string]: unknown }
  readonly line: number
}

/**
 * Returns the record, or an attachment with the queued message if the record only says that the model got a message. A
 * message that the user took back (`popAll`), or that became a prompt (`dequeue`), needs no attachment.
 */
function readQueue(queue: QueuedMessages, given: SessionRecord, line: number): SessionRecord {
  if (typeof given.uuid === 'string' && given.isSidechain !== true) queue.lastUuid = given.uuid
  if (given.type !== 'queue-operation') {
    if (queue.waiting.length + queue.dequeued.length > 0) dropArrivedMessages(queue, given)
    return given
  }
  const record: WaitingMessage['record'] = { ...given }
  const { operation, content } = record
  if (operation === 'enqueue') queue.waiting.push({ record, line })
  if (operation === 'popAll') queue.waiting = []
  if (operation === 'dequeue') queue.dequeued.push(queue.waiting.shift()?.record.content)
  if (operation !== 'remove') return given
  const isNamed = content !== undefined && content !== null
  const at = queue.waiting.findIndex((one) =>
    isNamed ? isSameContent(one.record.content, content) : toQueuedAttachment(queue, one) !== null,
  )
  const [left] = at === -1 && isNamed ? [] : queue.waiting.splice(Math.max(0, at), 1)
  if (isNamed || left === undefined) return given
  return toQueuedAttachment(queue, { record: { ...record, content: left.record.content }, line }) ?? given
}

/**
 * Removes the messages from the queue that a record contains as a prompt or an attachment. A dequeued message has
 * already left the queue; another message with the same text stays.
 */
function dropArrivedMessages({ waiting, dequeued }: QueuedMessages, record: SessionRecord): void {
  for (const { text } of readUserInputs(record)) {
    const isArrived = (content: unknown): boolean =>
      typeof content === 'string' && content.trim() === text.trim()
    const left = dequeued.findIndex(isArrived)
    const at = left === -1 ? waiting.findIndex((one) => isArrived(one.record.content)) : -1
    if (left !== -1) dequeued.splice(left, 1)
    if (at !== -1) waiting.splice(at, 1)
  }
}

function isSameContent(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** Creates the attachment of a queued message; null if it is a notice of a program or a local command. */
function toQueuedAttachment(queue: QueuedMessages, { record, line }: WaitingMessage): SessionRecord | null {
  const { content: prompt, timestamp, sessionId } = record
  const attachment = {
    ...record,
    type: 'attachment',
    uuid: `queued-${line}`,
    parentUuid: queue.lastUuid,
    timestamp: typeof timestamp === 'string' ? timestamp : '',
    sessionId: typeof sessionId === 'string' ? sessionId : '',
    attachment: { type: 'queued_command', prompt, commandMode: 'prompt' },
  } as SessionRecord
  const isMessage = readUserInputs(attachment).some(({ text }) => !LOCAL_COMMAND.test(text))
  return isMessage ? attachment : null
}

const LOCAL_COMMAND = /^\s*\/\S+\s*$/

/** Returns attachments of the messages that still wait when the log ends. The model has not seen them. */
function listWaitingMessages({ format, queue }: RecordReaderState): readonly RecordWithLine[] {
  if (format === 'tidemark') return []
  return queue.waiting.flatMap((waiting) => {
    const record = toQueuedAttachment(queue, waiting)
    if (record === null) return []
    queue.lastUuid = record.uuid ?? null
    return [{ record, line: waiting.line }]
  })
}

function collectMeta(meta: MetaCollector, record: SessionRecord): void {
  const fields = record as unknown as { readonly [field: string]: unknown }
  meta.addTime(fields.timestamp)
  meta.setOnce('cwd', fields.cwd)
  meta.setOnce('forkedFrom', isObject(fields.forkedFrom) ? fields.forkedFrom.sessionId : fields.forkedFrom)
  // A log may begin with a copy of another session, with that session's id. The last id in the log is therefore used.
  meta.set('sessionId', fields.sessionId)
  meta.set('version', fields.version)
  // Tidemark records the context window in force with each prefix snapshot.
  if (isObject(fields.epoch)) meta.setContextWindow(fields.epoch.window)
}

/** Checks whether Claude Code was restarted at this record. A restart may change the system prompt and the tools. */
export function isClaudeCodeRestart(record: SessionRecord, before: SessionRecord | undefined): boolean {
  return isSessionStart(record) || isExitCommand(record) || isVersionChange(record, before)
}

/** Checks whether a record was written by a session start hook, other than the one that runs after a compaction. */
function isSessionStart(record: SessionRecord): boolean {
  const data = readField(record, 'data')
  const hook = isObject(data) ? data : readField(record, 'attachment')
  const name = isObject(hook) ? hook.hookName : undefined
  return typeof name === 'string' && /^SessionStart:(?!compact)/.test(name)
}

/**
 * Checks whether a record is the command `/exit` or `/quit`. If the session continues afterwards, Claude Code was
 * restarted.
 */
function isExitCommand(record: SessionRecord): boolean {
  const message = readField(record, 'message')
  const content = isObject(message) ? message.content : undefined
  return typeof content === 'string' && /^\s*<command-name>\/(?:exit|quit)<\/command-name>/.test(content)
}

function isVersionChange(record: SessionRecord, before: SessionRecord | undefined): boolean {
  const now = readField(record, 'version')
  const then = before === undefined ? undefined : readField(before, 'version')
  return typeof now === 'string' && typeof then === 'string' && now !== then
}

function readField(record: SessionRecord, field: string): unknown {
  return isObject(record) ? record[field] : undefined
}

/**
 * The totals of a session that Claude Code keeps itself and logs from time to time, the last time when it ends. They
 * include all calls of the session so far, also those that are not logged.
 */
export interface ClaudeCodeTotals {
  readonly sessionId: string | null
  readonly costUsd: number
  readonly models: readonly ClaudeCodeModelTotals[]
}

interface ClaudeCodeModelTotals {
  /** The model as Claude Code names it; a long context window is part of the name, as in `claude-opus-5[1m]`. */
  readonly name: string
  readonly costUsd: number
  /** Tokens of all prompts: input, cache reads and cache writes. */
  readonly promptTokens: number
  readonly outputTokens: number
}

/** Reads the totals in a `cost-state` record; null for any other record. */
export function readClaudeCodeTotals(record: SessionRecord): ClaudeCodeTotals | null {
  if (record.type !== 'cost-state') return null
  const costUsd = readField(record, 'totalCostUSD')
  const sessionId = readField(record, 'sessionId')
  const models = readField(record, 'modelUsage')
  if (!isAmount(costUsd)) return null
  return {
    sessionId: typeof sessionId === 'string' ? sessionId : null,
    costUsd,
    models: Object.entries(isObject(models) ? models : {}).flatMap(([name, used]) =>
      isObject(used) ? [toModelTotals(name, used)] : [],
    ),
  }
}

function toModelTotals(name: string, used: { readonly [field: string]: unknown }): ClaudeCodeModelTotals {
  const [costUsd = 0, input = 0, read = 0, written = 0, outputTokens = 0] = [
    used.costUSD,
    used.inputTokens,
    used.cacheReadInputTokens,
    used.cacheCreationInputTokens,
    used.outputTokens,
  ].map((value) => (isAmount(value) ? value : 0))
  return { name, costUsd, promptTokens: input + read + written, outputTokens }
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER
}
