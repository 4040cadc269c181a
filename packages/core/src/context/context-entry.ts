/**
 * Defines an entry of the context: a log record, a list of its parts that were cleared, and the blocks that it
 * contributes to a message. The blocks depend only on the entry, so the bytes sent for an unchanged entry never change.
 */

import { wrapInReminder } from '../facts/host-texts.ts'
import {
  type Block,
  hasOnlyCacheDeletions,
  isBlock,
  isForeignBlock,
  isMediaBlock,
  isOpaqueBlock,
  isTextBlock,
  isThinkingBlock,
  isToolChangeBlock,
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
  isCacheDeletionsEnd,
  isClearedByProvider,
  isMicrocompactBoundary,
  isNewTurnMessage,
  isSyntheticError,
  type KnownRecord,
  type MicrocompactMetadata,
} from '../log/record.ts'
import type { ClearPolicy } from '../policy/clear-policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'

export interface ContextEntry {
  readonly record: KnownRecord
  /** Index of the record in the session log. */
  readonly index: number
  /** Parts of the record that were cleared; absent while the record is shown unchanged. */
  readonly cleared?: ClearedParts
}

/**
 * The parts of a record that the model no longer sees. The record in the log is unchanged, and undoing the clearing
 * shows these parts again.
 */
interface ClearedParts {
  /**
   * True if the model sees nothing of the entry. This happens to a cleared attachment, and to cache edits that no
   * longer apply.
   */
  readonly whole: boolean
  readonly thinking: boolean
  /** True if content that only the provider that made it can read is hidden. */
  readonly opaque?: boolean
  /** Cleared tool results by tool call id. The value is a note that says where the result's text can be found, or null. */
  readonly results: readonly { readonly id: string; readonly note: string | null }[]
  readonly inputs: readonly ClearedInput[]
  readonly media?: readonly HiddenMediaItem[]
}

/** An image or document of a record that the model sees as a placeholder. */
interface HiddenMediaItem {
  /** Id of the tool call whose result contains the image or document; null for media directly in the message. */
  readonly toolUseId: string | null
  /**
   * Index, from 0, of this image or document among all images and documents of its message or tool result. Media that
   * are already placeholders are counted too, so the index stays valid.
   */
  readonly nth: number
}

/** True if the model sees any part of the entry. False for system records, errors of the engine, and what is hidden whole. */
export function isVisibleToModel({ record, cleared }: ContextEntry): boolean {
  if (record.type === 'progress' || record.type === 'system' || isSyntheticError(record)) return false
  return cleared?.whole !== true && (record.type !== 'attachment' || record.isScreenOnly !== true)
}

/** True if the entry ends the turn before it: user content other than tool results. Visible attachments are sent as such. */
export function endsPreviousTurn(entry: ContextEntry): boolean {
  const { record } = entry
  if (record.type === 'attachment') return isVisibleToModel(entry)
  return record.type === 'user' && isNewTurnMessage(record.message)
}

/** One block of a message, and the record that the block comes from. */
export interface TracedBlock {
  readonly block: Block
  /** uuid of the record that the block comes from. */
  readonly origin: string
  /**
   * The exact JSON text of the block, to be sent unchanged. Present only if `JSON.parse` and `JSON.stringify` would
   * change the text.
   */
  readonly raw?: string
}

/**
 * Returns the blocks that the entry contributes to a message, with placeholders for the cleared parts; none for other
 * records.
 */
export function toTracedBlocks({ record, cleared }: ContextEntry): readonly TracedBlock[] {
  const origin = record.uuid
  if (record.type === 'attachment')
    return [{ block: { type: 'text', text: formatAttachmentText(record.attachment) }, origin }]
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const blocks = toBlocks(record.message.content)
  const rawBlocks = Array.isArray(record.rawBlocks) ? record.rawBlocks : []
  const parts = withMediaPlaceholders(blocks, cleared?.media).map((block, index): TracedBlock => {
    const raw: unknown = rawBlocks.find((item) => item?.index === index)?.text
    return block === blocks[index] && typeof raw === 'string' ? { block, origin, raw } : { block, origin }
  })
  return cleared === undefined ? parts : parts.flatMap((part) => clearPart(part, cleared))
}

