/**
 * The conversation as a call of its own shows it to a summariser: no media, no thinking, nothing that comes back by
 * itself after the compaction, nothing that only the model which made it can read.
 */
import {
  type Block,
  isBlock,
  isCompactionBlock,
  isMedia,
  isServerToolResult,
  isServerToolUse,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
} from '../conversation/block.ts'
import { isCompactBoundary } from '../conversation/boundary.ts'
import { isObject } from '../conversation/json.ts'
import type { AttachmentRecord, KnownRecord, RawBlock } from '../conversation/record.ts'
import type { Entry } from '../view/entry.ts'
import { partsOf } from '../view/parts.ts'

export interface StripOptions {
  /** Calls and their results are told as text, so that the request needs no tools at all. */
  readonly asText: boolean
}

/** Never worth summarising: the skill tool names them, and those in use come back. */
const LEFT_OUT: ReadonlySet<string> = new Set(['skill_discovery', 'skill_listing'])

export function stripInput(entries: readonly Entry[], options: StripOptions): readonly Entry[] {
  const batches = compactionBatches(entries)
  return entries.flatMap((entry) => strippedEntry(entry, batches, options))
}

/** What the last compaction brought back stands in its batch, and will be brought back again. */
function compactionBatches(entries: readonly Entry[]): ReadonlySet<string> {
  return new Set(
    entries.flatMap(({ record }) =>
      (isCompactBoundary(record) || record.isCompactSummary === true) && record.batch !== undefined
        ? [record.batch.id]
        : [],
    ),
  )
}

function strippedEntry(entry: Entry, batches: ReadonlySet<string>, options: StripOptions): readonly Entry[] {
  const { record } = entry
  if (record.type === 'attachment') return strippedAttachment(entry, record, batches)
  if (record.type !== 'user' && record.type !== 'assistant') return []
  if (isPlain(entry)) return [entry]
  const changed = strippedRecord(record, entry, options)
  return changed === null ? [] : [{ record: changed, index: entry.index }]
}

/** Nothing but what was said. */
function isPlain({ record, cleared }: Entry): boolean {
  if (cleared !== undefined || (record.type !== 'user' && record.type !== 'assistant')) return false
  return typeof record.message.content === 'string' && record.message.role !== 'system'
}

function strippedAttachment(
  entry: Entry,
  record: AttachmentRecord,
  batches: ReadonlySet<string>,
): readonly Entry[] {
  const { attachment } = record
  if (LEFT_OUT.has(attachment.type ?? '')) return []
  const returns = attachment.context === 'post-compact' || batches.has(record.batch?.id ?? '')
  if (!returns) return [entry]
  const named = attachment.path ?? attachment.filename ?? attachment.planFilePath
  const content = `[brought back after a compaction: ${attachment.type ?? 'unknown'}${typeof named === 'string' ? ` ${named}` : ''}]`
  const { batch: _, ...rest } = record
  return [
    { index: entry.index, record: { ...rest, attachment: { type: attachment.type ?? 'unknown', content } } },
  ]
}

type Said = Extract<KnownRecord, { type: 'user' | 'assistant' }>

/** As the view shows it, clearings applied. Exact texts go along with what stays as it is: no long number is told wrong. */
function strippedRecord(record: Said, entry: Entry, options: StripOptions): Said | null {
  const isSystem = record.message.role === 'system'
  const blocks: Block[] = []
  const rawBlocks: RawBlock[] = []
  for (const { block, raw } of partsOf(entry)) {
    const told = strippedBlock(block, options)
    if (told === null) continue
    if (raw !== undefined && told === block) rawBlocks.push({ index: blocks.length, text: raw })
    blocks.push(isSystem ? asReminder(told) : told)
  }
  return blocks.length === 0 ? null : withContent(record, blocks, rawBlocks)
}

function withContent(record: Said, content: readonly Block[], rawBlocks: readonly RawBlock[]): Said {
  const { rawBlocks: _, ...rest } = record
  const raw = rawBlocks.length > 0 ? { rawBlocks } : {}
  if (rest.type === 'user') return { ...rest, message: { role: 'user', content }, ...raw }
  return { ...rest, message: { ...rest.message, content }, ...raw }
}

/** A system message in mid-conversation is not every provider's, and none of the summariser's. */
function asReminder(block: Block): Block {
  if (!isText(block)) return block
  return { type: 'text', text: `<system-reminder>\n${block.text}\n</system-reminder>` }
}

/** Null for what is left out altogether. */
function strippedBlock(block: Block, { asText }: StripOptions): Block | null {
  if (isText(block)) return plainText(block)
  if (isThinking(block)) return null
  if (isMedia(block)) return text(`[${block.type}]`)
  if (isCompactionBlock(block)) return text(typeof block.content === 'string' ? block.content : UNREADABLE)
  if (isToolUse(block)) return asText ? text(`[call of ${block.name}: ${readable(block.input)}]`) : block
  if (isToolResult(block))
    return asText ? text(`[result: ${resultText(block.content)}]`) : withoutMedia(block)
  if (isServerToolUse(block)) return text(`[call of ${String(block.name)}: ${readable(block.input)}]`)
  if (isServerToolResult(block)) return text(`[result: ${readable(block.content)}]`)
  return text(`[${block.type}: ${readable(block)}]`)
}

const UNREADABLE = '[an earlier summary that cannot be read]'

/** Citations and the like point at what may no longer be there. */
function plainText(block: Block & { readonly text: string }): Block {
  return Object.keys(block).length === 2 ? block : text(block.text)
}

function withoutMedia(block: Block): Block {
  const { content } = block
  if (!Array.isArray(content) || content.every((item) => isBlock(item) && isText(item))) return block
  const told = content.flatMap((item) => (isBlock(item) ? (strippedBlock(item, { asText: true }) ?? []) : []))
  return { ...block, content: told }
}

function resultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  const told = content.flatMap((item) => (isBlock(item) ? (strippedBlock(item, { asText: true }) ?? []) : []))
  return told.map((item) => String(item.text ?? '')).join('\n')
}

/** As JSON, without what only its maker can read and without pictures as text. */
function readable(value: unknown): string {
  const told = JSON.stringify(value, (key, held) => (isOpaque(key, held) ? undefined : mediaAsText(held)))
  return told ?? ''
}

function isOpaque(key: string, held: unknown): boolean {
  return (
    key === 'cache_control' ||
    key === 'signature' ||
    (key.startsWith('encrypted_') && typeof held === 'string')
  )
}

function mediaAsText(held: unknown): unknown {
  return isObject(held) && isBlock(held) && isMedia(held) ? `[${held.type}]` : held
}

function text(said: string): Block {
  return { type: 'text', text: said.trim() === '' ? '[empty]' : said }
}
