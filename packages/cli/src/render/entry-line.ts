/** One line of the view: who speaks, whether it stands as it was said, and how it begins. */
import {
  type Attachment,
  blocksOf,
  CLEARED_TEXT,
  type Entry,
  isCompactBoundary,
  isMicrocompactBoundary,
  isThinking,
  isToolResult,
  isToolUse,
  type KnownRecord,
} from '@tidemark/core'
import { blockWords } from './block-words.ts'

export interface EntryLine {
  readonly who: string
  /** `kept`: from before the last compaction. `cleared`: its text no longer stands there. */
  readonly form: 'verbatim' | 'kept' | 'cleared'
  readonly words: string
}

/** `compactedAt`: where the last compaction stands; what is older was kept by it. */
export function entryLine(entry: Entry, compactedAt: number): EntryLine {
  const { record, index, cleared } = entry
  const form = cleared !== undefined ? 'cleared' : index < compactedAt ? 'kept' : 'verbatim'
  const words = cleared !== undefined && cleared.results.length > 0 ? CLEARED_TEXT : wordsOf(record)
  return { who: whoOf(record), form, words }
}

function whoOf(record: KnownRecord): string {
  if (isCompactBoundary(record) || isMicrocompactBoundary(record)) return 'boundary'
  if (record.isCompactSummary === true) return 'summary'
  if (record.type === 'attachment') return record.attachment.type ?? 'unknown'
  if (record.type !== 'user' && record.type !== 'assistant') return record.type
  const [first] = blocksOf(record.message.content)
  if (first === undefined) return record.type
  if (isToolUse(first)) return 'call'
  if (isToolResult(first)) return 'result'
  return isThinking(first) ? 'thinking' : record.type
}

function wordsOf(record: KnownRecord): string {
  if (isCompactBoundary(record)) {
    const { trigger, messagesSummarized = 0, preservedMessages } = record.compactMetadata
    const kept = preservedMessages?.uuids.length ?? 0
    return `compacted (${trigger}): ${messagesSummarized} messages summarised, ${kept} records kept`
  }
  if (isMicrocompactBoundary(record)) {
    const { trigger, compactedToolIds, tokensSaved } = record.microcompactMetadata
    return `cleared (${trigger}): tool results ${compactedToolIds.length}, tokens saved ${tokensSaved}`
  }
  if (record.type === 'attachment') return attachmentWords(record.attachment)
  if (record.type === 'user' || record.type === 'assistant') {
    return blocksOf(record.message.content).map(blockWords).join(' ')
  }
  return record.type === 'system' ? (record.content ?? record.subtype ?? '') : ''
}

function attachmentWords(attachment: Attachment): string {
  return typeof attachment.content === 'string' ? attachment.content : JSON.stringify(attachment)
}
