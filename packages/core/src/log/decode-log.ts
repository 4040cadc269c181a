/**
 * Decodes the lines of a log, of any format version, into records. An invalid line is skipped and reported as damage
 * with the reason; the lines after it are still read.
 */
import { TidemarkError } from '../errors.ts'
import {
  abandonBatch,
  addRecordToBatch,
  type BatchState,
  checkBatchStamp,
  createBatchState,
  type Damage,
  type DamageKind,
  type PositionedRecord,
  withoutForeignBatch,
} from './batch.ts'
import { isBlock } from './block.ts'
import {
  findRawBlockTexts,
  isNestedTooDeep,
  isObject,
  MAX_JSON_DEPTH,
  omitUndefined,
  parseJson,
} from './json.ts'
import { isReplyStop, isTokenUsage, type ReadReport, type TokenUsage } from './model-report.ts'
import { type AssistantRecord, isKnownRecord, type SessionRecord, type SystemRecord } from './record.ts'

export type DecodeResult =
  /** A valid record. If a part of its line was invalid and left out, `note` describes that part. */
  | { readonly ok: true; readonly record: SessionRecord; readonly note?: string }
  | { readonly ok: false; readonly why: string }

/** A parsed log line that has not been decoded yet. */
type ParsedLine = { readonly [field: string]: unknown }

/**
 * Returns the record in a parsed log line, or the reason why the line is not a record. Checks only the fields that the
 * engine uses; all other fields are kept unchanged. A record of an unknown type is valid.
 */
export function decodeRecord(value: unknown): DecodeResult {
  if (!isObject(value)) return { ok: false, why: 'a record is a JSON object' }
  if (typeof value.type !== 'string') return { ok: false, why: 'a record says its type' }
  const why = checkRecord(value, value.type)
  if (why !== null) return { ok: false, why }
  const kept = [withoutBadFields, withMetadata, withRepairedBlocks].reduce<RepairedLine>(
    ({ value: given, notes }, repair) => {
      const repaired = repair(given)
      return { value: repaired.value, notes: [...notes, ...repaired.notes] }
    },
    { value, notes: [] },
  )
  const record = kept.value as unknown as SessionRecord
  return kept.notes.length === 0 ? { ok: true, record } : { ok: true, record, note: kept.notes.join('; ') }
}

/** A line without the parts that are not as expected, and a note on each of these. */
interface RepairedLine {
  readonly value: ParsedLine
  readonly notes: readonly string[]
}

function checkRecord(value: ParsedLine, type: string): string | null {
  switch (type) {
    case 'user':
      return checkLinks(value) ?? checkUserMessage(value.message)
    case 'assistant':
      return checkLinks(value) ?? checkAssistantMessage(value.message)
    case 'attachment':
      return (
        checkLinks(value) ?? (isObject(value.attachment) ? null : 'an attachment record has an attachment')
      )
    case 'system':
      return checkLinks(value) ?? checkSystemRecord(value)
    case 'progress':
      return checkLinks(value)
    default:
      return value.uuid == null || typeof value.uuid === 'string' ? null : 'a uuid is a string'
  }
}

const BOOLEAN_FIELDS = [
  'isSidechain',
  'isMeta',
  'isCompactSummary',
  'isVisibleInTranscriptOnly',
  'isApiErrorMessage',
]

function checkLinks(value: ParsedLine): string | null {
  const { uuid, parentUuid } = value
  if (typeof uuid !== 'string' || uuid === '') return 'a record has a uuid'
  if (parentUuid != null && typeof parentUuid !== 'string') return 'parentUuid is a uuid or null'
  const bad = BOOLEAN_FIELDS.find((flag) => value[flag] != null && typeof value[flag] !== 'boolean')
  return bad === undefined ? null : `${bad} is true or false`
}

function checkUserMessage(message: unknown): string | null {
  if (!isObject(message)) return 'a user record has a message'
  if (message.role !== 'user' && message.role !== 'system')
    return 'the role of a user record is user or system'
  return checkContent(message.content)
}

function checkAssistantMessage(message: unknown): string | null {
  if (!isObject(message)) return 'an assistant record has a message'
  if (typeof message.id !== 'string') return 'the message of an assistant record has an id'
  if (typeof message.model !== 'string') return 'the message of an assistant record names its model'
  return checkContent(message.content)
}

const isText = (value: unknown): boolean => typeof value === 'string'

