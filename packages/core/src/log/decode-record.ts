/**
 * Decodes a parsed log line into a record. A line with an invalid required field is no record; an invalid optional field or
 * part is left out, with a note. `withReplyReport` then adds the neutral form of what the provider reported.
 */
import { isBlock } from './block.ts'
import { isObject, omitUndefined } from './json.ts'
import { type AssistantRecord, isKnownRecord, type SessionRecord, type SystemRecord } from './record.ts'
import { isReplyStop, isTokenUsage, type ReplyReportReader, type TokenUsage } from './reply-report.ts'

export type DecodeResult =
  /** A valid record. If a part of its line was invalid and left out, `note` describes that part. */
  | { readonly ok: true; readonly record: SessionRecord; readonly note?: string }
  | { readonly ok: false; readonly why: string }

/** A parsed log line that has not been decoded yet. */
export type ParsedLine = { readonly [field: string]: unknown }

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
  ['userInputs', isUserInputList],
]

/** Optional fields of assistant records only, since in other records other programs have other fields of these names. */
const OPTIONAL_RESPONSE_FIELDS: typeof OPTIONAL_FIELDS = [
  ['usage', isTokenUsage],
  ['billed', isTokenUsage],
  ['stop', isReplyStop],
]

/** Checks a value of the field `userInputs`: a list of user inputs of known kinds. */
export function isUserInputList(value: unknown): boolean {
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
 * Returns the record with the neutral form of what its provider reported, and a note if the report cannot be read.
 * Parts of that form that the record already has stay.
 */
export function withReplyReport(
  record: SessionRecord,
  read: ReplyReportReader,
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

function readBilled({ billedUsage }: AssistantRecord, read: ReplyReportReader): TokenUsage | undefined {
  return billedUsage === undefined ? undefined : read({ usage: billedUsage }).usage
}

function withCallTokens(record: SystemRecord, read: ReplyReportReader): SystemRecord {
  const { modelCall } = record
  if (!isObject(modelCall) || isTokenUsage(modelCall.tokens)) return record
  return { ...record, modelCall: { ...modelCall, ...omitUndefined({ tokens: read(modelCall).usage }) } }
}
