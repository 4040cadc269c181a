/** Builds a direct summary request: a short system prompt, the stripped conversation, the summary prompt as the last message. */
import { type ContextEntry, isVisibleToModel, toTracedBlocks } from '../context/context-entry.ts'
import {
  fitMessagesToRoles,
  flattenContext,
  groupEntriesIntoRounds,
  listTracedMessages,
} from '../context/flatten-context.ts'
import type { ApiMessage, Payload } from '../context/payload.ts'
import { wrapInReminder } from '../facts/host-texts.ts'
import {
  type Block,
  CACHE_MARKER_FIELD,
  isBlock,
  isCompactionBlock,
  isMediaBlock,
  isServerToolResult,
  isServerToolUse,
  isTextBlock,
  isThinkingBlock,
  isToolResult,
  isToolUse,
  toBlocks,
  withoutCacheMarker,
} from '../log/block.ts'
import { isObject, type JsonObject } from '../log/json.ts'
import { AppendList } from '../log/persistent-collections.ts'
import {
  type AttachmentRecord,
  isCompactBoundary,
  type KnownRecord,
  type RawBlockText,
} from '../log/record.ts'
import type { DropOldestPolicy } from '../policy/compact-policy.ts'
import type { ProviderProfile } from '../policy/provider-profile.ts'
import type { GenerationSettings } from '../policy/provider-spelling.ts'

export interface SummaryRequestOptions {
  /** Context entries to send, in the order of the context. */
  readonly entries: readonly ContextEntry[]
  readonly prompt: string
  readonly summariser: SummaryModel
  /** The conversation's tool definitions; one of these is declared if messages contain tool calls. */
  readonly tools: readonly JsonObject[]
  /** User message put in front if the first message would have the role `assistant`; null if nothing was dropped. */
  readonly marker?: string | null
  /** Sends tool calls and tool results as text, without declaring a tool. */
  readonly asText?: boolean
}

/** A direct summary request, before a codec encodes it. */
export interface SummaryRequest {
  readonly payload: Payload
  /** For each message, the exact JSON text of blocks that parsing and stringifying would change, by block index. */
  readonly raw: readonly (ReadonlyMap<number, string> | undefined)[]
}

export const SUMMARIZER_SYSTEM_PROMPT =
  'You write summaries of conversations between a user and an assistant that works with tools. You write text only.'

export function buildDirectSummaryRequest(parts: SummaryRequestOptions): SummaryRequest {
  const { summariser, prompt, tools, asText = false, marker = null } = parts
  const stripped = stripSummaryInput(parts.entries, { asText })
  const shown = marker === null ? stripped : withTruncationMarker(stripped, marker)
  const task: ContextEntry = { record: createUnstoredUserRecord('summary-task', prompt), index: -1 }
  const all = listTracedMessages(flattenContext({ entries: AppendList.of([...shown, task]) }))
  const flat = fitMessagesToRoles(all, summariser.profile.roles)
  const messages = flat.map(({ message }) => message)
  const payload: Payload = {
    model: summariser.model,
    ...summariser.profile.spelling.settings(chooseSummaryOutputSettings(summariser), summariser.profile),
    system: SUMMARIZER_SYSTEM_PROMPT,
    ...declareTools(messages, tools),
    messages,
  }
  return { payload, raw: flat.map(({ raw }) => raw) }
}

/** Declares one tool if messages contain tool blocks, as providers require. More tools would invite the model to call them. */
function declareTools(messages: readonly ApiMessage[], tools: readonly JsonObject[]): Pick<Payload, 'tools'> {
  const blocks = messages.flatMap((message) => toBlocks(message.content))
  if (!blocks.some((block) => isToolUse(block) || isToolResult(block))) return {}
  const used = new Set(blocks.flatMap((block: Block) => (isToolUse(block) ? [block.name] : [])))
  const plain = tools.filter((tool) => tool.input_schema !== undefined)
  return {
    tools: [plain.find((tool) => used.has(String(tool.name))) ?? plain[0] ?? PLACEHOLDER_TOOL].map(
      toPlainTool,
    ),
  }
}

