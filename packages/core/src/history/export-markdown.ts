/**
 * A whole conversation as Markdown for people: every message, also summarised and cleared ones, tool calls folded,
 * ids beside everything. The same session gives the same text.
 */

import { type Act, type View, viewOf } from '../context/context-view.ts'
import { isShown, textOfAttachment } from '../context/entry.ts'
import { type Block, blocksOf, isMedia, isText, isThinking, isToolResult, isToolUse } from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { isKnown, type KnownRecord, type SessionRecord, type SystemRecord } from '../log/record.ts'
import type { Session } from '../log/session.ts'
import { blockText, wholeRecord } from './find-record.ts'
import type { BlobReader } from './spill.ts'

interface ExportOptions {
  /** Default: `Conversation` and the session's id. */
  readonly title?: string
  /** Removes credentials from messages and tool results. Ids are not touched. */
  readonly redact?: (text: string) => string
  /** Restores spilled results; without it only their head and tail are exported. */
  readonly blobs?: BlobReader | null
}

export async function exportMarkdown(session: Session, options: ExportOptions = {}): Promise<string> {
  const pieces: string[] = []
  for await (const piece of markdownPieces(session, options)) pieces.push(piece)
  return pieces.join('')
}

/** One record at a time, so that a long conversation is not held in memory twice. */
export async function* markdownPieces(session: Session, options: ExportOptions = {}): AsyncGenerator<string> {
  const view = viewOf(session)
  const tools = new Map<string, string>()
  const state: Writing = {
    view,
    words: { redact: options.redact ?? ((text) => text), tools },
    response: null,
  }
  const onBranch = new Set(session.branch)
  yield `# ${inline(options.title ?? `Conversation ${sessionId(session)}`)}\n\n${overview(session, view)}\n`
  for (let index = 0; index < session.records.length; index += 1) {
    const record = session.records.at(index)
    if (record === undefined || !isKnown(record) || record.isSidechain === true) continue
    noteCalls(record, tools)
    const whole = await wholeRecord({ session, blobs: options.blobs ?? null }, record)
    const text = recordMarkdown(whole as KnownRecord, state, onBranch.has(index))
    if (text !== null) yield `\n${text}\n`
  }
}

interface Writing {
  readonly view: View
  readonly words: BlockWords
  /** The response whose heading has been written. */
  response: string | null
}

function sessionId({ records }: Session): string {
  for (const { sessionId: id } of records) if (typeof id === 'string') return id
  return ''
}

function overview({ records }: Session, { acts }: View): string {
  const all = [...records]
  const times = all.flatMap(({ timestamp }) =>
    typeof timestamp === 'string' && timestamp !== '' ? [timestamp] : [],
  )
  const count = (kind: 'compact' | 'clear'): number => acts.filter((act) => act.kind === kind).length
  const agents = all.filter(({ isSidechain }) => isSidechain === true).length
  const lines = [
    `- ${figure(records.length)} records${times.length === 0 ? '' : `, ${times.at(0)} to ${times.at(-1)}`}`,
    `- ${figure(count('compact'))} compactions and ${figure(count('clear'))} clearings stand`,
    ...(agents === 0 ? [] : [`- ${figure(agents)} records of side agents are not shown`]),
  ]
  return lines.join('\n')
}

function noteCalls(record: SessionRecord, tools: Map<string, string>): void {
  if (!isKnown(record) || record.type !== 'assistant') return
  for (const block of blocksOf(record.message.content)) if (isToolUse(block)) tools.set(block.id, block.name)
}

/** Null for a record with nothing to show. */
function recordMarkdown(record: KnownRecord, state: Writing, isOnBranch: boolean): string | null {
  const { words } = state
  if (record.type === 'progress') return null
  if (record.type === 'system') return actMarkdown(record, state.view)
  if (record.type === 'attachment') return attachmentMarkdown(record, words)
  const heading = headingOf(record, state, isOnBranch)
  const body = blocksOf(record.message.content)
    .map((block) => blockMarkdown(block, words))
    .join('\n\n')
  return `${heading}\n\n${body}`
}

function attachmentMarkdown(
  record: KnownRecord & { readonly type: 'attachment' },
  { redact }: BlockWords,
): string {
  const { attachment, uuid } = record
  const name = [attachment.filename, attachment.path, attachment.name].find(
    (value) => typeof value === 'string',
  )
  const line = `Attached: ${inline(`${attachment.type ?? 'unknown'} ${name ?? ''}`)} · <code>${inline(uuid)}</code>`
  return folded(line, fenced(redact(textOfAttachment(attachment))))
}

