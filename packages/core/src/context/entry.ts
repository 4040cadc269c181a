/**
 * One entry of the context: a record, what of it has been cleared, and the blocks it contributes to a message.
 * Those blocks depend on the entry alone, so their bytes do not change once sent.
 */
import {
  type Block,
  isBlock,
  isCacheEdits,
  isMedia,
  isText,
  isThinking,
  isToolResult,
  isToolUse,
  toBlocks,
} from '../log/block.ts'
import { isObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type Attachment,
  CLEARED_RESULT_TEXT,
  type ClearedInput,
  endsTurn,
  isSyntheticError,
  type KnownRecord,
  type MicrocompactMetadata,
} from '../log/record.ts'

export interface ContextEntry {
  readonly record: KnownRecord
  /** Index of the record in the session. */
  readonly index: number
  /** Absent while the record is shown unchanged. */
  readonly cleared?: ClearedParts
}

/** What is no longer shown. The record itself is untouched and is shown again when the clearing is undone. */
export interface ClearedParts {
  /** The whole entry is left out: an attachment, or deletions for the provider's cache. */
  readonly whole: boolean
  readonly thinking: boolean
  /** Tool results by call, with the note that says where the text can be found. */
  readonly results: readonly { readonly id: string; readonly note: string | null }[]
  readonly inputs: readonly ClearedInput[]
  readonly media?: readonly HiddenMediaItem[]
}

/** An image or document of a record that is replaced by a placeholder. */
interface HiddenMediaItem {
  /** The call whose result contains it; null for media directly in the message. */
  readonly toolUseId: string | null
  /** From 0, among the images and documents there. Placeholders count too, so numbers stay valid. */
  readonly nth: number
}

/** True if any of this entry reaches the model. */
export function isVisibleToModel({ record, cleared }: ContextEntry): boolean {
  if (record.type === 'progress' || record.type === 'system' || isSyntheticError(record)) return false
  return cleared?.whole !== true && (record.type !== 'attachment' || record.isScreenOnly !== true)
}

/** True if this entry ends the turn before it. A visible attachment does: it is user content. */
export function isTurnEnd(entry: ContextEntry): boolean {
  const { record } = entry
  if (record.type === 'attachment') return isVisibleToModel(entry)
  return record.type === 'user' && endsTurn(record.message)
}

/** One block of a message, and the record it comes from. */
export interface MessagePart {
  readonly block: Block
  /** uuid of the record. */
  readonly origin: string
  /** The exact JSON text to send, where the block does not survive parse and stringify. */
  readonly raw?: string
}

/** The blocks that the entry contributes to a message, with placeholders for what was cleared. */
export function toMessageParts({ record, cleared }: ContextEntry): readonly MessagePart[] {
  const origin = record.uuid
  if (record.type === 'attachment')
    return [{ block: { type: 'text', text: formatAttachmentText(record.attachment) }, origin }]
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const blocks = toBlocks(record.message.content)
  const rawBlocks = Array.isArray(record.rawBlocks) ? record.rawBlocks : []
  const parts = withMediaPlaceholders(blocks, cleared?.media).map((block, index): MessagePart => {
    const raw: unknown = rawBlocks.find((item) => item?.index === index)?.text
    return block === blocks[index] && typeof raw === 'string' ? { block, origin, raw } : { block, origin }
  })
  return cleared === undefined ? parts : parts.flatMap((part) => clearPart(part, cleared))
}

const CLEARED_INPUT_TEXT = '[Old tool input cleared]'

function clearPart(part: MessagePart, cleared: ClearedParts): readonly MessagePart[] {
  const { block, origin } = part
  if (cleared.thinking && isThinking(block)) return []
  if (isToolResult(block)) {
    const result = cleared.results.find((item) => item.id === block.tool_use_id)
    if (result === undefined) return [part]
    const content = result.note === null ? CLEARED_RESULT_TEXT : `${CLEARED_RESULT_TEXT}\n${result.note}`
    return [{ block: { ...block, content }, origin }]
  }
  const fields = cleared.inputs.filter((input) => isToolUse(block) && input.toolUseId === block.id)
  if (fields.length === 0 || !isObject(block.input)) return [part]
  const input = Object.entries(block.input).map(([name, value]) => [
    name,
    fields.some((field) => field.field === name) ? CLEARED_INPUT_TEXT : value,
  ])
  return [{ block: { ...block, input: Object.fromEntries(input) }, origin }]
}

// Clearing. Entries that a clearing does not touch stay the same objects: their estimates are remembered by identity.

/** The entries with one `microcompact_boundary` applied. */
export function applyClearingToEntries(
  entries: AppendList<ContextEntry>,
  metadata: MicrocompactMetadata,
): AppendList<ContextEntry> {
  const clearing = {
    metadata,
    results: toNameSet(metadata.compactedToolIds),
    attachments: toNameSet(metadata.clearedAttachmentUUIDs),
    thinking: toNameSet(metadata.clearedThinking),
  }
  return AppendList.of([...entries].map((entry) => clearEntry(entry, clearing)))
}