function toPlainTool({ defer_loading: _, ...tool }: JsonObject): JsonObject {
  return withoutCacheMarker(tool)
}

const PLACEHOLDER_TOOL: JsonObject = {
  name: 'unavailable',
  description: 'No tool can be called here.',
  input_schema: { type: 'object' },
}

// Stripping removes media, thinking, and content that only the model that wrote it can read from a summary request.
// Attachments that the compaction attaches again are reduced to their names.

interface StripOptions {
  /** Turns tool calls and tool results into text, so that the API request needs no tools. */
  readonly asText: boolean
}

/** Attachment types that are never sent to the summarizer: skill lists, since skills in use are attached again. */
const OMITTED_ATTACHMENTS: ReadonlySet<string> = new Set(['skill_discovery', 'skill_listing'])

/** Returns the entries as a summarizer may read them. Entries of which nothing is left are dropped. */
export function stripSummaryInput(
  entries: readonly ContextEntry[],
  options: StripOptions,
): readonly ContextEntry[] {
  const batches = findCompactionBatches(entries)
  return entries.flatMap((entry) => stripEntry(entry, batches, options))
}

/** Returns the batch ids of earlier compactions, whose attachments the new compaction attaches again. */
function findCompactionBatches(entries: readonly ContextEntry[]): ReadonlySet<string> {
  return new Set(
    entries.flatMap(({ record }) =>
      (isCompactBoundary(record) || record.isCompactSummary === true) && record.batch !== undefined
        ? [record.batch.id]
        : [],
    ),
  )
}

function stripEntry(
  entry: ContextEntry,
  batches: ReadonlySet<string>,
  options: StripOptions,
): readonly ContextEntry[] {
  const { record, cleared } = entry
  if (record.type === 'attachment') return stripAttachment(entry, record, batches)
  if (record.type !== 'user' && record.type !== 'assistant') return []
  const { content, role } = record.message
  if (cleared === undefined && typeof content === 'string' && role !== 'system') return [entry]
  const changed = stripRecord(record, entry, options)
  return changed === null ? [] : [{ record: changed, index: entry.index }]
}

function stripAttachment(
  entry: ContextEntry,
  record: AttachmentRecord,
  batches: ReadonlySet<string>,
): readonly ContextEntry[] {
  const { attachment } = record
  if (OMITTED_ATTACHMENTS.has(attachment.type ?? '')) return []
  const returns = attachment.context === 'post-compact' || batches.has(record.batch?.id ?? '')
  if (!returns) return [entry]
  const named = attachment.path ?? attachment.filename ?? attachment.planFilePath
  const content = `[brought back after a compaction: ${attachment.type ?? 'unknown'}${typeof named === 'string' ? ` ${named}` : ''}]`
  const { batch: _, ...rest } = record
  return [
    { index: entry.index, record: { ...rest, attachment: { type: attachment.type ?? 'unknown', content } } },
  ]
}

type MessageRecord = Extract<KnownRecord, { type: 'user' | 'assistant' }>

/** Strips a record after applying its clearings; null if nothing remains. Unchanged blocks keep their exact JSON text. */
function stripRecord(
  record: MessageRecord,
  entry: ContextEntry,
  options: StripOptions,
): MessageRecord | null {
  const isSystem = record.message.role === 'system'
  const blocks: Block[] = []
  const rawBlocks: RawBlockText[] = []
  for (const { block, raw } of toTracedBlocks(entry)) {
    const stripped = stripBlock(block, options)
    if (stripped === null) continue
    if (raw !== undefined && stripped === block) rawBlocks.push({ index: blocks.length, text: raw })
    blocks.push(isSystem ? toReminder(stripped) : stripped)
  }
  return blocks.length === 0 ? null : withContent(record, blocks, rawBlocks)
}