type Spoken = KnownRecord & { readonly type: 'user' | 'assistant' }

/** The records of one response share a heading; those after the first keep their id in a comment. */
function headingOf(record: Spoken, state: Writing, isOnBranch: boolean): string {
  const response = record.type === 'assistant' ? record.message.id : null
  const goesOn = response !== null && response === state.response
  const isAnswer = record.type === 'user' && isOnlyResults(record)
  if (!isAnswer) state.response = response
  if (goesOn || isAnswer) return `<!-- ${record.uuid} -->`
  const left = isOnBranch ? '' : ' (left behind by a rewind)'
  return `### ${speakerOf(record)}${left} · ${record.timestamp} · \`${record.uuid}\``
}

function isOnlyResults({ message }: Spoken): boolean {
  return typeof message.content !== 'string' && message.content.every(({ type }) => type === 'tool_result')
}

function speakerOf(record: Spoken): string {
  if (record.type === 'assistant') return `Assistant (${inline(record.message.model)})`
  if (record.isCompactSummary === true) return 'Summary of what came before'
  return record.isMeta === true ? 'Written by the program' : 'User'
}

// Marks in the log: compactions, clearings, undone ones, a new prefix.

/** Null for marks with nothing to show. */
function actMarkdown(record: SystemRecord, view: View): string | null {
  const text = describeMark(record, view)
  return text === null ? null : `---\n\n${quoted(`${text} · \`${record.uuid}\``)}`
}

function describeMark(record: SystemRecord, view: View): string | null {
  const act = [...view.acts, ...view.undone].find(({ uuid }) => uuid === record.uuid)
  switch (record.subtype) {
    case 'compact_boundary':
      return describeCompaction(record, act)
    case 'microcompact_boundary':
      return describeClearing(record)
    case 'compact_undone':
      return `**Compaction \`${record.of}\` was undone**: the model is shown again what it had replaced.`
    case 'clear_undone':
      return `**Clearing \`${record.of}\` was undone**: the model is shown again what it had taken out.`
    case 'epoch':
      return `From here on the model is **${record.epoch?.model ?? 'not named'}**, with ${record.epoch?.tools?.length ?? 0} tools.`
    case 'delta':
    case 'pin':
      return null
    default:
      return typeof record.content === 'string' && record.content.trim() !== '' ? record.content : null
  }
}

function describeCompaction({ compactMetadata: metadata }: SystemRecord, act: Act | undefined): string {
  const why = [
    metadata?.trigger,
    metadata?.cause,
    metadata?.summarizer && `summary by ${metadata.summarizer}`,
  ]
  const reasons = why.filter((reason) => typeof reason === 'string' && reason !== '').join(', ')
  return `**Compacted**${reasons === '' ? '' : ` (${reasons})`}${describeSizes(metadata)}. ${describeSummarised(metadata, act)}`
}

function describeSizes(metadata: SystemRecord['compactMetadata']): string {
  const { preTokens, postTokens } = metadata ?? {}
  if (typeof preTokens !== 'number') return ''
  const after = typeof postTokens === 'number' ? ` to ${figure(postTokens)}` : ''
  return `, from ${figure(preTokens)}${after} tokens`
}

function describeSummarised(metadata: SystemRecord['compactMetadata'], act: Act | undefined): string {
  const kept = new Set([
    ...(metadata?.preservedMessages?.uuids ?? []),
    ...(metadata?.unansweredMessages?.uuids ?? []),
  ])
  const shown = act === undefined ? [] : [...act.before].filter(isShown)
  const gone = shown.filter(({ record }) => !kept.has(record.uuid))
  const [first, last] = [gone.at(0), gone.at(-1)]
  if (first === undefined || last === undefined) return 'A summary stands for what came before.'
  const stayed = kept.size === 0 ? '' : ` ${figure(kept.size)} were kept word for word.`
  const range = `\`${first.record.uuid}\` to \`${last.record.uuid}\``
  return `A summary stands for ${figure(gone.length)} records, ${range}.${stayed} All of them are in this document.`
}

