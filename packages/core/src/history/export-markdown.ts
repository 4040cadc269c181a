/**
 * Exports a whole conversation as Markdown, with record ids: every message, including summarised and cleared ones, with
 * tool calls in collapsed sections. The same session always gives the same text.
 */

import { formatAttachmentText, isVisibleToModel } from '../context/context-entry.ts'
import { buildContextView, type ContextRewrite, type ContextView } from '../context/context-view.ts'
import { formatCount } from '../cost/prices.ts'
import {
  type Block,
  isMediaBlock,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  toBlocks,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { isKnownRecord, type KnownRecord, type SessionRecord, type SystemRecord } from '../log/record.ts'
import type { SessionLog } from '../log/session-log.ts'
import { toBlockQuote, wrapInCodeBlock } from '../text/code-in-text.ts'
import { toOneLine } from '../text/truncate-text.ts'
import { formatBlock, restoreSpilledRecord } from './history-items.ts'
import { type BlobReader, readSpilledParts } from './spill-results.ts'

interface ExportOptions {
  /** Title of the document. Default: `Conversation` and the session's id. */
  readonly title?: string
  /** Removes credentials from the texts of messages and tool results. Ids of records and tool calls stay unchanged. */
  readonly redact?: (text: string) => string
  /** Reads tool results that were stored as blobs. Without it, only their beginning and end are exported. */
  readonly blobs?: BlobReader | null
}

/** Returns the whole conversation as one Markdown text. */
export async function exportMarkdown(session: SessionLog, options: ExportOptions = {}): Promise<string> {
  const pieces: string[] = []
  for await (const piece of streamMarkdown(session, options)) pieces.push(piece)
  return pieces.join('')
}

/** Yields the Markdown one record at a time, so that a long conversation is not held in memory twice. */
export async function* streamMarkdown(
  session: SessionLog,
  options: ExportOptions = {},
): AsyncGenerator<string> {
  const view = buildContextView(session)
  const tools = new Map<string, string>()
  const state: ExportState = {
    view,
    words: { redact: options.redact ?? ((text) => text), tools },
    response: null,
  }
  const onBranch = new Set(session.branch)
  yield `# ${toInlineHtml(options.title ?? `Conversation ${findSessionId(session)}`)}\n\n${formatOverview(session, view)}\n`
  for (let index = 0; index < session.records.length; index += 1) {
    const record = session.records.at(index)
    if (record === undefined || !isKnownRecord(record) || record.isSidechain === true) continue
    recordToolNames(record, tools)
    const whole = await restoreSpilledRecord({ session, blobs: options.blobs ?? null }, record)
    const text = formatRecord(whole as KnownRecord, state, onBranch.has(index))
    if (text !== null) yield `\n${[text, ...noteUnreadBlobs(whole)].join('\n\n')}\n`
  }
}

/** Returns a line for each large result of a record that is exported without its middle. */
function noteUnreadBlobs(record: SessionRecord): readonly string[] {
  return readSpilledParts(record).map(
    ({ blob, toolUseId }) =>
      `*Only the beginning and end of the result of ${formatCode(toolUseId)} are shown: blob ${formatCode(blob)} could not be read.*`,
  )
}

interface ExportState {
  readonly view: ContextView
  readonly words: BlockContext
  /** `message.id` of the response whose heading was written last; null if the next response needs a heading. */
  response: string | null
}

function findSessionId({ records }: SessionLog): string {
  for (const { sessionId } of records) if (typeof sessionId === 'string') return sessionId
  return ''
}

function formatOverview({ records }: SessionLog, { rewrites }: ContextView): string {
  const all = [...records]
  const times = all.flatMap(({ timestamp }) =>
    typeof timestamp === 'string' && timestamp !== '' ? [timestamp] : [],
  )
  const count = (kind: 'compact' | 'clear'): number =>
    rewrites.filter((rewrite) => rewrite.kind === kind).length
  const agents = all.filter(({ isSidechain }) => isSidechain === true).length
  const lines = [
    `- ${formatCount(records.length)} records${times.length === 0 ? '' : `, ${times.at(0)} to ${times.at(-1)}`}`,
    `- ${formatCount(count('compact'))} compactions and ${formatCount(count('clear'))} clearings are in force`,
    ...(agents === 0 ? [] : [`- ${formatCount(agents)} records of side agents are not shown`]),
  ]
  return lines.join('\n')
}

/** Adds the names of the tools that a record calls to `tools`. */
function recordToolNames(record: SessionRecord, tools: Map<string, string>): void {
  if (!isKnownRecord(record) || record.type !== 'assistant') return
  for (const block of toBlocks(record.message.content)) if (isToolUse(block)) tools.set(block.id, block.name)
}

/** Formats a record as Markdown; returns null if the record has no text to show. */
function formatRecord(record: KnownRecord, state: ExportState, isOnBranch: boolean): string | null {
  const { words } = state
  if (record.type === 'progress') return null
  if (record.type === 'system') return formatMark(record, state.view)
  if (record.type === 'attachment') return formatAttachment(record, words)
  const heading = formatHeading(record, state, isOnBranch)
  const body = toBlocks(record.message.content)
    .map((block) => formatBlockMarkdown(block, words))
    .join('\n\n')
  return `${heading}\n\n${body}`
}

function formatAttachment(
  record: KnownRecord & { readonly type: 'attachment' },
  { redact }: BlockContext,
): string {
  const { attachment, uuid } = record
  const name = [attachment.filename, attachment.path, attachment.name].find(
    (value) => typeof value === 'string',
  )
  const line = `Attached: ${toInlineHtml(`${attachment.type ?? 'unknown'} ${name ?? ''}`)} · <code>${toInlineHtml(uuid)}</code>`
  return foldText(line, wrapInCodeBlock(redact(formatAttachmentText(attachment))))
}

type MessageRecord = KnownRecord & { readonly type: 'user' | 'assistant' }

/**
 * Writes the heading of a record. The records of one response share a heading; each later record gets its id in an HTML
 * comment.
 */
function formatHeading(record: MessageRecord, state: ExportState, isOnBranch: boolean): string {
  const response = record.type === 'assistant' ? record.message.id : null
  const goesOn = response !== null && response === state.response
  const isAnswer = record.type === 'user' && hasOnlyResults(record)
  if (!isAnswer) state.response = response
  if (goesOn || isAnswer) return `<!-- ${record.uuid} -->`
  const left = isOnBranch ? '' : ' (left behind by a rewind)'
  return `### ${describeAuthor(record)}${left} · ${record.timestamp} · \`${record.uuid}\``
}

function hasOnlyResults({ message }: MessageRecord): boolean {
  return typeof message.content !== 'string' && message.content.every(({ type }) => type === 'tool_result')
}

function describeAuthor(record: MessageRecord): string {
  if (record.type === 'assistant') return `Assistant (${toInlineHtml(record.message.model)})`
  if (record.isCompactSummary === true) return 'Summary of what came before'
  return record.isMeta === true ? 'Written by the program' : 'User'
}

// System records in the export: compactions, clearings, undos of both, and new prefix snapshots.

/** Formats a system record as a quotation below a rule; returns null if it has no text to show. */
function formatMark(record: SystemRecord, view: ContextView): string | null {
  const text = describeMark(record, view)
  return text === null ? null : `---\n\n${toBlockQuote(`${text} · \`${record.uuid}\``)}`
}

function describeMark(record: SystemRecord, view: ContextView): string | null {
  const act = [...view.rewrites, ...view.undoneRewrites].find(({ uuid }) => uuid === record.uuid)
  switch (record.subtype) {
    case 'compact_boundary':
      return describeCompaction(record, act)
    case 'microcompact_boundary':
      return describeClearing(record)
    case 'compact_undone':
      return `**Compaction \`${record.of}\` was undone**: the model is shown again what it had replaced.`
    case 'clear_undone':
      return `**Clearing \`${record.of}\` was undone**: the model is shown again what it had taken out.`
    case 'reply_dropped':
      return '**The reply above broke off.** The model is no longer shown it and was asked again.'
    case 'epoch':
      return `From here on the model is **${record.epoch?.model ?? 'not named'}**, with ${record.epoch?.tools?.length ?? 0} tools.`
    case 'delta':
    case 'pin':
      return null
    default:
      return typeof record.content === 'string' && record.content.trim() !== '' ? record.content : null
  }
}