/** Fields that the engine reads and a record need not have, with the check of their type. */
const OPTIONAL_FIELDS: readonly (readonly [string, (value: unknown) => boolean])[] = [
  ['cwd', isText],
  ['timestamp', isText],
  ['sessionId', isText],
  ['subtype', isText],
  ['afterUuid', isText],
  ['compactMetadata', isObject],
  ['microcompactMetadata', isObject],
  ['userInputs', isUserInputs],
]

/** As above, for assistant records only: other programs have other fields of these names. */
const OPTIONAL_RESPONSE_FIELDS: typeof OPTIONAL_FIELDS = [
  ['usage', isTokenUsage],
  ['billed', isTokenUsage],
  ['stop', isReplyStop],
]

export function isUserInputs(value: unknown): boolean {
  return Array.isArray(value) && value.every(isUserInput)
}

function isUserInput(value: unknown): boolean {
  if (!isObject(value) || !['prompt', 'refusal', 'answer'].includes(String(value.kind))) return false
  const { toolUseId = '', text = '', question = null } = value
  if (!isText(toolUseId) || !isText(text)) return false
  if (question === null) return true
  if (!isObject(question) || !isText(question.text)) return false
  const { options = [] } = question
  return Array.isArray(options) && options.every(isText)
}

/** Leaves out each optional field that has another type, so that the rest of the record counts. Null means the same as none. */
function withoutBadFields(value: ParsedLine): RepairedLine {
  const fields =
    value.type === 'assistant' ? [...OPTIONAL_FIELDS, ...OPTIONAL_RESPONSE_FIELDS] : OPTIONAL_FIELDS
  const bad = fields.filter(([field, isGood]) => field in value && !isGood(value[field]))
  const { attachment } = value
  const isTypeBad = isObject(attachment) && 'type' in attachment && !isText(attachment.type)
  if (bad.length === 0 && !isTypeBad) return { value, notes: [] }
  const names = new Set(bad.map(([field]) => field))
  const kept = Object.fromEntries(Object.entries(value).filter(([field]) => !names.has(field)))
  const wrong = bad.flatMap(([field]) =>
    value[field] === null ? [] : [`${field} of another type was left out`],
  )
  if (!isTypeBad) return { value: kept, notes: wrong }
  const { type, ...rest } = attachment
  const notes = type === null ? wrong : [...wrong, 'the type of the attachment is no text and was left out']
  return { value: { ...kept, attachment: rest }, notes }
}

/** Gives a boundary without metadata an empty one, because the kind of a boundary is known by its subtype alone. */
function withMetadata(value: ParsedLine): RepairedLine {
  const lacks = value.subtype === 'compact_boundary' && value.compactMetadata === undefined
  return { value: lacks ? { ...value, compactMetadata: {} } : value, notes: [] }
}

/** Repairs blocks of a message without which the message could not be read: a call without a name, a result that is no text. */
function withRepairedBlocks(value: ParsedLine): RepairedLine {
  const { message } = value
  if (!isObject(message) || !Array.isArray(message.content)) return { value, notes: [] }
  const given: readonly unknown[] = message.content
  const content = given.map(repairBlock)
  if (content.every((block, index) => block === given[index])) return { value, notes: [] }
  return {
    value: { ...value, message: { ...message, content } },
    notes: ['parts of a block that are of another type were left out'],
  }
}

function repairBlock(block: unknown): unknown {
  if (!isObject(block)) return block
  if (block.type === 'tool_use' && !isText(block.name)) return { ...block, name: 'unknown' }
  const { content } = block
  if (block.type !== 'tool_result' || content === undefined || isText(content)) return block
  if (!Array.isArray(content)) return { ...block, content: content === null ? '' : JSON.stringify(content) }
  return content.every(isBlock) ? block : { ...block, content: content.filter(isBlock) }
}

function checkContent(content: unknown): string | null {
  if (typeof content === 'string') return null
  if (!Array.isArray(content)) return 'the content of a message is a string or a list of blocks'
  const bad = content.findIndex((block) => !isBlock(block))
  return bad === -1 ? null : `block ${bad} of the content is an object with a type`
}

/** A field that a system record must have, with the check of it; by subtype. */
type RequiredField = readonly [field: string, accepts: (value: unknown) => boolean, why: string]
const SYSTEM_FIELDS: ReadonlyMap<unknown, RequiredField> = new Map<unknown, RequiredField>([
  ['compact_undone', ['of', isText, 'an undo names the boundary it takes back']],
  ['clear_undone', ['of', isText, 'an undo names the boundary it takes back']],
  ['reply_dropped', ['response', isText, 'a dropped reply has the id of its response']],
  ['pin', ['pin', isPin, 'a pin names its target and says whether it is pinned']],
  ['epoch', ['epoch', isObject, 'an epoch record has an epoch']],
  ['delta', ['delta', isObject, 'a delta record has a delta']],
])