const CLEARED_INPUT_TEXT = '[Old tool input cleared]'

function clearPart(part: TracedBlock, cleared: ClearedParts): readonly TracedBlock[] {
  const { block, origin } = part
  if (cleared.thinking && isThinkingBlock(block)) return []
  if (cleared.opaque === true) {
    if (isOpaqueBlock(block)) return []
    if (block.origin !== undefined) return clearPart(withoutOrigin(part), { ...cleared, opaque: false })
  }
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

function withoutOrigin({ block: { origin: _, ...rest }, ...part }: TracedBlock): TracedBlock {
  return { ...part, block: rest as Block }
}

// The functions below apply clearings. An entry that a clearing does not change stays the same object, because token
// estimates are cached by object identity.

/**
 * Returns the entries after the clearing that one `microcompact_boundary` record describes; unchanged ones stay the same
 * objects.
 */
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
  const takeFirstResults = createFirstResultFilter(clearing.results)
  return AppendList.of(
    [...entries].map((entry) => clearEntry(entry, { ...clearing, results: takeFirstResults(entry) })),
  )
}

/**
 * Returns a function that is called with each entry in order and returns the ids whose first result the entry contains.
 * A model may use an id again; only the first result of an id can be cleared.
 */
function createFirstResultFilter(ids: ReadonlySet<string>): (entry: ContextEntry) => ReadonlySet<string> {
  const [called, answered] = [new Set<string>(), new Set<string>()]
  return ({ record }) => {
    if (ids.size === 0 || (record.type !== 'user' && record.type !== 'assistant')) return NO_IDS
    const found = new Set<string>()
    for (const block of toBlocks(record.message.content)) {
      if (isToolUse(block)) called.add(block.id)
      if (!isToolResult(block) || !called.has(block.tool_use_id)) continue
      if (ids.has(block.tool_use_id) && !answered.has(block.tool_use_id)) found.add(block.tool_use_id)
      answered.add(block.tool_use_id)
    }
    return found
  }
}

const NO_IDS: ReadonlySet<string> = new Set()

const NOTHING_CLEARED: ClearedParts = { whole: false, thinking: false, results: [], inputs: [] }

/**
 * Hides a part of some responses: `thinking`, or what is `opaque` to all but the provider that made it (thinking, items
 * of the provider, and the item behind a tool call). `responses` should be a list of `message.id`, but it comes from
 * the log and is not validated.
 */
export function hideResponseParts(
  entries: readonly ContextEntry[],
  responses: unknown,
  part: 'thinking' | 'opaque',
): readonly ContextEntry[] {
  const names = toNameSet(responses)
  if (names.size === 0) return entries
  return entries.map((entry) => {
    const { record, cleared = NOTHING_CLEARED } = entry
    const isNamed = record.type === 'assistant' && names.has(record.message.id)
    return isNamed && cleared[part] !== true ? { ...entry, cleared: { ...cleared, [part]: true } } : entry
  })
}

/** Types of the attachments that tell the model of changed sections and tools of the prefix. */
export const SECTION_DELTA_ATTACHMENT = 'section_delta'
export const TOOL_DELTA_ATTACHMENT = 'tool_delta'

/**
 * Hides announcements of changed prefixes, and messages that add or remove tools. A newer prefix snapshot has the
 * system prompt and declares the tools itself, and its model may refuse such messages. Returns the same list if there
 * are none.
 */
export function withoutPrefixUpdates(entries: AppendList<ContextEntry>): AppendList<ContextEntry> {
  const isUpdate = ({ record, cleared }: ContextEntry): boolean => {
    if (cleared?.whole === true) return false
    if (record.type === 'attachment') {
      const { type } = record.attachment
      return type === SECTION_DELTA_ATTACHMENT || type === TOOL_DELTA_ATTACHMENT
    }
    if (record.type !== 'user' || record.message.role !== 'system') return false
    const blocks = toBlocks(record.message.content)
    return blocks.length > 0 && blocks.every(isToolChangeBlock)
  }
  const all = [...entries]
  if (!all.some(isUpdate)) return entries
  const cleared = { ...NOTHING_CLEARED, whole: true }
  return AppendList.of(all.map((entry) => (isUpdate(entry) ? { ...entry, cleared } : entry)))
}

