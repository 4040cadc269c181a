/** Finds a record, tool call, response or blob of this session by its id. Ids of other sessions find nothing. */

import { textOfAttachment } from '../context/entry.ts'
import {
  type Block,
  blocksOf,
  isMedia,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  type ToolResultBlock,
} from '../log/block.ts'
import { isKnown, type KnownRecord, type SessionRecord, type Spilled } from '../log/record.ts'
import { placeOf, recordAt, type Session } from '../log/session.ts'
import { type BlobReader, blockIn, restoreRecord, restoreResult, spilledOf, textOfBlob } from './spill.ts'

export interface Found {
  /** One line that describes it. */
  readonly heading: string
  /** The full text, from which pages are cut. */
  readonly text: string
  /** Images and documents, as blocks. */
  readonly media: readonly Block[]
}

interface Shelf {
  readonly session: Session
  readonly blobs: BlobReader | null
}

/** `id`: a record's uuid, a tool call's id, a response's `message.id` or a blob's id. Null if this session has no such id. */
export async function lookUp(shelf: Shelf, id: string): Promise<Found | null> {
  const { session } = shelf
  const place = placeOf(session, id)
  if (place !== undefined) return foundRecords(shelf, [recordAt(session, place)])
  const call = session.calls.get(id)
  if (call !== undefined) return foundCall(shelf, id, call)
  const response = session.responses.get(id)
  if (response !== undefined) return foundRecords(shelf, responseRecords(session, id, response))
  if (isOwnBlob(session, id)) return foundBlob(shelf, id)
  const stray = strayRecord(session, id)
  return stray === undefined ? null : foundRecords(shelf, [stray])
}

/** Records outside the conversation, such as a side agent's, are not in the uuid index. */
function strayRecord({ records }: Session, id: string): SessionRecord | undefined {
  for (const record of records) if (record.uuid === id) return record
  return undefined
}

function responseRecords({ records }: Session, id: string, first: number): readonly SessionRecord[] {
  return records
    .toArray(first)
    .filter((record) => isKnown(record) && record.type === 'assistant' && record.message.id === id)
}

/** The record with its spilled results restored. */
export async function wholeRecord({ blobs }: Shelf, record: SessionRecord): Promise<SessionRecord> {
  return isKnown(record) && record.type === 'user' ? restoreRecord(record, blobs) : record
}

async function foundRecords(shelf: Shelf, records: readonly SessionRecord[]): Promise<Found> {
  const whole = await Promise.all(records.map((record) => wholeRecord(shelf, record)))
  const [first] = whole
  return {
    heading: first === undefined ? '' : recordHeading(first),
    text: whole.map(recordBody).join('\n'),
    media: whole.flatMap(mediaIn),
  }
}

function mediaIn(record: SessionRecord): readonly Block[] {
  if (!isKnown(record) || record.type !== 'user') return []
  return blocksOf(record.message.content)
    .flatMap((block) => (isToolResult(block) ? partsOf(block) : [block]))
    .filter(isMedia)
}

function partsOf({ content }: ToolResultBlock): readonly Block[] {
  return typeof content === 'object' ? content : []
}

/** The call and its result only, without other blocks of their records. */
async function foundCall(shelf: Shelf, id: string, place: number): Promise<Found> {
  const { session } = shelf
  const calls = blocksIn(recordAt(session, place)).filter((block) => isToolUse(block) && block.id === id)
  const result = await resultOf(shelf, id, place)
  const parts = result === null ? [] : partsOf(result)
  return {
    heading: `Tool call ${id}${result === null ? ', which has no result' : ''}`,
    text: [...calls, ...(result === null ? [] : [result])].map(blockText).join('\n'),
    media: parts.filter(isMedia),
  }
}