function checkSystemRecord(value: ParsedLine): string | null {
  if (value.subtype === 'compact_boundary') return checkCompactMetadata(value.compactMetadata)
  const [field = '', accepts, why = ''] = SYSTEM_FIELDS.get(value.subtype) ?? []
  return accepts === undefined || accepts(value[field]) ? null : why
}

function checkCompactMetadata(metadata: unknown): string | null {
  if (metadata == null) return null
  if (!isObject(metadata)) return 'compactMetadata is an object'
  const { preservedMessages, unansweredMessages, preservedSegment } = metadata
  if (isInvalidKeptList(preservedMessages)) return 'preservedMessages has an anchorUuid and a list of uuids'
  if (isInvalidKeptList(unansweredMessages)) return 'unansweredMessages has an anchorUuid and a list of uuids'
  if (preservedSegment != null && !isObject(preservedSegment)) return 'preservedSegment is an object'
  return null
}

function isInvalidKeptList(kept: unknown): boolean {
  if (kept == null) return false
  if (!isObject(kept) || typeof kept.anchorUuid !== 'string' || !Array.isArray(kept.uuids)) return true
  return !kept.uuids.every((uuid) => typeof uuid === 'string')
}

function isPin(pin: unknown): boolean {
  return isObject(pin) && isText(pin.target) && typeof pin.pinned === 'boolean'
}

// What the provider reported, in neutral terms.

/**
 * Returns the record with the neutral form of what its provider reported, and a note if that is there and cannot be read.
 * What the record already has of it stays.
 */
export function completeRecord(
  record: SessionRecord,
  read: ReadReport,
): { readonly record: SessionRecord; readonly note?: string } {
  if (!isKnownRecord(record)) return { record }
  if (record.type === 'system') return { record: withCallTokens(record, read) }
  if (record.type !== 'assistant') return { record }
  const report = read(record.message)
  const { usage = report.usage, stop = report.stop } = record
  const billed = record.billed ?? readBilled(record, read)
  const completed = { ...record, ...omitUndefined({ usage, stop, billed }) }
  if (usage !== undefined || record.message.usage == null) return { record: completed }
  const { usage: _, ...message } = completed.message
  return { record: { ...completed, message }, note: 'usage that is no figures was left out' }
}

function readBilled({ billedUsage }: AssistantRecord, read: ReadReport): TokenUsage | undefined {
  return billedUsage === undefined ? undefined : read({ usage: billedUsage }).usage
}

function withCallTokens(record: SystemRecord, read: ReadReport): SystemRecord {
  const { modelCall } = record
  if (!isObject(modelCall) || isTokenUsage(modelCall.tokens)) return record
  return { ...record, modelCall: { ...modelCall, ...omitUndefined({ tokens: read(modelCall).usage }) } }
}

// Format versions. The first line of a log names its format version. Lines of an older version are converted each time
// they are read; the file is never rewritten.

/** The header line, which names the format version. It is the first line of a log, and is not a record. */
interface LogHeader {
  readonly type: 'tidemark'
  readonly format: 'tidemark-session'
  readonly version: number
  readonly sessionId: string
  readonly timestamp: string
}

/** Converts a parsed log line from one format version to the next. */
export type Upcast = (line: ParsedLine) => ParsedLine

/**
 * Conversions between format versions: `UPCASTS[0]` converts version 1 to 2. The current version is their number plus
 * one.
 */
const UPCASTS: readonly Upcast[] = []

export const LOG_VERSION: number = UPCASTS.length + 1

export function createLogHeader(sessionId: string, timestamp: string): LogHeader {
  return { type: 'tidemark', format: 'tidemark-session', version: LOG_VERSION, sessionId, timestamp }
}

export function isLogHeader(line: ParsedLine): boolean {
  return line.type === 'tidemark'
}

/**
 * Returns the format version named in a header line, or null if the header is invalid. Throws `newer-format` if the
 * version is newer than this code supports.
 */
export function readLogVersion(header: ParsedLine, upcasts: readonly Upcast[] = UPCASTS): number | null {
  const { format, version } = header
  if (format !== 'tidemark-session' || !isVersionNumber(version)) return null
  const known = upcasts.length + 1
  if (version <= known) return version
  throw new TidemarkError(
    'newer-format',
    `This session was written in format version ${version}, and this tidemark reads up to version ${known}: update tidemark to open it.`,
    { details: { version, known } },
  )
}