function describeCompaction({ compactMetadata }: SystemRecord, act: ContextRewrite | undefined): string {
  const why = [
    compactMetadata?.trigger,
    compactMetadata?.cause,
    compactMetadata?.summarizer && `summary by ${compactMetadata.summarizer}`,
  ]
  const reasons = why.filter((reason) => typeof reason === 'string' && reason !== '').join(', ')
  return `**Compacted**${reasons === '' ? '' : ` (${reasons})`}${describeSizes(compactMetadata)}. ${describeSummarised(compactMetadata, act)}`
}

function describeSizes(metadata: SystemRecord['compactMetadata']): string {
  const { preTokens, postTokens } = metadata ?? {}
  if (typeof preTokens !== 'number') return ''
  const after = typeof postTokens === 'number' ? ` to ${formatCount(postTokens)}` : ''
  return `, from ${formatCount(preTokens)}${after} tokens`
}

function describeSummarised(
  metadata: SystemRecord['compactMetadata'],
  act: ContextRewrite | undefined,
): string {
  const kept = new Set([
    ...(metadata?.preservedMessages?.uuids ?? []),
    ...(metadata?.unansweredMessages?.uuids ?? []),
  ])
  const shown = act === undefined ? [] : [...act.replacedEntries].filter(isVisibleToModel)
  const gone = shown.filter(({ record }) => !kept.has(record.uuid))
  const [first, last] = [gone.at(0), gone.at(-1)]
  if (first === undefined || last === undefined) return 'A summary replaces what came before.'
  const stayed = kept.size === 0 ? '' : ` ${formatCount(kept.size)} were kept word for word.`
  const range = `\`${first.record.uuid}\` to \`${last.record.uuid}\``
  return `A summary replaces ${formatCount(gone.length)} records, ${range}.${stayed} All of them are in this document.`
}

