/**
 * Finds a record, tool call, response or blob of one session by its id, and formats records as the text that the history
 * tool shows and searches. Ids of other sessions find nothing.
 */
import { formatAttachmentText } from '../context/context-entry.ts'
import {
  type Block,
  isMediaBlock,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
  toBlocks,
} from '../log/block.ts'
import { isKnownRecord, type KnownRecord, type SessionRecord, type SpilledContent } from '../log/record.ts'
import { findRecordIndex, requireRecordAt, type SessionLog } from '../log/session-log.ts'
import {
  type BlobReader,
  parseBlobBlock,
  readBlobText,
  readSpilledParts,
  restoreSpilledResult,
  restoreSpilledResults,
} from './spill-results.ts'

/** What was found under an id: a record, a tool call with its result, a response or a blob. */
export interface FoundHistoryItem {
  /** One line that describes the found item. */
  readonly heading: string
  /** The full text of the found item, from which pages are cut. */
  readonly text: string
  /** Images and documents of the found item, as content blocks. */
  readonly media: readonly Block[]
  /** True if the item is a blob that is no longer in the store; the heading is then a whole sentence that says so. */
  readonly isMissing?: true
}

interface HistoryStore {
  readonly session: SessionLog
  readonly blobs: BlobReader | null
}

/** Finds an item by the id of a record, tool call, response (`message.id`) or blob. Null if this session has no such id. */
export async function findHistoryItem(shelf: HistoryStore, id: string): Promise<FoundHistoryItem | null> {
  const { session } = shelf
  const place = findRecordIndex(session, id)
  if (place !== undefined) return describeRecords(shelf, [requireRecordAt(session, place)])
  const call = session.callRecords.get(id)
  if (call !== undefined) return describeCall(shelf, id, call)
  const response = session.responseStarts.get(id)
  if (response !== undefined) return describeRecords(shelf, listResponseRecords(session, id, response))
  if (hasSpilled(session, ({ blob }) => blob === id)) return describeBlob(shelf, id)
  // The index of uuids leaves some records out, such as those of a subagent.
  const stray = session.records.findLast(({ uuid }) => uuid === id)
  return stray === undefined ? null : describeRecords(shelf, [stray])
}

function listResponseRecords({ records }: SessionLog, id: string, first: number): readonly SessionRecord[] {
  return records
    .toArray(first)
    .filter((record) => isKnownRecord(record) && record.type === 'assistant' && record.message.id === id)
}

/** Returns a record with the full text of its tool results, read from blobs where they were stored there. */
export async function restoreSpilledRecord(
  { blobs }: HistoryStore,
  record: SessionRecord,
): Promise<SessionRecord> {
  return isKnownRecord(record) && record.type === 'user' ? restoreSpilledResults(record, blobs) : record
}

async function describeRecords(
  shelf: HistoryStore,
  records: readonly SessionRecord[],
): Promise<FoundHistoryItem> {
  const whole = await Promise.all(records.map((record) => restoreSpilledRecord(shelf, record)))
  const [first] = whole
  return {
    heading: first === undefined ? '' : formatRecordHeading(first),
    text: whole.map(formatRecordBody).join('\n'),
    media: whole.flatMap(listMedia),
  }
}

function listMedia(record: SessionRecord): readonly Block[] {
  if (!isKnownRecord(record) || record.type !== 'user') return []
  return toBlocks(record.message.content)
    .flatMap((block) => (isToolResult(block) ? resultParts(block) : [block]))
    .filter(isMediaBlock)
}

function resultParts({ content }: ToolResultBlock): readonly Block[] {
  return typeof content === 'object' ? content : []
}

/** Describes a tool call and its result, without the other blocks of their records. */
async function describeCall(shelf: HistoryStore, id: string, place: number): Promise<FoundHistoryItem> {
  const { session } = shelf
  const calls = listBlocks(requireRecordAt(session, place)).filter(
    (block) => isToolUse(block) && block.id === id,
  )
  const result = await findResult(shelf, id, place)
  const parts = result === null ? [] : resultParts(result)
  return {
    heading: `Tool call ${id}${result === null ? ', which has no result' : ''}`,
    text: [...calls, ...(result === null ? [] : [result])].map(formatBlock).join('\n'),
    media: parts.filter(isMediaBlock),
  }
}

