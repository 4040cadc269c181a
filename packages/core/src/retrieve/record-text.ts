/** A record as plain text, with its ids: what the history tool shows and searches. */
import {
  type Block,
  blocksOf,
  isMedia,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
} from '../conversation/block.ts'
import { isKnown, type KnownRecord, type SessionRecord } from '../conversation/record.ts'
import { textOfAttachment } from '../view/attachment-text.ts'

/** One line: id, time, whose it is. */
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

/** What it says, in full. Empty where it says nothing. */
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

/** The bytes of a picture say nothing as text. */
function mediaText(block: Block): string {
  const { source } = block
  const kind =
    typeof source === 'object' && source !== null && 'media_type' in source ? source.media_type : ''
  return typeof kind === 'string' && kind !== '' ? `[${block.type} ${kind}]` : `[${block.type}]`
}