function describeClearing({ microcompactMetadata }: SystemRecord): string {
  const results = Array.isArray(microcompactMetadata?.compactedToolIds)
    ? microcompactMetadata.compactedToolIds
    : []
  const inputs = Array.isArray(microcompactMetadata?.clearedInputs) ? microcompactMetadata.clearedInputs : []
  const ids = [...results, ...inputs.map(({ toolUseId }) => toolUseId)].map((id) => `\`${id}\``).join(', ')
  const freed =
    typeof microcompactMetadata?.tokensSaved === 'number'
      ? `, ${formatCount(microcompactMetadata.tokensSaved)} tokens freed`
      : ''
  const media = Array.isArray(microcompactMetadata?.clearedMedia)
    ? microcompactMetadata.clearedMedia.length
    : 0
  const isMedia = media > 0 && results.length + inputs.length === 0
  const texts = `${formatCount(results.length)} tool results${inputs.length === 0 ? '' : ` and ${formatCount(inputs.length)} inputs`}`
  const what = isMedia ? `${formatCount(media)} images and documents` : texts
  return `**Cleared** ${what} from what the model is shown${freed}${ids === '' ? '' : `: ${ids}`}. They are in this document in full.`
}

// Content blocks as Markdown: text unchanged, tool calls and tool results in collapsed sections.

interface BlockContext {
  readonly redact: (text: string) => string
  /** Names of the tools by tool call id. */
  readonly tools: ReadonlyMap<string, string>
}

function formatBlockMarkdown(block: Block, words: BlockContext): string {
  if (isTextBlock(block)) return words.redact(block.text)
  if (isToolUse(block)) return formatCall(block, words)
  if (isToolResult(block)) return formatResult(block, words)
  if (isMediaBlock(block)) return `*${formatBlock(block)}*`
  const thinking = typeof block.thinking === 'string' ? block.thinking : ''
  const text = words.redact(isThinkingBlock(block) ? thinking : JSON.stringify(block, null, 2))
  const line = isThinkingBlock(block) ? 'Thinking' : toInlineHtml(block.type)
  return text === '' ? `*${line}, hidden*` : foldText(line, wrapInCodeBlock(text))
}

function formatCall(block: Block & { readonly id: string }, { redact }: BlockContext): string {
  const { id, name, input } = block
  const line = `Call: ${toInlineHtml(`${String(name)}${redact(describeSubject(input))}`)} · ${formatCode(id)}`
  return foldText(line, wrapInCodeBlock(redact(JSON.stringify(input, null, 2) ?? ''), 'json'))
}

/** Returns the path, command or query in a tool call's input; empty if there is none. */
function describeSubject(input: unknown): string {
  if (!isObject(input)) return ''
  const { file_path, path, command, pattern, query, url, description } = input
  const found = [file_path, path, command, pattern, query, url, description].find(
    (value) => typeof value === 'string',
  )
  return found === undefined ? '' : ` — ${found}`
}

function formatResult(block: Block & { readonly tool_use_id: string }, words: BlockContext): string {
  const { tool_use_id: id, content, is_error } = block
  const parts = typeof content === 'string' || Array.isArray(content) ? toBlocks(content) : []
  const tool = words.tools.get(id)
  const failed = is_error === true ? ', which failed' : ''
  const length = parts.reduce((sum, part) => sum + (isTextBlock(part) ? part.text.length : 0), 0)
  const line = `Result of ${tool === undefined ? 'a call' : toInlineHtml(tool)}${failed} · ${formatCode(id)} · ${formatCount(length)} characters`
  const bodies = parts.map((part) =>
    isTextBlock(part) ? wrapInCodeBlock(words.redact(part.text)) : formatBlockMarkdown(part, words),
  )
  return foldText(line, bodies.length === 0 ? '*nothing*' : bodies.join('\n\n'))
}

// Functions that embed any text in Markdown without breaking its structure.

/**
 * Creates a collapsed HTML section with a one-line title. The body must not contain a closing tag, so text from
 * elsewhere must be in a code fence.
 */
function foldText(line: string, body: string): string {
  return `<details><summary>${line}</summary>\n\n${body}\n\n</details>`
}

/** Escapes text for HTML and shortens it to one line of at most 120 characters. */
function toInlineHtml(text: string): string {
  return toOneLine(text, 119).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function formatCode(id: string): string {
  return `<code>${toInlineHtml(id)}</code>`
}