async function resultOf(
  { session, blobs }: Shelf,
  id: string,
  from: number,
): Promise<ToolResultBlock | null> {
  for (let index = from; index < session.records.length; index += 1) {
    const record = recordAt(session, index)
    const found = blocksIn(record)
      .filter(isToolResult)
      .find((block) => block.tool_use_id === id)
    if (found !== undefined) return blobs === null ? found : restoreResult(found, spilledOf(record), blobs)
  }
  return null
}

function blocksIn(record: SessionRecord): readonly Block[] {
  if (!isKnown(record) || (record.type !== 'user' && record.type !== 'assistant')) return []
  return blocksOf(record.message.content)
}

function isOwnBlob(session: Session, id: string): boolean {
  return hasSpilled(session, ({ blob }) => blob === id)
}

function hasSpilled({ records }: Session, isWanted: (spilled: Spilled) => boolean): boolean {
  for (const record of records) if (spilledOf(record).some(isWanted)) return true
  return false
}

async function foundBlob({ session, blobs }: Shelf, id: string): Promise<Found> {
  const heading = `Blob ${id}`
  const text = blobs === null ? null : await textOfBlob(id, blobs)
  if (text === null) return { heading: `${heading} is not in the store any more.`, text: '', media: [] }
  const isBlock = hasSpilled(session, ({ blob, holds }) => blob === id && holds === 'block')
  const block = isBlock ? blockIn(text) : null
  return block === null ? { heading, text, media: [] } : { heading, text: blockText(block), media: [block] }
}

// A record as plain text with its ids: what the history tool shows and searches.

/** One line: id, time, author. */
export function recordHeading(record: SessionRecord): string {
  const { uuid = '(no id)', timestamp = '' } = record
  return `[${uuid}] ${timestamp} ${speakerOf(record)}`.replaceAll('  ', ' ')
}

function speakerOf(record: SessionRecord): string {
  if (!isKnown(record)) return record.type
  if (record.type === 'assistant') return 'assistant'
  if (record.type === 'attachment') return `attachment (${record.attachment.type ?? 'unknown'})`
  if (record.type === 'system') return `system (${record.subtype ?? 'notice'})`
  if (record.type === 'progress') return 'progress'
  if (record.isCompactSummary === true) return 'summary'
  if (blocksOf(record.message.content).some(isToolResult)) return 'tool result'
  return record.isMeta === true ? 'user (written by the program)' : 'user'
}

/** The full text of a record; empty if it has none. */
export function recordBody(record: SessionRecord): string {
  if (!isKnown(record)) return ''
  if (record.type === 'attachment') return textOfAttachment(record.attachment)
  if (record.type === 'system') return systemText(record)
  if (record.type === 'progress') return ''
  return blocksOf(record.message.content).map(blockText).join('\n')
}

function systemText(record: KnownRecord & { readonly type: 'system' }): string {
  const { content = '', compactMetadata, microcompactMetadata } = record
  const metadata = compactMetadata ?? microcompactMetadata
  return metadata === undefined ? content : `${content}\n${JSON.stringify(metadata)}`
}

export function blockText(block: Block): string {
  if (isText(block)) return block.text
  if (isThinking(block))
    return typeof block.thinking === 'string' ? `(thinking) ${block.thinking}` : '(thinking)'
  if (isToolUse(block)) return `(call ${block.id}) ${block.name} ${JSON.stringify(block.input)}`
  if (isToolResult(block)) return resultText(block)
  return isMedia(block) ? mediaText(block) : JSON.stringify(block)
}

function resultText(block: Block & { readonly tool_use_id: string }): string {
  const { content, is_error } = block
  const parts = typeof content === 'string' ? [content] : Array.isArray(content) ? content.map(blockText) : []
  return [`(result of ${block.tool_use_id}${is_error === true ? ', an error' : ''})`, ...parts].join('\n')
}

/** Names the media type instead of printing the bytes. */
function mediaText(block: Block): string {
  const { source } = block
  const kind =
    typeof source === 'object' && source !== null && 'media_type' in source ? source.media_type : ''
  return typeof kind === 'string' && kind !== '' ? `[${block.type} ${kind}]` : `[${block.type}]`
}