/**
 * Returns only the strings in `list`. The value comes from a log that other programs may have written, so it may be
 * anything.
 */
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

/**
 * Returns the tool results of this entry that this clearing clears. A result that an earlier clearing cleared is not
 * included and keeps the note of that clearing.
 */
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

// The functions below replace images and documents by placeholders.

/** Returns the text block that replaces an image or document. */
export function createMediaPlaceholder(kind: string): Block {
  return { type: 'text', text: `[${kind}: no longer shown, to keep the request within its size]` }
}

const MEDIA_PLACEHOLDERS: ReadonlySet<string> = new Set(
  ['image', 'document'].map((kind) => String(createMediaPlaceholder(kind).text)),
)

/** True for an image, a document, or the placeholder of one. */
export function isMediaOrPlaceholder(block: Block): boolean {
  return isMediaBlock(block) || (isTextBlock(block) && MEDIA_PLACEHOLDERS.has(block.text))
}

/** Replaces the images and documents listed in `hidden` by placeholders. Other blocks stay the same objects. */
function withMediaPlaceholders(
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
    return numbers.has(nth) && isMediaBlock(block) ? createMediaPlaceholder(block.type) : block
  })
}

/** Returns the `message.id` of each response with a visible block that the provider `target` cannot read, in order. */
export function findForeignResponseIds(
  entries: readonly ContextEntry[],
  target: ProviderProfile['origin'],
): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    const isForeign =
      record.type === 'assistant' && toTracedBlocks(entry).some(({ block }) => isForeignBlock(block, target))
    return isForeign ? [record.message.id] : []
  })
  return [...new Set(ids)]
}

/** Returns the `message.id` of each response whose thinking is visible in `entries`, in order. */
export function findThinkingResponseIds(entries: readonly ContextEntry[]): readonly string[] {
  const ids = entries.flatMap((entry) => {
    const { record } = entry
    return record.type === 'assistant' && toTracedBlocks(entry).some(({ block }) => isThinkingBlock(block))
      ? [record.message.id]
      : []
  })
  return [...new Set(ids)]
}

// What the provider holds of the context. If it clears on its side, it gets the messages unchanged and clears them
// again for each request, so the entries of the context still contain what the model no longer sees.

/** True for the record of a clearing that the provider made. Each request must ask for it again while the results are sent. */
export function isProviderClearing(record: KnownRecord): boolean {
  return isMicrocompactBoundary(record) && isClearedByProvider(record.microcompactMetadata)
}

/**
 * Returns the entries with everything cleared that the provider has cleared or deleted on its side. Use it to measure
 * the context, never to send it. The policy says for which tools the provider clears the inputs along with the results.
 */
export function withProviderClearings(
  entries: AppendList<ContextEntry>,
  { inputs, writeTools }: Pick<ClearPolicy, 'inputs' | 'writeTools'>,
): AppendList<ContextEntry> {
  const inputTools = inputs ? writeTools : []
  return listClearingsInForce(entries).reduce(
    (held, metadata) =>
      applyClearingToEntries(held, {
        ...metadata,
        clearedInputs: metadata.way === 'native' ? listClearedInputs(held, metadata, inputTools) : [],
      }),
    entries,
  )
}

/** Deletions from the provider's cache end when that cache has expired; context edits are repeated in each request. */
function listClearingsInForce(entries: AppendList<ContextEntry>): readonly MicrocompactMetadata[] {
  let found: MicrocompactMetadata[] = []
  for (const { record } of entries) {
    if (record.type !== 'system') continue
    if (isCacheDeletionsEnd(record)) found = found.filter(({ way }) => way === 'native')
    if (isMicrocompactBoundary(record) && isProviderClearing(record)) found.push(record.microcompactMetadata)
  }
  return found
}