function describeClearing({ microcompactMetadata: metadata }: SystemRecord): string {
  const results = Array.isArray(metadata?.compactedToolIds) ? metadata.compactedToolIds : []
  const inputs = Array.isArray(metadata?.clearedInputs) ? metadata.clearedInputs : []
  const ids = [...results, ...inputs.map(({ toolUseId }) => toolUseId)].map((id) => `\`${id}\``).join(', ')
  const freed =
    typeof metadata?.tokensSaved === 'number' ? `, ${figure(metadata.tokensSaved)} tokens freed` : ''
  const media = Array.isArray(metadata?.clearedMedia) ? metadata.clearedMedia.length : 0
  const isMedia = media > 0 && results.length + inputs.length === 0
  const texts = `${figure(results.length)} tool results${inputs.length === 0 ? '' : ` and ${figure(inputs.length)} inputs`}`
  const what = isMedia ? `${figure(media)} images and documents` : texts
  return `**Cleared** ${what} from what the model is shown${freed}${ids === '' ? '' : `: ${ids}`}. They are in this document in full.`
}

// Blocks as Markdown: text as it is, tool calls and results folded.

interface BlockWords {
  readonly redact: (text: string) => string
  /** Tool name by call id. */
  readonly tools: ReadonlyMap<string, string>
}

function blockMarkdown(block: Block, words: BlockWords): string {
  if (isText(block)) return words.redact(block.text)
  if (isToolUse(block)) return callMarkdown(block, words)
  if (isToolResult(block)) return resultMarkdown(block, words)
  if (isMedia(block)) return `*${blockText(block)}*`
  const thinking = typeof block.thinking === 'string' ? block.thinking : ''
  const text = words.redact(isThinking(block) ? thinking : JSON.stringify(block, null, 2))
  const line = isThinking(block) ? 'Thinking' : inline(block.type)
  return text === '' ? `*${line}, hidden*` : folded(line, fenced(text))
}

function callMarkdown(block: Block & { readonly id: string }, { redact }: BlockWords): string {
  const { id, name, input } = block
  const line = `Call: ${inline(`${String(name)}${redact(subject(input))}`)} · ${coded(id)}`
  return folded(line, fenced(redact(JSON.stringify(input, null, 2) ?? ''), 'json'))
}

/** The path, command or query of a call. */
function subject(input: unknown): string {
  if (!isObject(input)) return ''
  const { file_path, path, command, pattern, query, url, description } = input
  const found = [file_path, path, command, pattern, query, url, description].find(
    (value) => typeof value === 'string',
  )
  return found === undefined ? '' : ` — ${found}`
}

function resultMarkdown(block: Block & { readonly tool_use_id: string }, words: BlockWords): string {
  const { tool_use_id: id, content, is_error } = block
  const parts = typeof content === 'string' || Array.isArray(content) ? blocksOf(content) : []
  const tool = words.tools.get(id)
  const failed = is_error === true ? ', which failed' : ''
  const length = parts.reduce((sum, part) => sum + (isText(part) ? part.text.length : 0), 0)
  const line = `Result of ${tool === undefined ? 'a call' : inline(tool)}${failed} · ${coded(id)} · ${figure(length)} characters`
  const bodies = parts.map((part) =>
    isText(part) ? fenced(words.redact(part.text)) : blockMarkdown(part, words),
  )
  return folded(line, bodies.length === 0 ? '*nothing*' : bodies.join('\n\n'))
}

// Markdown that stays intact whatever text is put into it.

/** A fence longer than any run of backticks in the text. */
export function fenced(text: string, language = ''): string {
  const runs = text.match(/`{3,}/g) ?? []
  const fence = '`'.repeat(Math.max(3, ...runs.map((run) => run.length + 1)))
  return `${fence}${language}\n${text}${text.endsWith('\n') ? '' : '\n'}${fence}`
}

/** A collapsed section under one line. The body must not contain a closing tag: fence text that is not ours. */
function folded(line: string, body: string): string {
  return `<details><summary>${line}</summary>\n\n${body}\n\n</details>`
}

/** Text for HTML, escaped, in one line of at most 120 characters. */
export function inline(text: string): string {
  const flat = text.replace(/\s+/g, ' ').trim()
  const short = flat.length > 120 ? `${flat.slice(0, 119)}…` : flat
  return short.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function coded(id: string): string {
  return `<code>${inline(id)}</code>`
}

function quoted(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '>' : `> ${line}`))
    .join('\n')
}

/** 1234567 → 1,234,567 */
function figure(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',')
}