/** Converts a parsed log line from format version `version` to the current version. */
export function upcastLine(line: ParsedLine, version: number, upcasts: readonly Upcast[] = UPCASTS): unknown {
  let present: unknown = line
  for (let step = version; step <= upcasts.length && isObject(present); step += 1)
    present = upcasts[step - 1]?.(present)
  return present
}

function isVersionNumber(version: unknown): version is number {
  return Number.isSafeInteger(version) && Number(version) >= 1
}

// Reads the lines of a session log into records. Tidemark or another tool may have written the log. Unreadable lines
// are reported as damage; only a log of a newer format version throws.

export interface LogLineReader {
  /** Reads the next line, without newline. Returns the records that are valid now; an incomplete batch is held back. */
  readLine(line: string): readonly SessionRecord[]
  /** Ends reading. `rest` is the text after the last newline. Returns the records held back so far, and all damage. */
  finish(rest?: string): LogReadResult
  /** Line number of each record that the last `readLine` or `finish` call returned. */
  readonly lineNumbers: readonly number[]
}

export interface LogReadResult {
  readonly records: readonly SessionRecord[]
  /** Position in the log of the last valid record. Records of other tools have no position and are numbered from 1. */
  readonly position: number
  readonly damage: readonly Damage[]
  /** Format version in the newest header; null for another tool's log, or if no header is readable. */
  readonly version: number | null
  /** False if the file is not a log: it has no record and no header, and does not look like a log that was cut off. */
  readonly isLog: boolean
  /** The place in the log from which a later read can continue; null if a later read must start at the beginning. */
  readonly resume: LogResumePoint | null
}

/** A place between two lines of a log, with the state that a reader needs to continue from there. */
export interface LogResumePoint {
  /** Number of lines before this place in the log. */
  readonly line: number
  readonly position: number
  readonly version: number | null
}

export interface LogReaderOptions {
  readonly upcasts?: readonly Upcast[]
  /** The place in the log to start reading at. Default: the beginning. */
  readonly start?: LogResumePoint
  /** Return only the records after this position in the log. Default: all records. */
  readonly from?: number
  /** Keep the exact text of blocks (`rawBlocks`), which only requests need; false reads faster. Default: true. */
  readonly keepsRawBlocks?: boolean
  /** Reads what the provider reported with a response. Default: records have only the provider's own fields. */
  readonly readReport?: ReadReport
}

interface ReaderState {
  readonly readReport: ReadReport | undefined
  readonly keepsRawBlocks: boolean
  readonly upcasts: readonly Upcast[]
  readonly gathering: BatchState
  readonly from: number
  lines: readonly number[]
  line: number
  version: number | null
  isRecognised: boolean
  isForeign: boolean
}

const NO_RECORDS: readonly PositionedRecord[] = []

export function createLogLineReader(options: LogReaderOptions = {}): LogLineReader {
  const { upcasts = UPCASTS, start, from = 0, keepsRawBlocks = true, readReport } = options
  const reading: ReaderState = {
    readReport,
    keepsRawBlocks,
    upcasts,
    gathering: createBatchState(start?.position ?? 0),
    from,
    lines: [],
    line: start?.line ?? 0,
    version: start?.version ?? null,
    isRecognised: start !== undefined,
    isForeign: false,
  }
  return {
    readLine: (line) => selectRecords(reading, readLine(reading, line, 'bad-json')),
    finish: (rest = '') => finishLog(reading, rest),
    get lineNumbers() {
      return reading.lines
    },
  }
}

function selectRecords(reading: ReaderState, counted: readonly PositionedRecord[]): readonly SessionRecord[] {
  const given = counted.filter(({ position }) => position > reading.from)
  reading.lines = given.map(({ line }) => line)
  return given.map(({ record }) => record)
}

function finishLog(reading: ReaderState, rest: string): LogReadResult {
  const { gathering, line } = reading
  // A later read cannot start inside a batch.
  const canResume = rest === '' && reading.isRecognised && gathering.openBatch === null
  const resume = canResume ? { line, position: gathering.position, version: reading.version } : null
  const records = selectRecords(reading, [
    ...readLine(reading, rest, 'torn-line'),
    ...abandonBatch(gathering),
  ])
  const { position, damage } = gathering
  const { version, isRecognised, isForeign } = reading
  return { records, position, damage, version, isLog: isRecognised || !isForeign, resume }
}