const NOTHING_CLEARED: ClearedParts = { whole: false, thinking: false, results: [], inputs: [] }

/** The entries without the thinking of these responses (`message.id`). */
export function withoutThinking(
  entries: readonly ContextEntry[],
  responses: unknown,
): readonly ContextEntry[] {
  const names = toNameSet(responses)
  if (names.size === 0) return entries
  return entries.map((entry) => {
    const { record, cleared = NOTHING_CLEARED } = entry
    const isNamed = record.type === 'assistant' && names.has(record.message.id)
    return isNamed && !cleared.thinking ? { ...entry, cleared: { ...cleared, thinking: true } } : entry
  })
}

/** The entries without `cache_edits` messages: the provider's cache has expired, so their deletions no longer apply. */
export function withoutCacheEdits(entries: AppendList<ContextEntry>): AppendList<ContextEntry> {
  const isEdits = ({ record }: ContextEntry): boolean => {
    const blocks = record.type === 'user' ? toBlocks(record.message.content) : []
    return blocks.length > 0 && blocks.every(isCacheEdits)
  }
  const cleared = { ...NOTHING_CLEARED, whole: true }
  return AppendList.of([...entries].map((entry) => (isEdits(entry) ? { ...entry, cleared } : entry)))
}

/** Only the strings: other programs may write anything there. */
function toNameSet(list: unknown): ReadonlySet<string> {
  return new Set(Array.isArray(list) ? list.filter((name) => typeof name === 'string') : [])
}

interface ClearingTargets {
  readonly metadata: MicrocompactMetadata
  readonly results: ReadonlySet<string>
  readonly attachments: ReadonlySet<string>
  readonly thinking: ReadonlySet<string>
}

function clearEntry(entry: ContextEntry, clearing: ClearingTargets): ContextEntry {
  const { record, cleared: before = NOTHING_CLEARED } = entry
  const whole = record.type === 'attachment' && clearing.attachments.has(record.uuid)
  const thinking = record.type === 'assistant' && clearing.thinking.has(record.message.id)
  const results = findNewlyClearedResults(entry, clearing)
  const inputs = findNewlyClearedInputs(entry, clearing.metadata)
  const media = findNewlyHiddenMedia(entry, clearing.metadata)
  const isNew = (whole && !before.whole) || (thinking && !before.thinking)
  if (!isNew && results.length + inputs.length + media.length === 0) return entry
  const cleared = {
    whole: before.whole || whole,
    thinking: before.thinking || thinking,
    results: [...before.results, ...results],
    inputs: [...before.inputs, ...inputs],
  }
  const hidden = [...(before.media ?? []), ...media]
  return { ...entry, cleared: hidden.length === 0 ? cleared : { ...cleared, media: hidden } }
}

/** A result is cleared once: the first note stays. */
function findNewlyClearedResults(
  { record, cleared }: ContextEntry,
  clearing: ClearingTargets,
): ClearedParts['results'] {
  if (record.type !== 'user') return []
  const notes: unknown = clearing.metadata.notes
  return toBlocks(record.message.content).flatMap((block) => {
    const id = isToolResult(block) ? block.tool_use_id : null
    if (id === null || !clearing.results.has(id)) return []
    if (cleared?.results.some((old) => old.id === id)) return []
    const note = isObject(notes) && Object.hasOwn(notes, id) ? notes[id] : null
    return [{ id, note: typeof note === 'string' ? note : null }]
  })
}

function findNewlyClearedInputs(
  { record }: ContextEntry,
  { clearedInputs }: MicrocompactMetadata,
): readonly ClearedInput[] {
  if (record.type !== 'assistant' || !Array.isArray(clearedInputs)) return []
  const ids = new Set(toBlocks(record.message.content).map((block) => block.id))
  return clearedInputs.filter((input: unknown) => isObject(input) && ids.has(input.toolUseId))
}

function findNewlyHiddenMedia(
  { record }: ContextEntry,
  { clearedMedia }: MicrocompactMetadata,
): readonly HiddenMediaItem[] {
  if (record.type !== 'user' || !Array.isArray(clearedMedia)) return []
  return clearedMedia.flatMap((item: unknown) => {
    if (!isObject(item) || item.uuid !== record.uuid || typeof item.nth !== 'number') return []
    return [{ toolUseId: typeof item.toolUseId === 'string' ? item.toolUseId : null, nth: item.nth }]
  })
}

// Images and documents replaced by placeholders.

export function mediaPlaceholder(kind: string): Block {
  return { type: 'text', text: `[${kind}: no longer shown, to keep the request within its size]` }
}

const MEDIA_PLACEHOLDERS: ReadonlySet<string> = new Set(
  ['image', 'document'].map((kind) => String(mediaPlaceholder(kind).text)),
)