function withContent(
  record: MessageRecord,
  content: readonly Block[],
  rawBlocks: readonly RawBlockText[],
): MessageRecord {
  const { rawBlocks: _, ...rest } = record
  const raw = rawBlocks.length > 0 ? { rawBlocks } : {}
  if (rest.type === 'user') return { ...rest, message: { role: 'user', content }, ...raw }
  return { ...rest, message: { ...rest.message, content }, ...raw }
}

/** Turns a block of a system message into a reminder, since some providers refuse system messages in a conversation. */
function toReminder(block: Block): Block {
  return isTextBlock(block) ? { type: 'text', text: wrapInReminder(block.text) } : block
}

/** Returns a block as the summarizer may read it, or null for thinking, which is left out. */
function stripBlock(block: Block, { asText }: StripOptions): Block | null {
  if (isTextBlock(block)) return toPlainText(block)
  if (isThinkingBlock(block)) return null
  if (isMediaBlock(block)) return textBlock(`[${block.type}]`)
  if (isCompactionBlock(block))
    return textBlock(typeof block.content === 'string' ? block.content : UNREADABLE_SUMMARY)
  if (isToolUse(block))
    return asText ? textBlock(`[call of ${block.name}: ${toReadableJson(block.input)}]`) : block
  if (isToolResult(block))
    return asText ? textBlock(`[result: ${toResultText(block.content)}]`) : withoutMedia(block)
  if (isServerToolUse(block))
    return textBlock(`[call of ${String(block.name)}: ${toReadableJson(block.input)}]`)
  if (isServerToolResult(block)) return textBlock(`[result: ${toReadableJson(block.content)}]`)
  return textBlock(`[${block.type}: ${toReadableJson(block)}]`)
}

const UNREADABLE_SUMMARY = '[an earlier summary that cannot be read]'

/** Removes citations and other fields that refer to blocks which may be missing from the request. */
function toPlainText(block: Block & { readonly text: string }): Block {
  return Object.keys(block).length === 2 ? block : textBlock(block.text)
}

function withoutMedia(block: Block): Block {
  const { content } = block
  if (!Array.isArray(content) || content.every((item) => isBlock(item) && isTextBlock(item))) return block
  return { ...block, content: toTextBlocks(content) }
}

function toResultText(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return toTextBlocks(content)
    .map((item) => String(item.text ?? ''))
    .join('\n')
}

function toTextBlocks(content: readonly unknown[]): readonly Block[] {
  return content.flatMap((item) => (isBlock(item) ? (stripBlock(item, { asText: true }) ?? []) : []))
}

/** Converts a value to JSON without signatures, encrypted fields and media. */
function toReadableJson(value: unknown): string {
  const json = JSON.stringify(value, (key, held) => (isOpaque(key, held) ? undefined : toMediaText(held)))
  return json ?? ''
}

function isOpaque(key: string, held: unknown): boolean {
  return (
    key === CACHE_MARKER_FIELD ||
    key === 'signature' ||
    (key.startsWith('encrypted_') && typeof held === 'string')
  )
}

function toMediaText(held: unknown): unknown {
  return isObject(held) && isBlock(held) && isMediaBlock(held) ? `[${held.type}]` : held
}

function textBlock(content: string): Block {
  return { type: 'text', text: content.trim() === '' ? '[empty]' : content }
}

// The model of a direct summary call, and settings that limit the output tokens used for thinking.

/** A model that can write summaries, with its rules and limits. */
export interface SummaryModel {
  readonly model: string
  readonly profile: ProviderProfile
  /** The model's context window in tokens; null if unknown. */
  readonly window: number | null
  /** Maximum tokens of a summary: 20,000 by policy, less in a small window. */
  readonly outputTokens: number
}

/** Output tokens added if the model's thinking cannot be turned off. */
const THINKING_TOKENS = 8_000
const LOWEST_EFFORT = 'low'