/** Reads one line. `whenUnreadable` is the damage to report if the line is not JSON; only a last line is `torn-line`. */
function readLine(
  reading: ReaderState,
  text: string,
  whenUnreadable: DamageKind,
): readonly PositionedRecord[] {
  reading.line += 1
  const line = reading.line === 1 && text.startsWith('\uFEFF') ? text.slice(1) : text
  const value = parseJson(line)
  if (value !== undefined) return readValue(reading, value, line)
  if (line.trim() === '') return NO_RECORDS
  // After a crash, a log may begin with an incomplete JSON object or with NUL bytes. Such a file still counts as a log.
  const looksTorn = line.startsWith('\0') || line.trimStart().startsWith('{')
  if (!looksTorn) reading.isForeign = true
  reportDamage(reading, whenUnreadable, describeUnreadableLine(line, whenUnreadable))
  // After a crash, NUL bytes may have replaced the newline before a complete line, so the text after them is parsed
  // too.
  const afterHole = line.slice(line.lastIndexOf('\0') + 1)
  const rescued = afterHole === line ? undefined : parseJson(afterHole)
  return isObject(rescued) ? readValue(reading, rescued, afterHole) : NO_RECORDS
}

function describeUnreadableLine(line: string, kind: DamageKind): string {
  if (line.includes('\0'))
    return 'the line has NUL bytes, as a page lost in a crash leaves; what precedes them is left out'
  const what = kind === 'torn-line' ? 'the last line was cut off' : 'the line is not JSON'
  return `${what}; it is left out`
}

function readValue(reading: ReaderState, value: unknown, line: string): readonly PositionedRecord[] {
  if (!isObject(value)) return skipLine(reading, 'a record is a JSON object; the line is left out')
  // Each level of nesting takes at least two characters, so most lines are too short to exceed the depth limit.
  if (line.length > 2 * MAX_JSON_DEPTH && isNestedTooDeep(value)) return skipLine(reading, TOO_DEEP)
  if (isLogHeader(value)) return readHeader(reading, value)
  const { version, upcasts } = reading
  const decoded = decodeRecord(version === null ? value : upcastLine(value, version, upcasts))
  const why = decoded.ok ? checkBatchStamp(decoded.record) : decoded.why
  if (!decoded.ok || why !== null) return skipLine(reading, `${why}; the line is left out`)
  reading.isRecognised = true
  const { readReport } = reading
  const exact = reading.keepsRawBlocks ? withRawBlocks(decoded.record, line) : decoded.record
  const { record, note } = readReport === undefined ? { record: exact } : completeRecord(exact, readReport)
  const notes = [note, decoded.note].filter((text) => text !== undefined)
  if (notes.length > 0) reportDamage(reading, 'bad-shape', notes.join('; '))
  return addRecordToBatch(reading.gathering, withoutForeignBatch(record), reading.line)
}

const TOO_DEEP = `the line is nested more than ${MAX_JSON_DEPTH} levels deep; it is left out`

/**
 * For a log line of another tool: adds the exact JSON text of each block that parse and stringify would change.
 * Tidemark's own lines already contain these texts.
 */
function withRawBlocks(record: SessionRecord, line: string): SessionRecord {
  if (record.seq != null || JSON.stringify(record) === line) return record
  const rawBlocks = findRawBlockTexts(line)
  return rawBlocks.length === 0 ? record : { ...record, rawBlocks }
}

/** Reads a header line. If its version is already in use, it may be a duplicate, so an incomplete batch may go on. */
function readHeader(reading: ReaderState, header: ParsedLine): readonly PositionedRecord[] {
  const version = readLogVersion(header, reading.upcasts)
  if (version === null)
    return skipLine(
      reading,
      'a header names the format tidemark-session and its version; the line is left out',
    )
  const { gathering } = reading
  const waiting = version === reading.version ? NO_RECORDS : abandonBatch(gathering)
  if (gathering.openBatch !== null) gathering.openBatch.isPastHeader = true
  reading.version = version
  reading.isRecognised = true
  return waiting
}

function skipLine(reading: ReaderState, why: string): readonly PositionedRecord[] {
  reading.isForeign = true
  reportDamage(reading, 'bad-shape', why)
  return NO_RECORDS
}

function reportDamage(reading: ReaderState, kind: DamageKind, why: string): void {
  reading.gathering.damage.push({ kind, line: reading.line, why })
}
