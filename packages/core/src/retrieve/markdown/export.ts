/**
 * A whole conversation as Markdown for people: everything that was ever said, summarised and cleared parts included,
 * tool calls folded, ids beside it all. The same session gives the same text.
 */
import { blocksOf, isToolUse } from '../../conversation/block.ts'
import { isKnown, type KnownRecord, type SessionRecord } from '../../conversation/record.ts'
import type { Session } from '../../conversation/session.ts'
import { textOfAttachment } from '../../view/attachment-text.ts'
import { type View, viewOf } from '../../view/view.ts'
import { wholeRecord } from '../look-up.ts'
import type { BlobReader } from '../restore.ts'
import { actMarkdown } from './acts.ts'
import { type BlockWords, blockMarkdown, type Redact } from './blocks.ts'
import { fenced, figure, folded, inline } from './writing.ts'

export interface ExportOptions {
  /** `Conversation` and the session's id unless given. */
  readonly title?: string
  /** Takes credentials out of whatever was said or read. Ids are left as they are. */
  readonly redact?: Redact
  /** Large results come back whole; without it, head and tail stand. */
  readonly blobs?: BlobReader | null
}

export async function exportMarkdown(session: Session, options: ExportOptions = {}): Promise<string> {
  const pieces: string[] = []
  for await (const piece of markdownPieces(session, options)) pieces.push(piece)
  return pieces.join('')
}

/** Piece by piece, a record at a time: a long conversation need not be held twice. */
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
  /** The response that is being told: it has its heading. */
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

/** Null for what says nothing to a person. */
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

/** The records of one response stand under one heading; those after the first keep their id in a comment. */
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