/** An image, a document, or the placeholder of one. */
export function isMediaOrPlaceholder(block: Block): boolean {
  return isMedia(block) || (isText(block) && MEDIA_PLACEHOLDERS.has(block.text))
}

/** The blocks with placeholders for hidden media. Other blocks stay the same objects. */
export function withMediaPlaceholders(
  blocks: readonly Block[],
  hidden: readonly HiddenMediaItem[] = [],
): readonly Block[] {
  if (hidden.length === 0) return blocks
  const findHidden = (id: string | null): ReadonlySet<number> =>
    new Set(hidden.filter(({ toolUseId }) => toolUseId === id).map(({ nth }) => nth))
  return replaceMedia(blocks, findHidden(null)).map((block) => {
    if (!isToolResult(block) || !Array.isArray(block.content)) return block
    const numbers = findHidden(block.tool_use_id)
    return numbers.size === 0 ? block : { ...block, content: replaceMedia(block.content, numbers) }
  })
}

function replaceMedia(blocks: readonly Block[], numbers: ReadonlySet<number>): readonly Block[] {
  let nth = -1
  return blocks.map((block: unknown) => {
    if (!isBlock(block) || !isMediaOrPlaceholder(block)) return block as Block
    nth += 1
    return numbers.has(nth) && isMedia(block) ? mediaPlaceholder(block.type) : block
  })
}

// Attachments as text: user content in a `<system-reminder>` under a heading that says what it is.

const ATTACHMENT_HEADINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    agent_delta: 'The agents that can be called have changed.',
    hook_context: 'A hook of the person adds this.',
    ide_selection: 'Selected in the editor.',
    invoked_skills: 'Skills in use in this session.',
    mcp_instructions: 'Instructions of connected servers.',
    nested_memory: 'Standing instructions for this folder.',
    plan_file_reference: 'The plan of this session.',
    permission_mode: 'The permission mode of this session.',
    plan_mode: 'Plan mode is on.',
    section_delta: 'The system prompt has changed.',
    skill_discovery: 'Skills found.',
    skill_listing: 'Skills that can be used.',
    task_status: 'Agents working in the background.',
    tool_delta: 'The tools that can be called have changed.',
  }),
)

const REPLACES_EARLIER_TEXT = 'This replaces what was said of it before.'

/**
 * The text the model reads. Context sources give every attachment a `key`; `update` means that the content under
 * this key has changed, `ended` that it no longer applies.
 */
export function formatAttachmentText(attachment: Attachment): string {
  const heading = formatHeading(attachment)
  const lines =
    attachment.ended === true
      ? [`No longer in force: ${heading}`]
      : [attachment.update === true ? `${heading} ${REPLACES_EARLIER_TEXT}` : heading, formatBody(attachment)]
  return ['<system-reminder>', ...lines, '</system-reminder>'].join('\n')
}

function formatHeading(attachment: Attachment): string {
  const { type = 'unknown', context } = attachment
  const path = findFirstText(attachment, ['path', 'filename', 'planFilePath'])
  if (type === 'file') return `Content of the file ${path ?? '(unnamed)'}.`
  if (type === 'todo')
    return `The todo list${context === 'post-compact' ? ', as it stood when the conversation was compacted' : ''}.`
  const heading = formatSingleHeading(attachment) ?? ATTACHMENT_HEADINGS.get(type) ?? `Attached: ${type}.`
  return path === null ? heading : `${heading} File: ${path}`
}

/** For attachments with one skill or one agent each; other programs put all of them into one attachment. */
function formatSingleHeading({ type, name, status }: Attachment): string | null {
  if (type === 'invoked_skills' && typeof name === 'string')
    return `The skill "${name}" is in use in this session.`
  if (type !== 'task_status' || typeof status !== 'string') return null
  return status === 'running'
    ? 'An agent is working in the background. Do not start it again.'
    : 'An agent in the background has ended, and its result was not collected. Do not start it again.'
}

function formatBody(attachment: Attachment): string {
  const text = findFirstText(attachment, ['content', 'planContent', 'text'])
  if (text !== null) return text
  if (isObject(attachment.items)) return Object.entries(attachment.items).map(formatItem).join('\n')
  const { type: _, ...rest } = attachment
  return JSON.stringify(rest)
}

/** One of several items announced together; null means removed. */
function formatItem([name, text]: readonly [string, unknown]): string {
  if (typeof text !== 'string') return `${name}: no longer there.`
  return text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`
}

function findFirstText(attachment: Attachment, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value = attachment[field]
    if (typeof value === 'string') return value
  }
  return null
}

/** Responses (`message.id`) whose thinking `entries` show, in order. */
export function findResponsesWithThinking(entries: readonly ContextEntry[]): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    return record.type === 'assistant' && toMessageParts(entry).some(({ block }) => isThinking(block))
      ? [record.message.id]
      : []
  })
  return [...new Set(ids)]
}
