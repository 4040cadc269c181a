/** Decodes a parsed log line of any format version into a record. A refused line comes with the reason. */
import { TidemarkError } from '../errors.ts'
import { isBlock } from './block.ts'
import { isObject } from './json.ts'
import type { SessionRecord } from './record.ts'

export type DecodeResult =
  /** A valid record. `note` names the part of the line that was left out, if any. */
  | { readonly ok: true; readonly record: SessionRecord; readonly note?: string }
  | { readonly ok: false; readonly why: string }

type LineFields = { readonly [key: string]: unknown }

/**
 * Returns the record of a parsed line, or the reason why the line is not a record. Checks only the fields that the
 * engine relies on and keeps all others unchanged. A line of an unknown type is a record too.
 */
export function decodeRecord(value: unknown): DecodeResult {
  if (!isObject(value)) return rejectLine('a record is a JSON object')
  if (typeof value.type !== 'string') return rejectLine('a record says its type')
  const why = checkRecord(value, value.type)
  if (why !== null) return rejectLine(why)
  const { value: kept, ...note } = withoutBadUsage(value)
  return { ok: true, record: kept as unknown as SessionRecord, ...note }
}

function checkRecord(value: LineFields, type: string): string | null {
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

function checkLinks(value: LineFields): string | null {
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

const USAGE_FIGURES = [
  'input_tokens',
  'output_tokens',
  'cache_creation_input_tokens',
  'cache_read_input_tokens',
]

/** Drops the usage of an assistant record if one of its token counts is not a number; the record itself stays. */
function withoutBadUsage(value: LineFields): { readonly value: LineFields; readonly note?: string } {
  const { message } = value
  if (value.type !== 'assistant' || !isObject(message) || message.usage == null) return { value }
  const { usage, ...rest } = message
  if (
    isObject(usage) &&
    USAGE_FIGURES.every((field) => usage[field] == null || typeof usage[field] === 'number')
  )
    return { value }
  return { value: { ...value, message: rest }, note: 'usage that is no figures was left out' }
}

function checkContent(content: unknown): string | null {
  if (typeof content === 'string') return null
  if (!Array.isArray(content)) return 'the content of a message is a string or a list of blocks'
  const bad = content.findIndex((block) => !isBlock(block))
  return bad === -1 ? null : `block ${bad} of the content is an object with a type`
}

function checkSystemRecord(value: LineFields): string | null {
  switch (value.subtype) {
    case 'compact_boundary':
      return checkCompactMetadata(value.compactMetadata)
    case 'compact_undone':
    case 'clear_undone':
      return typeof value.of === 'string' ? null : 'an undo names the boundary it takes back'
    case 'pin':
      return checkPin(value.pin)
    case 'epoch':
      return isObject(value.epoch) ? null : 'an epoch record has an epoch'
    case 'delta':
      return isObject(value.delta) ? null : 'a delta record has a delta'
    default:
      return null
  }
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

function checkPin(pin: unknown): string | null {
  const good = isObject(pin) && typeof pin.target === 'string' && typeof pin.pinned === 'boolean'
  return good ? null : 'a pin names its target and says whether it is pinned'
}

function rejectLine(why: string): DecodeResult {
  return { ok: false, why }
}

// Format versions. The first line of a log states its version. Lines of older versions are upcast when they are read;
// the file is never rewritten.

/** The header line: the first line of a log, and of every later part written in another version. It has no position. */
interface LogHeader {
  readonly type: 'tidemark'
  readonly format: 'tidemark-session'
  readonly version: number
  readonly sessionId: string
  readonly timestamp: string
}

/** A parsed log line that has not been decoded yet. */
export type ParsedLine = { readonly [field: string]: unknown }

/** Converts a parsed log line of one format version to the next version. */
export type Upcast = (line: ParsedLine) => ParsedLine

/** The upcasts in order: `UPCASTS[0]` converts version 1 to version 2. The current version is their number plus one. */
export const UPCASTS: readonly Upcast[] = []

export const LOG_VERSION: number = UPCASTS.length + 1

export function createLogHeader(sessionId: string, timestamp: string): LogHeader {
  return { type: 'tidemark', format: 'tidemark-session', version: LOG_VERSION, sessionId, timestamp }
}

export function isLogHeader(line: ParsedLine): boolean {
  return line.type === 'tidemark'
}

/**
 * Returns the format version in a header, or null if the header is invalid. Throws `newer-format` for a version that
 * is newer than this code knows.
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