async function findResult(
  { session, blobs }: HistoryStore,
  id: string,
  from: number,
): Promise<ToolResultBlock | null> {
  for (let index = from; index < session.records.length; index += 1) {
    const record = requireRecordAt(session, index)
    const found = listBlocks(record)
      .filter(isToolResult)
      .find((block) => block.tool_use_id === id)
    if (found !== undefined)
      return blobs === null ? found : restoreSpilledResult(found, readSpilledParts(record), blobs)
  }
  return null
}

function listBlocks(record: SessionRecord): readonly Block[] {
  if (!isKnownRecord(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  return toBlocks(record.message.content)
}

function hasSpilled({ records }: SessionLog, isWanted: (spilled: SpilledContent) => boolean): boolean {
  for (const record of records) if (readSpilledParts(record).some(isWanted)) return true
  return false
}

async function describeBlob({ session, blobs }: HistoryStore, id: string): Promise<FoundHistoryItem> {
  const heading = `Blob ${id}`
  const text = blobs === null ? null : await readBlobText(id, blobs)
  if (text === null) {
    const sentence = `${heading} is not in the store any more: only what the conversation shows of it is left.`
    return { heading: sentence, text: '', media: [], isMissing: true }
  }
  const isBlock = hasSpilled(session, ({ blob, holds }) => blob === id && holds === 'block')
  const block = isBlock ? parseBlobBlock(text) : null
  return block === null ? { heading, text, media: [] } : { heading, text: formatBlock(block), media: [block] }
}

// Records as plain text with their ids, as the history tool shows and searches them.

/** Formats a record's id, time and author as one line. */
export function formatRecordHeading(record: SessionRecord): string {
  const { uuid = '(no id)', timestamp = '' } = record
  return `[${uuid}] ${timestamp} ${describeAuthor(record)}`.replaceAll('  ', ' ')
}

function describeAuthor(record: SessionRecord): string {
  if (!isKnownRecord(record)) return record.type
  if (record.type === 'assistant') return 'assistant'
  if (record.type === 'attachment') return `attachment (${record.attachment.type ?? 'unknown'})`
  if (record.type === 'system') return `system (${record.subtype ?? 'notice'})`
  if (record.type === 'progress') return 'progress'
  if (record.isCompactSummary === true) return 'summary'
  if (toBlocks(record.message.content).some(isToolResult)) return 'tool result'
  return record.isMeta === true ? 'user (written by the program)' : 'user'
}

/** Returns the text of a record as it is in the log, with every block; empty if it has none. Blobs are not read. */
export function formatRecordBody(record: SessionRecord): string {
  if (!isKnownRecord(record)) return ''
  if (record.type === 'attachment') return formatAttachmentText(record.attachment)
  if (record.type === 'system') return formatSystemRecord(record)
  if (record.type === 'progress') return ''
  return toBlocks(record.message.content).map(formatBlock).join('\n')
}

function formatSystemRecord(record: KnownRecord & { readonly type: 'system' }): string {
  const { content = '', compactMetadata, microcompactMetadata } = record
  const metadata = compactMetadata ?? microcompactMetadata
  return metadata === undefined ? content : `${content}\n${JSON.stringify(metadata)}`
}

/** Returns a content block as text. Images and documents are shown by their media type only. */
export function formatBlock(block: Block): string {
  if (isTextBlock(block)) return block.text
  if (isThinkingBlock(block))
    return typeof block.thinking === 'string' ? `(thinking) ${block.thinking}` : '(thinking)'
  if (isToolUse(block)) return `(call ${block.id}) ${block.name} ${JSON.stringify(block.input)}`
  if (isToolResult(block)) return formatToolResult(block)
  return isMediaBlock(block) ? formatMedia(block) : JSON.stringify(block)
}

function formatToolResult(block: Block & { readonly tool_use_id: string }): string {
  const { content, is_error } = block
  const parts =
    typeof content === 'string' ? [content] : Array.isArray(content) ? content.map(formatBlock) : []
  return [`(result of ${block.tool_use_id}${is_error === true ? ', an error' : ''})`, ...parts].join('\n')
}

/** Formats an image or document as its media type, without its bytes. */
function formatMedia(block: Block): string {
  const { source } = block
  const kind =
    typeof source === 'object' && source !== null && 'media_type' in source ? source.media_type : ''
  return typeof kind === 'string' && kind !== '' ? `[${block.type} ${kind}]` : `[${block.type}]`
}