function listClearedInputs(
  entries: AppendList<ContextEntry>,
  { compactedToolIds }: MicrocompactMetadata,
  inputTools: readonly string[],
): readonly ClearedInput[] {
  const ids = new Set<unknown>(Array.isArray(compactedToolIds) ? compactedToolIds : [])
  if (inputTools.length === 0 || ids.size === 0) return []
  return [...entries].flatMap(({ record }) =>
    (record.type === 'assistant' ? toBlocks(record.message.content) : []).flatMap((block) =>
      isToolUse(block) && ids.has(block.id) && inputTools.includes(block.name) && isObject(block.input)
        ? Object.keys(block.input).map((field) => ({ toolUseId: block.id, field }))
        : [],
    ),
  )
}

/** Hides the messages that only delete from the provider's cache. For use once that cache has expired. */
export function withoutCacheDeletions(entries: AppendList<ContextEntry>): AppendList<ContextEntry> {
  const cleared = { ...NOTHING_CLEARED, whole: true }
  return AppendList.of(
    [...entries].map((entry) =>
      entry.record.type === 'user' && hasOnlyCacheDeletions(entry.record.message.content)
        ? { ...entry, cleared }
        : entry,
    ),
  )
}

// Formats attachments as text: user content in a `<system-reminder>`, under a heading that names the kind of attachment.

const ATTACHMENT_HEADINGS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ambient_context: 'Context of this session. It may or may not bear on the task; use what does.',
    agent_result:
      'An agent that worked in the background has ended. This is its answer, which may quote texts of others.',
    hook_context: 'A hook of the user adds this.',
    ide_selection: 'Selected in the editor.',
    invoked_skills: 'Skills in use in this session.',
    nested_memory: 'Standing instructions for this folder.',
    plan_file_reference: 'The plan of this session.',
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
 * Formats an attachment as the text that the model reads. `update` means that the attached content has changed since it
 * was last sent, `ended` that it no longer applies.
 */
export function formatAttachmentText(attachment: Attachment): string {
  const heading = formatHeading(attachment)
  const lines =
    attachment.ended === true
      ? [`No longer in force: ${heading}`]
      : [attachment.update === true ? `${heading} ${REPLACES_EARLIER_TEXT}` : heading, formatBody(attachment)]
  return wrapInReminder(lines.join('\n'))
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

/**
 * Returns the heading for an attachment that holds exactly one skill or one agent, or null for other attachments. (Logs
 * of other programs put all skills or agents into one attachment.)
 */
function formatSingleHeading({ type, name, status, isCollected }: Attachment): string | null {
  if (type === 'invoked_skills' && typeof name === 'string')
    return `The skill "${name}" is in use in this session.`
  if (type !== 'task_status' || typeof status !== 'string') return null
  if (status === 'running') return 'An agent is working in the background. Do not start it again.'
  return isCollected === true
    ? 'An agent has ended, and its result was given in the conversation.'
    : 'An agent in the background has ended, and its result was not collected. Do not start it again.'
}

function formatBody(attachment: Attachment): string {
  const text = findFirstText(attachment, ['content', 'planContent', 'text'])
  if (text !== null) return text
  if (isObject(attachment.items)) return Object.entries(attachment.items).map(formatItem).join('\n')
  if (isObject(attachment.sections))
    return Object.entries(attachment.sections).map(formatSection).join('\n\n')
  const { type: _, ...rest } = attachment
  return JSON.stringify(rest)
}

/** Formats one item of an attachment that lists several. If the text is null, the item was removed. */
function formatItem([name, text]: readonly [string, unknown]): string {
  if (typeof text !== 'string') return `${name}: no longer there.`
  return text.includes('\n') ? `${name}:\n${text}` : `${name}: ${text}`
}

/** Formats one part of the reminder in front of the conversation. If the text is null, the part has ended. */
function formatSection([heading, text]: readonly [string, unknown]): string {
  return `# ${heading}\n${typeof text === 'string' ? text : 'No longer in force.'}`
}

function findFirstText(attachment: Attachment, fields: readonly string[]): string | null {
  for (const field of fields) {
    const value = attachment[field]
    if (typeof value === 'string') return value
  }
  return null
}