/** Turns thinking off if the model allows it; otherwise chooses the lowest effort and adds output tokens for thinking. */
export function chooseSummaryOutputSettings({
  profile,
  outputTokens: tokens,
}: SummaryModel): GenerationSettings {
  const { modes, whenAbsent, minimumBudget, disabledEfforts } = profile.thinking
  if (whenAbsent === 'disabled') return { maxOutput: limitOutput(tokens, profile) }
  if (modes.includes('disabled')) {
    const effort = disabledEfforts === null ? {} : { effort: disabledEfforts[0] ?? LOWEST_EFFORT }
    return { maxOutput: limitOutput(tokens, profile), thinking: { mode: 'disabled' }, ...effort }
  }
  const room = Math.max(minimumBudget, Math.min(THINKING_TOKENS, tokens))
  const maxOutput = limitOutput(tokens + room, profile)
  if (!modes.includes('adaptive') && modes.includes('enabled')) {
    return { maxOutput, thinking: { mode: 'enabled', budget: Math.min(minimumBudget, maxOutput - 1) } }
  }
  return { maxOutput, effort: LOWEST_EFFORT }
}

/** Returns the tokens of the context window to reserve for the summary and its thinking. */
export function countReservedOutputTokens(summariser: SummaryModel): number {
  return chooseSummaryOutputSettings(summariser).maxOutput
}

function limitOutput(tokens: number, { maxOutput }: ProviderProfile): number {
  return maxOutput === null ? tokens : Math.min(tokens, maxOutput)
}

// A summary request that is too long is shortened by dropping rounds (a response with its tool results), oldest first.
// No model sees the dropped rounds, so they are returned for a local summary.

/** Text put in front of a shortened conversation that would begin with an assistant message. */
export const TRUNCATION_MARKER = '[earlier conversation truncated for compaction retry]'

interface DropRules {
  /** Tokens by which the request exceeded the context window; null if the provider did not report them. */
  readonly over: number | null
  readonly countTokens: (entry: ContextEntry) => number
  readonly policy: Pick<DropOldestPolicy, 'percentOfRounds' | 'minimumRounds'>
}

/** Drops at least one round, so that a retry differs from the failed request. Returns null if no message would remain. */
export function dropOldestRounds(
  entries: readonly ContextEntry[],
  context: DropRules,
): Record<'rest' | 'dropped', readonly ContextEntry[]> | null {
  const rounds = groupEntriesIntoRounds(withoutMarker(entries))
  const count = countRoundsToDrop(rounds, context)
  const rest = rounds.slice(count).flat()
  return rest.some(isVisibleToModel) ? { rest, dropped: rounds.slice(0, count).flat() } : null
}

function countRoundsToDrop(
  rounds: readonly (readonly ContextEntry[])[],
  { over, countTokens, policy }: DropRules,
): number {
  if (over === null || over <= 0)
    return Math.max(policy.minimumRounds, Math.floor((rounds.length * policy.percentOfRounds) / 100))
  let left = over
  const covered = rounds.findIndex((round) => {
    left -= round.reduce((sum, entry) => sum + countTokens(entry), 0)
    return left <= 0
  })
  return covered === -1 ? rounds.length : covered + 1
}

/** Removes the marker of an earlier retry, which would otherwise count as a round, so that no real round would be dropped. */
function withoutMarker(entries: readonly ContextEntry[]): readonly ContextEntry[] {
  const first = entries[0]
  return first !== undefined && isTruncationMarker(first.record) ? entries.slice(1) : entries
}

/** Puts a user message with `text` in front if the first message would have the role `assistant`. */
export function withTruncationMarker(
  entries: readonly ContextEntry[],
  text: string,
): readonly ContextEntry[] {
  const first = entries.find(isVisibleToModel)
  if (first?.record.type !== 'assistant') return entries
  return [{ record: createUnstoredUserRecord('truncation-marker', text), index: -1 }, ...entries]
}

function isTruncationMarker(record: KnownRecord): boolean {
  return record.type === 'user' && record.isMeta === true && record.message.content === TRUNCATION_MARKER
}

/** Creates a user record that is only sent to a model, never stored. */
export function createUnstoredUserRecord(uuid: string, text: string): KnownRecord {
  return {
    type: 'user',
    uuid,
    parentUuid: null,
    timestamp: '',
    sessionId: '',
    isMeta: true,
    message: { role: 'user', content: text },
  }
}
